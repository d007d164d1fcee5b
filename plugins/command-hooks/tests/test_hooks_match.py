"""Matchers (hooks contract, section 4)."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given, strategies as st
from kernel_command_hooks.match import Matcher, translate

TABLE = [
    # matcher, value, covers
    (None, "Bash", True), ("", "Bash", True), ("*", "mcp__db__query", True),
    ("Bash", "Bash", True), ("Ba", "Bash", False), ("bash", "Bash", False), ("Edit", "NotebookEdit", False),
    ("Edit|Write", "Write", True), ("Edit, Write", "Write", True), (" Write | Read ", "Read", True),
    ("Edit||Write", "Write", True),
    ("Edit.*", "NotebookEdit", True), ("^Edit$", "NotebookEdit", False), ("^Ba.*", "Bash", True),
    ("code-reviewer", "senior-code-reviewer", False),
    ("mcp__memory", "mcp__memory__write", False), ("mcp__memory__.*", "mcp__memory__write", True),
    ("mcp__.*__write.*", "mcp__db__write_row", True), ("mcp__brave-search", "mcp__brave-search__web", False),
    ("Bash(git push)", "Bash", False), ("Bash(git *)", "Bash", False),
    ("[invalid", "Bash", False), ("*.php|*.ts", "Write", False), ("Write(docs/**)", "Write", False),
    ("my-plugin:reviewer", "my-plugin:reviewer-fast", True), ("^my-plugin:reviewer$", "my-plugin:reviewer-fast", False),
    ("|", "Bash", False), (" ", "Bash", False), (",", "", False),
]


@pytest.mark.parametrize(("matcher", "value", "covers"), TABLE)
def test_a_matcher_covers_what_the_contract_says(matcher: str | None, value: str, covers: bool) -> None:
    assert Matcher(matcher)([value]) is covers


@pytest.mark.parametrize(("matcher", "value", "covers"), [
    ("rate_limit|overloaded", "rate_limit", True), ("rate_limit, overloaded", "rate_limit", False), ("rate_limit", "rate", False),
    (".envrc|.env", ".env", True), ("data.csv", "data.csv", True), ("a-b", "xa-by", True),
])
def test_the_narrow_class_knows_one_separator(matcher: str, value: str, covers: bool) -> None:
    assert Matcher(matcher, narrow=True)([value]) is covers


def test_an_old_name_of_a_tool_matches_too() -> None:
    assert Matcher("Task")(("Agent", "Task"))
    assert Matcher("^Task$")(("Agent", "Task"))
    assert not Matcher("Task")(("Agent",))


@pytest.mark.parametrize("matcher", ["[invalid", "*", "a**", "(?P<n>x)", "(?i)bash", "(", "x\\", "a++", "|", " , "])
def test_a_matcher_that_works_nowhere_says_why(matcher: str) -> None:
    assert bool(Matcher(matcher).problem) is (matcher != "*")


@pytest.mark.parametrize(("pattern", "text", "hit"), [
    ("a$", "a", True), ("a$", "a\n", False), ("^b", "a\nb", False),
    ("(?<y>a)\\k<y>", "aa", True), ("[^]", "\n", True), ("x[]", "x", False), ("[[]", "[", True), ("[a&&b]", "&", True),
    ("\\Aa", "Aa", True), ("\\e", "e", True), ("a{2,3}?b", "aab", True), ("a{,2}", "a{,2}", True), ("\\u0041", "A", True),
    ("(?=a)a(?!b)", "ac", True), ("(?<=x)y", "xy", True), ("\\/", "/", True), ("\\0", "\0", True), ("[\\b]", "\b", True),
])
def test_expressions_mean_what_they_mean_in_javascript(pattern: str, text: str, hit: bool) -> None:
    assert bool(re.search(translate(pattern), text)) is hit


@given(st.text(max_size=40), st.text(max_size=20), st.booleans())
def test_no_matcher_of_a_stranger_raises(matcher: str, value: str, narrow: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert Matcher(matcher, narrow)([value]) in (True, False)


@given(st.lists(st.text("abcXYZ019_-", min_size=1, max_size=8), min_size=1, max_size=5), st.sampled_from(["|", ",", " , ", "| "]))
def test_a_list_of_names_covers_exactly_its_names(names: list[str], separator: str) -> None:
    matcher = Matcher(separator.join(names))
    assert all(matcher([name]) for name in names)
    assert not matcher([names[0] + "q"]) or names[0] + "q" in names
