"""Reading a command: its simple commands, and what follows for timeouts, exit codes, side-by-side running and read files."""

from __future__ import annotations

import shlex
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_tools_shell import seen, words
from kernel_tools_shell.bash import Bash


@pytest.mark.parametrize(("text", "commands"), [
    ("ls -l", [("ls", "-l")]), ("a; b && c || d | e |& f & g\nh", [(c,) for c in "abcdefgh"]),
    ("a 'b c' \"d e\" f\\ g", [("a", "b c", "d e", "f g")]),
    ("a > out 2>&1 < in >> log &> all 3<> rw b", [("a", "b")]), ("a <<E b\nx; y\nE\nc", [("a", "b"), ("c",)]),
    ("cat <<-'E'\n\tx\n\tE\nz", [("cat",), ("z",)]), ("cat <<< 'here string'", [("cat",)]),
    ("a # b; c\nd", [("a",), ("d",)]), ("a#b", [("a#b",)]),
    ("(a; b)", [("a",), ("b",)]), ("{ a; b; }", [("a",), ("b",)]),
    ("if a; then b; else c; fi", [("a",), ("b",), ("c",), ("fi",)]),
    ("while a; do b; done | c", [("a",), ("b",), ("done",), ("c",)]),
    ("for x in 1 2; do a; done", [("for", "x", "in", "1", "2"), ("a",), ("done",)]),
    ("case $x in a|b) c;; *) d;; esac", [("case", "$x", "in", "a"), ("c",), ("d",), ("esac",)]),
    ("a $(b; c) `d` ${e:-f g}", [("a", "$(b; c)", "`d`", "${e:-f g}")]),
    ("a \"$(b \"c)\" ')')\"", [("a", "$(b \"c)\" ')')")]), ("a <(b) >(c)", [("a", "<(b)", ">(c)")]),
    ("a \\\n b", [("a", "b")]),
    ("echo $((1 + (2)))", [("echo", "$((1 + (2)))")]), ("f() { a; }", [("f",), ("a",)]), ("! a", [("!", "a")]),
])
def test_simple_commands(text: str, commands: list[tuple[str, ...]]) -> None:
    assert words.simple_commands(text) == commands


@pytest.mark.parametrize("text", ["", "  ", "# only a comment", "a 'b", 'a "b', "a $(b", "a `b", "a ${b", "(a", "a)",
                                  "{ a;", "if a; then b", "fi", "while a; do b; fi", "cat <<E\nnever closed", "cat <<E", "a >",
                                  "a > ; b", "case x in a) b;;"])
def test_what_cannot_be_read_as_a_whole(text: str) -> None:
    assert words.simple_commands(text) is None


@given(st.text(alphabet="ab c'\"\\$`(){}<>|&;#\n!=-0", max_size=40))
def test_any_text_is_read_or_given_up_and_never_hangs(text: str) -> None:
    commands = words.simple_commands(text)
    assert commands is None or all(isinstance(word, str) for command in commands for word in command)
    words.meaning(text, 1)
    words.outlives_timeout(text)
    words.reads_only(text)
    seen.shown_file(text)


@given(st.lists(st.text(min_size=1, max_size=8).filter(lambda w: "\0" not in w and "\r" not in w), min_size=1, max_size=4))
def test_quoted_words_come_back_as_they_were(given_words: list[str]) -> None:
    expected = [word.replace("\\\n", "") for word in given_words]  # the one thing that is taken out inside of quotes as well
    assert words.simple_commands("run " + shlex.join(given_words)) == [("run", *expected)]


@pytest.mark.parametrize(("text", "expected"), [
    ("make", True), ("make | tee log", True), ("npm run build && npm test", True), ("cd x; make", True),
    ("echo digit .git/config", True),
    ("sleep 5", False), ("  sleep 5; make", False), ("A=1 sleep 5", False), ("make; sleep 5", True), ("git push", False),
    ("cd x && git fetch", False), ("/usr/bin/git gc", False), ("bash -c 'git pull'", False), ("timeout 5 git pull", False),
    ("x=$(git log)", False),
    ("echo 'open", False), ("if make; then", False), ("legit", True), ("git-lfs pull", True), ("cat git.txt", True),
])
def test_what_moves_to_the_background_at_its_timeout(text: str, expected: bool) -> None:
    assert words.outlives_timeout(text) is expected


