"""Reading shell commands: what is found in them, and what is refused because it would be misread."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings, strategies as st
from kernel_permissions.paper import Paper
from kernel_permissions.reader import read
from kernel_permissions.shell import Parser, join_lines
from kernel_permissions.syntax import Opaque, Script, expand_braces, split_blanks

PARSER = Parser()


def parts(command: str) -> list[str]:
    return [s.text for s in PARSER.parse(command).simples]


def opaque(command: str) -> bool:
    try:
        PARSER.parse(command)
    except Opaque:
        return True
    return False


@pytest.mark.parametrize(("command", "expected"), [
    ("a && b || c; d | e |& f & g\nh", ["a", "b", "c", "d", "e", "f", "g", "h"]),
    ("(a; b)", ["a", "b"]),
    ("{ a; b; }", ["a", "b"]),
    ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
    ("while a; do b; done", ["a", "b"]),
    ("until a; do b; done", ["a", "b"]),
    ("for x in 1 2; do a; done", ["for x", "a"]),
    ("case $x in a|b) c;; *) d;; esac", ["c", "d"]),
    ("f() { a; }", ["a"]),
    ("function f { a; }", ["a"]),
    ("! a", ["a"]),
    ("a $(b $(c)) `d`", ["c", "b $(c)", "d", "a $(b $(c)) `d`"]),
    ('a "x $(b) y"', ["b", 'a "x $(b) y"']),
    ("x=$(b) a", ["b", "x=$(b) a"]),
    ("x=(1 $(b)) a", ["b", "x=(1 $(b)) a"]),
    ("a <(b) >(c)", ["b", "c", "a <(b) >(c)"]),
    ("a > $(b)", ["b", "a"]),
    ("a <<EOF\n$(b)\nEOF\nc", ["b", "a", "c"]),
    ("a <<'EOF'\n$(b) `c`; d\nEOF", ["a"]),
    ("a <<\\EOF\n$(b)\nEOF", ["a"]),
    ("a <<-EOF\n\tx\n\tEOF\nb", ["a", "b"]),
    ("a <<< \"$(b)\"", ["b", "a"]),
    ("a <<EOF && b\nx\nEOF\nc", ["b", "a", "c"]),
    ("a <<EOF | b > c\nx\nEOF", ["b", "a"]),
    ("a # b; c", ["a"]),
    ("# a\nb", ["b"]),
    ("a 'b; c' \"d && e\" f\\;g", ["a 'b; c' \"d && e\" f\\;g"]),
    ("a \"fix #12; x\"", ["a \"fix #12; x\""]),
    ("a 'b\nc'", ["a 'b\nc'"]),
    ("git pu\\\nsh", ["git push"]),
    ("a \\\n  b && \\\n  c", ["a b", "c"]),
    ("$\\\n(b)", ["b", "$(b)"]),
    ("git >out push 2>err x", ["git push x"]),
    (">out git push", ["git push"]),
    ("a 2>&1 >&2 3<in", ["a"]),
    ("a  \t b", ["a b"]),
    ("a -", ["a -"]),
    ("a - <<'EOF'\nx\nEOF", ["a -"]),
    ("A=1 B=2 a", ["A=1 B=2 a"]),
    ("A=1; a", ["A=1", "a"]),
    ("export A=1; unset B", ["export A=1", "unset B"]),
    ("[ -f a ] && [[ $b == c* ]]", ["[ -f a ]", "[[ $b == c* ]]"]),
    ("time a", ["time a"]),
    ("a\u3000b", ["a\u3000b"]),
    ("a\u00a0; b", ["a\u00a0", "b"]),
    ("git -m \"$(cat <<'EOF'\nit's $(x)\nEOF\n)\"", ["cat", "git -m \"$(cat <<'EOF'\nit's $(x)\nEOF\n)\""]),
    ("cat <<'EOF' > f\na \\\n b\nEOF\nb \\\n c", ["cat", "b c"]),
    ("echo ${x:-y} ${x%.*} ${#x} ${x[0]}", ["echo ${x:-y} ${x%.*} ${#x} ${x[0]}"]),
    ("echo ${x/a/b} ${x:1:2} $1 $@", ["echo ${x/a/b} ${x:1:2} $1 $@"]),
    (" && ".join(["a"] * 200), ["a"] * 200),
])
def test_every_simple_command_is_found(command: str, expected: list[str]) -> None:
    assert sorted(p for p in parts(command) if p) == sorted(expected)


@pytest.mark.parametrize("command", [
    "! { rm x; }", "time { rm x; }", "time -p { rm x; }", "time -- { rm x; }", "coproc rm x", "coproc { rm x; }",
    "time coproc rm x", "time ! rm x", "time time rm x",
    "ls\n\\rm x", "ls\n\\\\rm x",
    "cat <<EOF\n$\\\n(rm x)\nEOF",
    "echo ${x#$(rm y)}", "echo ${x^^$(rm y)}", "echo ${x:-`rm y`}", "echo ${x:-$(rm y)}", "echo \"${x:-$(rm y)}\"",
    "echo ${x:=y}", "echo ${x@P}", "echo ${!x}", "echo ${x/$(rm y)/z}", "echo ${x:$(rm y)}", "echo ${x:-'$(rm y)'}",
    "echo `a \\`rm x\\``", "echo \"`a \\\"b\\\"`\"", "echo \"`a \"b\"`\"", "echo `a \\$x`",
    "cat <<EOF\n`rm x`\nEOF", "cat <<-EOF\n\t$(rm x)\n\tEOF", "cat <<-EOF\n\t`rm x`\n\tEOF",
    "{fd}>file ls", "ls {fd}>file", "ls 12>f {fd}<x",
    "echo $[1+$(rm x)]", "echo $((a[$(rm x)]))", "((x=1))", "for ((i=0;i<3;i++)); do ls; done", "select x in a; do rm y; done",
    "a <<A <<B\nx\nA\ny\nB", "a <<A; b <<B\nx\nA\ny\nB", "a <<A | b <<B\nx\nA\ny\nB", "a <<\"A B\"x\nx\nA Bx", "a <<EOF\nx",
    "a <<EOF",
    "a <<$x\nb\n$x", "a <<'E'OF\nx\nEOF", "a <<EOF\nfoo\\\nEOF\nEOF",
    "echo $\"x\"", "echo $'\\cx'", "echo $'\\x00'", "echo 'unclosed", "echo \"unclosed", "echo $(unclosed", "echo `unclosed",
    "echo )",
    "echo (a)", "a;; b", "if a; then b", "} a", "fi", "echo @(a|b)", "echo !(a)", "ls *(x)", "[[ a =~ b ]]", "[[ (a == b) ]]",
    "[[ a < b ]]", "[ a < b ]", "[ a", "a <> f", "echo a\0b", "echo \x1b[0m", "echo a\rb", "echo \u200bx", "echo \u202ex",
    "echo \ufeffx",
    "echo \ud800", "x" * 10_001, "# x \\\nrm y", "a # x \\\nrm y", "$((1)) $((", "(" * 100 + "a" + ")" * 100, "\\", "a \\",
    "f() (a) b", "a (b)", "a &&", "| a", "a | | b", "case a in b) c",
])
def test_what_would_be_misread_is_not_understood(command: str) -> None:
    assert opaque(command)


@pytest.mark.parametrize("command", [
    "ls -la", "cat a.txt", "git log --oneline -5 -- src", "npm run test:unit", "pip install 'x>=1.0'",
    "find . -name '*.py' -type f",
    "grep -rn \"foo bar\" src --include=*.py | head -20", "docker run --rm -v \"$PWD\":/x img:1.2 sh -c 'echo hi'",
    "cd /tmp && ls; cd -", "for f in *.txt; do wc -l \"$f\"; done", "export PATH=$PATH:/x/bin",
    "test -f x && echo yes || echo no",
    "curl -sS -H 'A: b' https://x.test/y?z=1 | jq '.a[0]'", "python - <<'EOF'\nprint('it`s $(x)')\nEOF",
    "make -j4 2>&1 | tee log",
    "awk '{print $1}' f", "sed -n '1,5p' f", "echo \"$HOME\" ${HOME} \"a$b\"c", "a=$(date +%s); echo $a",
    "while read -r l; do echo $l; done < f",
    "git commit -m \"$(cat <<'EOF'\nsubject\n\nit's a body\nEOF\n)\"", "tar czf - x | ssh h 'cat > y'", "sleep 1 &", "kill %1",
    "ls {a,b}.txt",
    "echo 'a'\\''b'", "printf '%s\\n' \"${a[@]}\"", "x() { echo 1; }; x", "cmd1 \\\n  --flag \\\n  value",
    "echo a >> b 2>/dev/null", "! grep -q x y",
    "if [ -z \"$x\" ]; then echo empty; fi", "echo $((1 + 2))", "case \"$1\" in -h) usage;; esac", "env -i A=1 b", "echo ~ ~/x",
    "a=b c d=e",
    "ls -d */", "echo {1..5}", "echo a=b", "git diff HEAD~1..HEAD", "git show @{u}", "cat <<EOF\nplain $x text\nEOF", "time make",
    "jq -r '.[] | select(.a == \"b\")' f", "echo é ü 漢", "git log --pretty=format:'%h %s'", "node -e \"console.log(1)\"",
    "echo [a-z]* ?x", "(cd x && make) || exit 1", "[[ -n $x && $y == z ]] && echo ok", "xargs -n1 echo < f", "echo \\$x \\\"",
])
def test_ordinary_commands_are_understood(command: str) -> None:
    assert not opaque(command)


@given(st.lists(st.text("abcxyzABC019_./:,@%+=-", min_size=1, max_size=8), min_size=1, max_size=6))
def test_the_literal_way_reads_what_the_tree_reads(words: list[str]) -> None:
    """A command without any special character means the same on both ways in."""
    command = " ".join(words)
    parser = Parser()
    try:
        quick = parser.parse(command)
    except Opaque:
        return
    if parser._parser is not None:
        return  # it went through the tree
    data = command.encode()
    slow = read(command, parser._tree(data), ascii=True)
    assert [(s.text, [w.value for w in s.words], [w.plain for w in s.words]) for s in quick.simples] == \
        [(s.text, [w.value for w in s.words], [w.plain for w in s.words]) for s in slow.simples]


@given(st.text(max_size=300))
@settings(max_examples=300)
def test_no_text_makes_the_reader_fail(text: str) -> None:
    """Whatever the text, there is a script or a reason."""
    try:
        found: Script | str = PARSER.parse(text)
    except Opaque as error:
        found = str(error)
    assert found


@given(st.text("ab$(){}[]<>|&;'\"`\\ \n#=!*?~-", max_size=40))
@settings(max_examples=500)
def test_no_shell_like_text_makes_a_decision_fail(text: str) -> None:
    paper = Paper(allow=["Bash(a *)"], deny=["Bash(b *)", "Read(.env)"])
    for mode in ("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions", "auto"):
        assert paper.bash(text, mode=mode) in ("allow", "ask", "deny")


@pytest.mark.parametrize(("text", "expected"), [
    ("a  b\t\tc", "a b c"), (" a ", "a"), ("a '  b  '", "a '  b  '"), ('a "x \\"  y"', 'a "x \\"  y"'), ("a\\  b", "a\\  b"),
    ("a\u00a0 b", "a\u00a0 b"), ("a\n b", "a\n b"),
])
def test_only_blanks_outside_quotes_are_made_one(text: str, expected: str) -> None:
    assert split_blanks(text) == expected


@pytest.mark.parametrize(("word", "expected"), [
    ("{a,b}", ["a", "b"]), ("x{a,b}y", ["xay", "xby"]), ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]), ("{}", ["{}"]),
    ("{a}", ["{a}"]),
    ("{1..3}", ["1", "2", "3"]), ("{c..a}", ["c", "b", "a"]), ("{1..9..4}", ["1", "5", "9"]), ("{a,{b,c}}", ["a", "b", "c"]),
    ("{a,b", ["{a,b"]),
    ("a{,b}", ["a", "ab"]), ("{1..99999}", None), ("'{a,b}'", ["{a,b}"]), ("{1..99999999999}", None),
])
def test_braces_expand_as_the_shell_does_it(word: str, expected: list[str] | None) -> None:
    found = expand_braces(PARSER.parse(f"echo {word} ;").simples[0].words[1])
    assert (None if found is None else [w.value for w in found]) == expected


def test_lines_are_joined_outside_quotes_only() -> None:
    assert join_lines("a \\\nb 'c\\\nd' \"e\\\nf\" $'g\\\nh'") == "a b 'c\\\nd' \"ef\" $'g\\\nh'"
    assert join_lines("a \\\\\nb") == "a \\\\\nb"


def test_scripts_are_remembered_but_not_without_end() -> None:
    parser = Parser()
    first = parser.parse("a; b")
    assert parser.parse("a; b") is first
    for n in range(1_100):
        parser.parse(f"a {n}")
    assert len(parser._known) <= 600


def test_the_parser_is_given_ascii_only() -> None:
    """The grammar's C code reads beyond its tables for other characters, which ended the process now and then."""
    given: list[bytes] = []

    class Spy(Parser):
        def _tree(self, data: bytes) -> object:
            root = super()._tree(data)
            given.append(root.text or b"")
            return root
    script = Spy().parse("echo {\U000c7e8b é 'ü'; x=漢 y")
    assert [s.text for s in script.simples] == ["echo {\U000c7e8b é 'ü'", "x=漢 y"]
    assert all(data.isascii() for data in given) and given


@pytest.mark.parametrize("command", ["é=1 ls", "for é in a; do ls; done", "cat <<é\nx\né"])
def test_letters_beyond_ascii_make_no_name(command: str) -> None:
    """The parser sees an underscore in their place, which could begin a name; a shell takes them for something else."""
    assert opaque(command)


def test_tree_sitter_is_not_imported_before_a_command_needs_it() -> None:
    code = """
import sys, kernel_permissions.plugin, kernel_permissions.sources
from kernel_permissions.paper import Paper
assert Paper(allow=['Bash(npm *)']).bash('npm test') == 'allow'
assert 'tree_sitter' not in sys.modules
assert Paper().bash('ls | wc -l') == 'allow'
assert 'tree_sitter' in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
