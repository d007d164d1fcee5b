"""Glob, its patterns, and ignore files (tools contract, section 8)."""

from __future__ import annotations

import fnmatch
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_tools_files import glob_tool
from kernel_tools_files.globs import Globs, expand, matches
from kernel_tools_files.ignores import Ignores


# -- patterns -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("pattern", "yes", "no"), [
    ("*.py", ["a.py", "x/y/b.py", ".py"], ["a.pyc", "a.py/b"]),
    ("./*.py", ["a.py"], ["x/a.py"]),
    ("src/*.py", ["src/a.py"], ["src/x/a.py", "x/src/a.py"]),
    ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py", "src/a.js"]),
    ("src/**", ["src/a", "src/x/y"], ["src", "x/src/a"]),
    ("src/", ["src/a", "src/x/y"], ["src"]),
    ("**/test/**/a", ["test/a", "x/test/y/z/a"], ["a", "test/b"]),
    ("**", ["a", "x/y"], []),
    ("**/**/a", ["a", "x/y/a"], ["b"]),
    ("a?c", ["abc", "aéc", "x/a.c"], ["ac", "abbc"]),
    ("[a-c]x", ["ax", "cx"], ["dx", "x", "[a-c]x"]),
    ("[!a-c]x", ["dx"], ["ax"]),
    ("[^a]x", ["bx"], ["ax"]),
    ("[]a]x", ["]x", "ax"], ["bx"]),
    ("[a-]x", ["ax", "-x"], ["bx"]),
    ("*.{ts,tsx}", ["a.ts", "x/a.tsx"], ["a.t", "a.{ts,tsx}"]),
    ("{src,lib/x}/*.c", ["src/a.c", "lib/x/a.c"], ["lib/a.c"]),
    ("a{b,{c,d}e}f", ["abf", "acef", "adef"], ["acf"]),
    ("a{,b}", ["a", "ab"], ["b"]),
    ("{a,b", ["{a,b"], ["a"]),
    ("a}b", ["a}b"], []),
    ("a\\*b", ["a*b"], ["axb"]),
    ("a\\{b,c}", ["a{b,c}"], ["ab"]),
    ("a**b", ["ab", "axxb"], ["a/b"]),
    ("日*", ["日本.txt"], ["x日"]),
    ("*", ["a", ".hidden", "new\nline", "x/y"], []),
])
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    globs = Globs(pattern)
    assert [p for p in yes if not globs.covers(p.split("/"))] == []
    assert [p for p in no if globs.covers(p.split("/"))] == []


@pytest.mark.parametrize("pattern", ["[", "[a", "x[!", "[z-a]", "a/[b/c]", "[]"])
def test_a_broken_bracket_matches_nothing(bench: Any, pattern: str) -> None:
    bench.write("a/b", "x")
    assert bench("Glob", pattern=pattern).status == "empty"


@given(st.text(st.sampled_from("ab.*?"), min_size=1, max_size=8), st.text(st.sampled_from("ab."), max_size=8))
def test_one_name_is_matched_as_the_standard_library_does(pattern: str, name: str) -> None:
    assert matches(pattern, name) == fnmatch.fnmatchcase(name, pattern)


@given(st.text(st.sampled_from("ab[]{},!^-\\*/?."), max_size=12), st.lists(st.sampled_from(["a", "b", ".", "ab"]), max_size=3))
def test_any_pattern_is_understood_or_refused(pattern: str, names: list[str]) -> None:
    try:
        globs = Globs(pattern)
    except ValueError:
        return
    globs.covers(names)


def test_time_is_linear_in_the_name() -> None:
    """With backtracking this would not end."""
    assert not matches("*a" * 20 + "*b", "a" * 250)
    assert not Globs("/".join(["**", "a"] * 20)).covers(["a", "b"] * 60)