@pytest.mark.parametrize(("text", "moves"), [("cd x && make", True), ("pushd x; make", True), ("popd", True),
                                             ("(cd x; make)", True), ("chdir x", True),
                                             ("make cd", False), ("echo 'cd x'", False), ("builtin cd x", True)])
def test_which_commands_change_the_directory(text: str, moves: bool) -> None:
    assert words.changes_directory(text) is moves


@pytest.mark.parametrize(("text", "says"), [
    ("grep x f", True), ("cat f | grep x", True), ("/bin/grep x f", True), ("A=1 grep x f", True),
    ("command grep x f", True), ("a; rg x", True),
    ("git -C d --no-pager diff", True), ("git -c a=b grep x", True), ("(cd x && grep y z)", True), ("{ test -e x; }", True),
    ("grep x f | head", False), ("grep x f; make", False), ("git log", False), ("if grep x f; then a; fi", False),
    ("! grep x f", False),
    ("grep 'x", False), ("ungrep x", False), ("echo grep", False),
])
def test_the_last_command_decides_whether_exit_code_1_is_a_result(text: str, says: bool) -> None:
    assert (words.meaning(text, 1) is not None) is says
    assert words.meaning(text, 2) is None and words.meaning(text, 0) is None


@pytest.mark.parametrize(("text", "safe"), [
    ("ls -la src", True), ("cat a.txt", True), ("git status", True), ("git log --oneline -5", True),
    ("git diff HEAD~1", False), ("git show HEAD", True),
    ("grep -rn TODO src", True), ("wc -l a b", True), ("pwd", True), ("head -n 5 a", True), ("tail -5 a", True),
    ("", False), ("tail -f log", False), ("ls; rm x", False), ("ls | wc", False), ("ls > x", False), ("cat $x", False),
    ("echo `x`", False),
    ("cat 'a b'", False), ("git push", False), ("git", False), ("git diff --output=x", False),
    ("git -c core.pager=x log", False),
    ("git diff --ext-diff", False), ("rm x", False), ("find . -delete", False), ("A=1 ls", False), ("ls\nrm x", False),
    ("./ls", False),
    ("cd x", False), ("sort -o x y", False), ("ls *", False), ("echo ~", False),
])
def test_only_plain_reading_commands_run_side_by_side(text: str, safe: bool) -> None:
    assert Bash().is_concurrency_safe({"command": text}) is safe
    assert Bash().is_concurrency_safe({"command": text, "run_in_background": True}) is False


@pytest.mark.parametrize(("text", "file"), [
    ("cat a.txt", "a.txt"), ("cat -n 'a b.txt'", "a b.txt"), ("nl a", "a"), ("head -n 5 a", "a"), ("head -5 a", "a"),
    ("tail --lines 3 a", "a"),
    ("sed -n '3,9p' a", "a"), ("sed -n 4p a", "a"), ("grep -n x a", "a"), ("rg x a", "a"), ("cat a b", None),
    ("cat a | head", None), ("cat a > b", None),
    ("cat a; rm a", None), ("cat $a", None), ("cat *", None), ("cat", None), ("sed 's/a/b/' a", None), ("sed -n 3p", None),
    ("grep x", None),
    ("grep -e x a", None), ("grep x a b", None), ("cat ~/a", None), ("less a", None), ("X=1 cat a", None), ("cat 'a", None),
])
def test_which_file_a_command_shows(text: str, file: str | None) -> None:
    assert seen.shown_file(text) == file


@pytest.mark.anyio
async def test_a_file_that_was_shown_counts_as_read(box: Any) -> None:
    (box.workspace / "a.txt").write_text("content\n")
    (box.workspace / "big.txt").write_text("x" * 40_000)
    (box.workspace / "link").symlink_to("a.txt")
    for text in ("cat b.txt", "cat big.txt", "cat a.txt | head", "cat ."):
        await box.bash(text)
    assert box.session.read_files == {}, "failed, not shown in full, piped, no file"
    await box.bash("cat link")
    state = box.session.read_files[str(box.workspace / "a.txt")]
    assert (state.size, state.digest, state.partial) == (8, sha256(b"content\n").hexdigest(), False)
