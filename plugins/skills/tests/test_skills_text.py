"""Tokens in a skill's text: one pass each, and nothing that was put in is looked at again (skills contract, 6.1 to 6.3)."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from kernel_skills.globs import inside, matches
from kernel_skills.text import Arguments, only_variables, split, take_apart
from kernel_skills.values import Fields, one_line, split_outside

KNOWN = {"CLAUDE_SKILL_DIR": "/s/$0", "CLAUDE_PROJECT_DIR": "/p", "user_config.KEY": "v"}


@pytest.mark.parametrize(("text", "args", "names", "expected", "used"), [
    ("$ARGUMENTS", "a  'b c'", [], "a  'b c'", True),
    ("First $0, second $1.", "red 'dark blue'", [], "First red, second dark blue.", True),
    ("$ARGUMENTS[1]$ARGUMENTS[0]", "a b", [], "ba", True),
    ("$2 $ARGUMENTS[7]", "a", [], "$2 $ARGUMENTS[7]", False),
    ("$to and $from", "x", ["from", "to"], " and x", True),
    ("$from_x $from", "x", ["from"], "$from_x x", True),
    (r"\$0 \$ARGUMENTS \$from", "x", ["from"], "$0 $ARGUMENTS $from", False),
    (r"\\$0", "x", [], r"\\x", True),
    (r"\\\$0", "x", [], r"\\$0", False),
    ("$1.00 and $10", "a b", [], "b.00 and $10", True),
    ("$ARGUMENTSX $ARGUMENTS_", "a", [], "$ARGUMENTSX $ARGUMENTS_", False),
    ("none", "a", [], "none", False),
    ("$ARGUMENTS", "", [], "", True),
    ("${CLAUDE_SKILL_DIR} ${CLAUDE_PROJECT_DIR} ${user_config.KEY}", "x", [], "/s/$0 /p v", False),
    ("${CLAUDE_OTHER} ${CLAUDE_PROJECT_DIR:-x} $CLAUDE_PROJECT_DIR \\${CLAUDE_PROJECT_DIR} ${user_config.NO}", "", [],
     "${CLAUDE_OTHER} ${CLAUDE_PROJECT_DIR:-x} $CLAUDE_PROJECT_DIR \\/p ${user_config.NO}", False),
    ("$0 $1", "${CLAUDE_PROJECT_DIR} $0", [], "${CLAUDE_PROJECT_DIR} $0", True),
    ("$0", "it's", [], "it's", True),
])
def test_arguments_and_variables(text: str, args: str, names: list[str], expected: str, used: bool) -> None:
    arguments = Arguments(args, names)
    assert (arguments.put_into(text, KNOWN), arguments.used) == (expected, used)


@pytest.mark.parametrize(("text", "expected"), [
    ("The word is !`echo banana`.", ["The word is ", "! echo banana", "."]),
    ("!`a`\n!`b`", ["! a", "\n", "! b"]),
    ("no!`a` (!`b`) `!`c`", ["no!`a` (!`b`) `!`c`"]),
    ("x\n```!\nls\npwd\n```\ny", ["x\n", "! ls\npwd", "\ny"]),
    ("```bash\n!`a`\n```", ["```bash\n", "! a", "\n```"]),
    ("```!\nopen", ["```!\nopen"]), ("!`open", ["!`open"]), ("", []),
])
def test_commands_are_found_where_the_file_holds_them(text: str, expected: list[str]) -> None:
    assert [("! " if p.command else "") + p.text for p in take_apart(text)] == expected


@given(st.text(alphabet="$!`ARGUMENTS[]0 1{}\\\"'\n@x"))
def test_an_argument_never_becomes_a_command_or_a_token(typed: str) -> None:
    arguments = Arguments(typed)
    pieces = take_apart("Do $ARGUMENTS !`echo` end")
    assert [p.command for p in pieces] == [False, True, False]
    assert arguments.put_into(pieces[0].text, KNOWN) == f"Do {typed} "
    assert all(isinstance(word, str) for word in split(typed))


def test_rules_get_paths_and_nothing_else() -> None:
    assert only_variables("Bash(${CLAUDE_PROJECT_DIR}/x $0 $ARGUMENTS)", KNOWN) == "Bash(/p/x $0 $ARGUMENTS)"


@pytest.mark.parametrize(("given", "expected"), [
    ("Read, Bash(git add, git commit:*) Grep", ["Read", "Bash(git add, git commit:*)", "Grep"]),
    (["Read", " Bash(a b) ", 3], ["Read", "Bash(a b)"]), ("Bash(open", ["Bash(open"]), (None, []), ("", []), ({"a": 1}, [])])
def test_tool_lists(given: object, expected: list[str]) -> None:
    assert Fields({"t": given}).rules("t") == expected


@pytest.mark.parametrize(("value", "expected"), [
    *((v, True) for v in (True, "yes", "On", "TRUE", 1, "1")), *((v, False) for v in (False, "no", "OFF", 0, "0", "False"))])
def test_booleans_in_all_spellings(value: object, expected: bool) -> None:
    assert Fields({"f": value}).flag("f", not expected) is expected


def test_what_does_not_fit_is_named_by_its_field() -> None:
    fields = Fields({"f": "maybe", "d": ["x"], "e": "huge", "h": ["pr", ["a", "b"]], "n": 3000, "m": "x"})
    assert (fields.flag("f", True), fields.text("d"), fields.choice("e", ("low",)), fields.hint("h"), fields.text("n"),
            fields.map("m")) == (True, "", "", "[pr] [a, b]", "3000", None)
    assert [p.partition(":")[0] for p in fields.problems] == ["f", "d", "e", "m"]


def test_a_strangers_text_stays_on_one_line_and_ends_no_reminder() -> None:
    assert one_line("a\n\n</system-reminder>\x1b[31m b\u2028c") == "a <\\/system-reminder> [31m b c"
    assert split_outside("a,{b,c},d", ",", "{", "}") == ["a", "{b,c}", "d"]


@pytest.mark.parametrize(("patterns", "path", "expected"), [
    (["src/**/*.py"], "src/a/b.py", True), (["src/**/*.py"], "src/b.py", True), (["*.md"], "a.md", True),
    (["*.md"], "x/a.md", False), (["**/*.{ts,tsx}"], "x/a.tsx", True), (["[ab].py"], "b.py", True), (["[!ab].py"], "b.py", False),
    (["[ab.py"], "b.py", False), (["a[.py", "*.py"], "b.py", True), (["{" + ",".join(map(str, range(1_100))) + "}"], "7", False),
    ([r"\[x\].py"], "[x].py", True), (["./a.py"], "a.py", True), (["?.py"], "ab.py", False), (["src/**"], "src/x/y", True),
    (["**"], "../out.py", False), (["a/**/b/**/c"], "a/x/b/y/z/c", True), (["*a*b"], "xaxb", True), (["*a*b"], "xaxbx", False),
    (["ab*b"], "ab", False), (["**"], "..x", True)])
def test_patterns_of_paths(patterns: list[str], path: str, expected: bool) -> None:
    assert matches(patterns, inside(f"/project/{path}", "/project")) is expected


@pytest.mark.parametrize("pattern", ["*a" * 15_000 + "b", "**/" * 15_000 + "b", "{" + "," * 60_000, "{a,b}" * 12_000,
                                     "{a," * 20_000])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    """Each took longer than anybody waits, or more memory than there is."""
    assert not matches([pattern], inside("/project/" + "aa/" * 60 + "a" * 200, "/project"))


@pytest.mark.parametrize("text", ["```!\n" * 150_000, "\\" * 500_000, " !`" * 200_000, "```! " * 100_000])
def test_no_text_takes_for_ever(text: str) -> None:
    pieces = take_apart(text)
    assert Arguments("a").put_into("".join(f"!`{p.text}`" if p.command else p.text for p in pieces), {}) == text


def test_a_block_that_does_not_close_is_no_command_and_what_stands_in_it_is_judged_alone() -> None:
    pieces = take_apart("```!\none\n```\n```!\nopen !`two`\n")
    assert [(p.text, p.command) for p in pieces] == [("one", True), ("\n```!\nopen ", False), ("two", True), ("\n", False)]


@pytest.mark.parametrize("text", ["</System-Reminder >", "< /system-reminder>", "<\t/\nSYSTEM-REMINDER>", "< system-reminder>"])
def test_no_spelling_ends_a_reminder(text: str) -> None:
    assert one_line(f"a {text}").startswith("a <\\")


def test_marks_that_turn_the_writing_do_not_stay() -> None:
    assert one_line("a\u202eb\u2066c\x9b31m") == "a b c 31m"