def test_the_number_of_alternatives_is_limited(bench: Any) -> None:
    assert len(expand("{a,b,c,d,e,f,g,h,i,j}" * 3)) == 1_000
    assert "1000" in bench.error("Glob", pattern="{a,b,c,d,e,f,g,h,i,j}" * 3 + "{x,y}").message


# -- the tool ---------------------------------------------------------------------------------------------------------------
def names(result: Any, root: Path) -> list[str]:
    return [os.path.relpath(name, root) for name in result.structured["filenames"]]


def aged(path: Path, seconds: int) -> Path:
    os.utime(path, (seconds, seconds))
    return path


def test_newest_first(bench: Any) -> None:
    for number, name in enumerate(["b.py", "sub/c.py", "a.py", "d.txt"]):
        aged(bench.write(name, "x"), 1_000 + number)
    result = bench("Glob", pattern="**/*.py")
    assert names(result, bench.root) == ["a.py", "sub/c.py", "b.py"]
    assert result.structured["truncated"] is False and result.structured["numFiles"] == 3
    assert result.content == "\n".join(result.structured["filenames"])


@pytest.mark.parametrize("count", [100, 101])
def test_at_most_a_hundred_with_the_total(bench: Any, count: int) -> None:
    for number in range(count):
        aged(bench.write(f"f{number}", ""), 1_000 + number)
    result = bench("Glob", pattern="f*")
    assert result.structured["numFiles"] == 100 and result.structured["truncated"] == (count > 100) == result.truncated
    assert names(result, bench.root)[0] == f"f{count - 1}"
    if count > 100:
        assert result.structured["totalMatches"] == 101 and "101" in result.content
        assert result.structured["countIsComplete"] is True


def test_no_match_is_empty_not_an_error(bench: Any) -> None:
    result = bench("Glob", pattern="*.zig")
    assert result.content == "No files found" and result.status == "empty" and result.structured["filenames"] == []


@pytest.mark.parametrize(("pattern", "path", "found"), [
    ("*.txt", "sub", ["sub/a.txt", "sub/deep/b.txt"]), ("deep/*", "sub", ["sub/deep/b.txt"]), ("../top.txt", "sub", ["top.txt"]),
    ("{root}/sub/*.txt", None, ["sub/a.txt"]), ("{root}/sub/**/*.txt", "elsewhere", ["sub/a.txt", "sub/deep/b.txt"]),
    ("{root}/top.txt", None, ["top.txt"]), ("~/deep/*", None, ["sub/deep/b.txt"]), ("sub/./a.txt", None, ["sub/a.txt"])])
def test_where_it_searches(bench: Any, monkeypatch: pytest.MonkeyPatch, pattern: str, path: str | None, found: list[str]) -> None:
    monkeypatch.setenv("HOME", str(bench.root / "sub"))
    for name in ("top.txt", "sub/a.txt", "sub/deep/b.txt", "elsewhere/x"):
        bench.write(name, "x")
    result = bench("Glob", pattern=pattern.replace("{root}", str(bench.root)), **({"path": path} if path else {}))
    assert sorted(names(result, bench.root)) == found


@pytest.mark.parametrize(("pattern", "path", "searched"), [
    ("*.py", None, "."), ("*.py", "sub", "sub"), ("/etc/*.conf", None, "/etc"), ("../*.py", "sub", "."),
    ("../../../x/*", None, "../../../x"), ("/*", None, "/"), ("{/etc,/usr}/*", None, ".")])
def test_rules_are_asked_about_the_folder_that_is_searched(bench: Any, pattern: str, path: str | None, searched: str) -> None:
    """A pattern cannot lead the search out of the folder that permission was asked for."""
    from kernel import ToolContext

    tool = bench.tools["Glob"]
    context = ToolContext(bench.session, "call", "Glob")
    input = tool.prepare_input({"pattern": pattern, **({"path": path} if path else {})}, context)
    assert tool.permission_paths(input)[0] == os.path.normpath(bench.root / searched)


@pytest.mark.parametrize("pattern", ["", " ", "a\0b", "*/../../*", "{..,a}/*"])
def test_patterns_that_are_refused(bench: Any, pattern: str) -> None:
    assert bench.error("Glob", pattern=pattern).code == "invalid_arguments"


@pytest.mark.parametrize(("path", "code"), [("file", "not_a_directory"), ("no", "not_found"), ("a\0b", "invalid_arguments")])
def test_folders_that_are_none(bench: Any, path: str, code: str) -> None:
    bench.write("file", "x")
    assert bench.error("Glob", pattern="*", path=path).code == code


def test_hidden_and_ignored_files_are_found_unless_switched_off(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".hidden", "out/made", "seen", ".git/config", "sub/.git/x"):
        bench.write(name, "x")
    bench.write(".gitignore", "out/\n")
    assert sorted(names(bench("Glob", pattern="*"), bench.root)) == [".gitignore", ".hidden", "out/made", "seen"]
    assert names(bench("Glob", pattern=".git/*"), bench.root) == [".git/config"]
    assert names(bench("Glob", pattern="*", path=".git"), bench.root) == [".git/config"]
    monkeypatch.setenv("CLAUDE_CODE_GLOB_NO_IGNORE", "false")
    assert sorted(names(bench("Glob", pattern="*"), bench.root)) == [".gitignore", ".hidden", "seen"]
    monkeypatch.setenv("CLAUDE_CODE_GLOB_HIDDEN", "false")
    assert names(bench("Glob", pattern="*"), bench.root) == ["seen"]


def test_links_are_listed_and_not_followed(bench: Any) -> None:
    bench.write("sub/a.txt", "x")
    (bench.root / "file.txt").symlink_to("sub/a.txt")
    (bench.root / "gone.txt").symlink_to("nowhere")
    (bench.root / "folder.txt").symlink_to("sub")
    (bench.root / "sub" / "loop").symlink_to("..")
    assert sorted(names(bench("Glob", pattern="*.txt"), bench.root)) == ["file.txt", "gone.txt", "sub/a.txt"]


def test_below_a_link_paths_are_those_that_were_asked_for(bench: Any) -> None:
    bench.write("sub/a.txt", "x")
    (bench.root / "link").symlink_to("sub")
    assert names(bench("Glob", pattern="*", path="link"), bench.root) == ["link/a.txt"]


def test_files_that_a_rule_hides_are_left_out(bench: Any) -> None:
    for name in (".env", "sub/.env", "a"):
        bench.write(name, "x")
    bench.decide = lambda name, input: "deny" if input.get("file_path", "").endswith(".env") else "allow"
    assert names(bench("Glob", pattern="*"), bench.root) == ["a"]
    assert bench("Glob", pattern=".env").status == "empty"


def test_with_many_matches_the_total_is_not_told_rather_than_wrong(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glob_tool, "ASK_AHEAD", 10)
    for number in range(120):
        bench.write(f"f{number}", "")
    structured = bench("Glob", pattern="f*").structured
    assert structured["numFiles"] == structured["totalMatches"] == 100 and structured["countIsComplete"] is False


def test_a_policy_that_fails_hides(bench: Any) -> None:
    def fails(name: str, input: dict[str, Any]) -> str:
        raise RuntimeError

    bench.write("a", "x")
    bench.decide = fails
    assert bench("Glob", pattern="*").status == "empty"


@pytest.mark.parametrize("files", [0, 3])
def test_the_time_limit(bench: Any, monkeypatch: pytest.MonkeyPatch, files: int) -> None:
    """With something found the result is partial; with nothing it is an error."""
    clock = iter([0.0, *[0.0] * files, *[99.0] * 9])
    monkeypatch.setattr(glob_tool, "monotonic", lambda: next(clock))
    for number in range(5):
        bench.write(f"d{number}/f", "x")
    if files:
        result = bench("Glob", pattern="**/f")
        assert result.status == "partial" and result.structured["countIsComplete"] is False and "at least" in result.content
    else:
        error = bench.error("Glob", pattern="**/f")
        assert error.code == "timeout" and "20 seconds" in error.message


@pytest.mark.parametrize(("value", "wsl", "seconds"), [
    ("", False, 20.0), ("", True, 60.0), ("3", False, 3.0), ("0.5", True, 0.5), ("-1", False, 20.0), ("x", False, 20.0),
    ("nan", False, 20.0)])
def test_where_the_time_limit_comes_from(monkeypatch: pytest.MonkeyPatch, value: str, wsl: bool, seconds: float) -> None:
    monkeypatch.delenv("WSL_DISTRO_NAME", raising=False)
    if wsl:
        monkeypatch.setenv("WSL_DISTRO_NAME", "x")
    monkeypatch.setenv("CLAUDE_CODE_GLOB_TIMEOUT_SECONDS", value)
    assert glob_tool.time_limit() == seconds


def test_a_name_that_is_no_utf8_is_shown_with_replacement(bench: Any) -> None:
    with open(os.fsencode(bench.root) + b"/b\xffd", "wb"):
        pass
    assert bench("Glob", pattern="b*").structured["filenames"] == [f"{bench.root}/b\ufffdd"]


# -- ignore files -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "ignored", "kept"), [
    ("*.log\n", ["a.log", "x/b.log"], ["a.txt"]),
    ("/a\n", ["a"], ["x/a"]),
    ("x/a\n", ["x/a"], ["a", "y/x/a"]),
    ("out/\n", ["out/", "x/out/"], ["out"]),
    ("*\n!keep\n", ["a"], ["keep"]),
    ("# comment\n\n  \n\\#x\n", ["#x"], ["comment", "# comment"]),
    ("\\!x\n", ["!x"], ["x"]),
    ("a\\ \nb \n", ["a ", "b"], ["a", "b "]),
    ("{a,b}\n", ["{a,b}"], ["a"]),
    ("**/x\ny/**\n", ["x", "q/x", "y/z"], ["y"]),
    ("[\n../a\n", [], ["[", "a"]),
    ("a\r\n", ["a"], []),
])
def test_ignore_rules(tmp_path: Path, text: str, ignored: list[str], kept: list[str]) -> None:
    (tmp_path / ".gitignore").write_bytes(text.encode())
    rules = Ignores(str(tmp_path))

    def asked(path: str) -> bool:
        return rules.ignored(path.rstrip("/").split("/"), folder=path.endswith("/"))

    assert [p for p in ignored if not asked(p)] == [] and [p for p in kept if asked(p)] == []


def test_a_nearer_ignore_file_wins_and_those_of_the_repository_count(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_GLOB_NO_IGNORE", "false")
    bench.write(".git/HEAD", "x")
    bench.write(".gitignore", "*.log\n/sub/top\n")
    bench.write("sub/.ignore", "!keep.log\n")
    for name in ("sub/a.log", "sub/keep.log", "sub/top", "sub/b"):
        bench.write(name, "x")
    assert sorted(names(bench("Glob", pattern="*", path="sub"), bench.root)) == ["sub/.ignore", "sub/b", "sub/keep.log"]


@given(st.lists(st.sampled_from(["**", "*.py", "a*", "?", "b", "[ab]*", "{a,b}.py", "*"]), min_size=1, max_size=3).map("/".join),
       st.lists(st.sampled_from(["a", "b", "a.py", "b.py", "ab", "x.md"]), min_size=1, max_size=3))
def test_the_short_way_through_a_folder_agrees_with_the_long_one(pattern: str, names: list[str]) -> None:
    """Where a folder's names all lead on alike, one pattern says which of them match, as asking about each name does."""
    globs = Globs(pattern)
    states = globs.start
    for name in names:
        after, matched = globs.step(states, name)
        fits = globs.anywhere(states)
        if fits is not None:
            assert (after, matched) == (states, fits.fullmatch(name) is not None)
        states = after
