"""The grammar of rules, their lists, and patterns (permissions contract, sections 2, 3 and 5.5)."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from kernel_permissions.paper import Paper, paper_tool
from kernel_permissions.patterns import CommandPattern, Star
from kernel_permissions.rules import Rule, RuleError, faults, parse, split_flag


@pytest.mark.parametrize(("text", "expected"), [
    ("Bash", ("Bash", None)), ("Bash()", ("Bash", None)), ("Bash(*)", ("Bash", None)),
    (" Bash ( git push ) ", ("Bash", "git push")),
    ("Bash(echo \\(x\\) \\\\ y)", ("Bash", "echo (x) \\ y")), ("Bash(echo (x))", ("Bash", "echo (x)")),
    ("Task(x)", ("Agent", "x")),
    ("mcp__a b.c__d", ("mcp__a_b_c__d", None)), ("*", ("*", None)), ("mcp__*", ("mcp__*", None)),
    ("Bash(a\\*b)", ("Bash", "a\\*b")),
])
def test_a_rule_is_a_tool_and_a_specifier(text: str, expected: tuple[str, str | None]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["Bash(", "Bash(x", "(x)", "Bash(x) y", "B ash", "", "9x", "Bash)x("])
def test_what_does_not_parse_says_so(text: str) -> None:
    with pytest.raises(RuleError):
        parse(text)


@pytest.mark.parametrize(("text", "behavior", "fault", "counts"), [
    ("mcp__*", "allow", "glob", False), ("*", "allow", "glob", False), ("B*", "allow", "glob", False),
    ("mcp__github__get_*", "allow", "", True), ("mcp__git*__get", "allow", "glob", False), ("mcp__*", "deny", "", True),
    ("*", "ask", "", True), ("Nope", "deny", "no such tool", True), ("Nope", "allow", "", True), ("my_tool", "deny", "", True),
    ("Bash(command:rm *)", "deny", "command", False), ("Read(file_path:x)", "ask", "file_path", False),
    ("Bash(command:rm *)", "allow", "", True), ("WebFetch(domain:x)", "deny", "", True),
    ("WebFetch(x.com)", "allow", "domain", False),
    ("Write(docs/**)", "deny", "Edit", False), ("Glob(src/**)", "allow", "Read", False), ("Write", "deny", "", True),
    ("NotebookEdit(x)", "ask", "Edit", False), ("Write(content:x)", "deny", "", True),
    ("WebSearch(x)", "allow", "no specifier", False), ("TodoWrite(x)", "deny", "no specifier", False),
    ("mcp__a__b(x)", "deny", "no specifier", False), ("mcp__a__b(p:x)", "deny", "", True), ("Weather(x)", "allow", "", True),
    ("Grep(src/**)", "deny", "Read", False),
    ("Read(!x)", "deny", "'!'", False),
])
def test_faults_are_named_and_decide_whether_the_rule_counts(text: str, behavior: str, fault: str, counts: bool) -> None:
    found, usable = faults(Rule(text, behavior, "project"), set())  # type: ignore[arg-type]
    assert (fault in found) and bool(found) is bool(fault)
    assert usable is counts


def test_a_glob_rule_for_the_glob_tool_on_the_command_line_is_silent() -> None:
    assert faults(Rule("Glob(src/**)", "allow", "cli"), set()) == ("", False)


def test_tools_of_plugins_are_known() -> None:
    assert faults(Rule("Weather", "deny", "user"), {"Weather"}) == ("", True)


@pytest.mark.parametrize(("value", "expected"), [
    (["Bash(git commit *),Read Edit"], ["Bash(git commit *)", "Read", "Edit"]), (["a,b", "c d"], ["a", "b", "c", "d"]),
    (["Bash(a,b c),  mcp__x"], ["Bash(a,b c)", "mcp__x"]), ([" , "], []), (["Bash(a (b, c) d)"], ["Bash(a (b, c) d)"]),
    (["Bash(unclosed a"], ["Bash(unclosed a"]), (["a)b,c"], ["a)b", "c"]),
])
def test_rules_of_a_flag_are_cut_outside_parentheses(value: list[str], expected: list[str]) -> None:
    assert split_flag(value) == expected


@pytest.mark.parametrize(("pattern", "text", "expected"), [
    ("npm run build", "npm run build", True), ("npm run build", "npm run build --x", False),
    ("ls *", "ls", True), ("ls *", "ls -la", True), ("ls *", "lsof", False), ("ls*", "lsof", True), ("ls*", "ls -la", True),
    ("npm:*", "npm", True), ("npm:*", "npm x", True), ("npm:*", "npmx", False), ("git:* push", "git push", False),
    ("git * main", "git push main", True), ("git * main", "git main", False), ("* --version", "node --version", True),
    ("git  commit   *", "git commit -m x", True), ("a?b", "axb", False), ("a[x]", "ax", False), ("Git *", "git x", False),
    ("a*b*c", "aXbYc", True), ("a*b*c", "acb", False), ("*", "anything", True), ("a**b", "ab", True),
    ("git commit *", "git commit\n", False),
    ("a *", "a b\nc", True),
])
def test_command_patterns(pattern: str, text: str, expected: bool) -> None:
    assert CommandPattern(pattern).matches(text) is expected


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_a_star_stands_for_any_run_of_characters(pattern: str, text: str) -> None:
    import re

    regex = ".*".join(map(re.escape, pattern.split("*")))
    assert Star(pattern).matches(text) is (re.fullmatch(regex, text, re.DOTALL) is not None)


@pytest.mark.parametrize(("rule", "tool", "input", "expected"), [
    ("Bash(run_in_background:true)", "Bash", {"command": "ls", "run_in_background": True}, True),
    ("Bash(run_in_background:true)", "Bash", {"command": "ls", "run_in_background": False}, False),
    ("Bash(run_in_background:*)", "Bash", {"command": "ls"}, False),
    ("Bash( timeout : 5* )", "Bash", {"command": "ls", "timeout": 5000}, True),
    ("Agent(model:opus)", "Agent", {"model": "opus", "prompt": "x"}, True),
    ("Agent(model:opus)", "Agent", {"model": "opusx"}, False),
    ("Agent(isolation:*)", "Agent", {"isolation": "worktree"}, True), ("Agent(isolation:*)", "Agent", {"isolation": None}, True),
    ("Agent(prompt:*secret*)", "Agent", {"prompt": "the secret plan"}, True),
    ("Agent(model:*)", "Agent", {"model": {"x": 1}}, False),
    ("Read(limit:10)", "Read", {"file_path": "/proj/app/x", "limit": 10}, True),
    ("Read(limit:10)", "Read", {"file_path": "/proj/app/x"}, False),
    ("WebFetch(prompt:x)", "WebFetch", {"url": "https://a.test", "prompt": "x"}, True),
])
def test_parameter_rules_compare_one_scalar(rule: str, tool: str, input: dict[str, object], expected: bool) -> None:
    assert (Paper(deny=[rule]).decide(tool, input).behavior == "deny") is expected


def test_a_glob_for_the_tool_may_have_a_specifier() -> None:
    assert Paper(allow=["Bash"], deny=["*(rm *)"]).bash("sudo rm x") == "deny"
    assert Paper(deny=["*(.env)"]).decide("Read", {"file_path": ".env"}).behavior == "deny"
    assert Paper(deny=["B*(git push *)"], allow=["Bash"]).bash("$X y") == "ask"


def test_the_first_list_with_a_match_decides() -> None:
    lists = {"allow": ["Bash(a *)"], "ask": ["Bash(a b *)"], "deny": ["Bash(a b c)"]}
    paper = Paper(**lists)
    assert [paper.bash(c) for c in ("a x", "a b x", "a b c", "b")] == ["allow", "ask", "deny", "ask"]


@pytest.mark.parametrize(("deny", "tool", "visible"), [
    ("Bash", "Bash", False), ("Bash(*)", "Bash", False), ("Bash()", "Bash", False), ("Bash(x)", "Bash", True),
    ("*", "Read", False),
    ("mcp__a", "mcp__a__x", False), ("mcp__a__*", "mcp__a__x", False), ("mcp__a", "mcp__ab__x", True),
    ("mcp__a__y", "mcp__a__x", True),
    ("Task", "Agent", False), ("*", "EndConversation", True), ("*Edit", "NotebookEdit", False), ("Edit", "Write", True),
])
def test_a_bare_deny_takes_the_tool_from_the_models_sight(deny: str, tool: str, visible: bool) -> None:
    assert Paper(deny=[deny]).policy.is_visible(paper_tool(tool)) is visible


def test_nothing_stands_in_the_way_of_ending_the_conversation() -> None:
    assert Paper(deny=["*"], ask=["*"]).decide("EndConversation", {}).behavior == "allow"


@given(st.sampled_from(["Bash", "Read", "Edit", "Agent", "WebFetch", "mcp__a__b"]), st.text(max_size=30))
def test_any_specifier_can_be_decided_upon(tool: str, specifier: str) -> None:
    """A strange rule is skipped or matched; it never ends a decision."""
    try:
        paper = Paper(deny=[f"{tool}({specifier})"], allow=[f"{tool}({specifier})"])
    except RuleError:
        return
    for name, input in (
            ("Bash", {"command": "ls -l | cat"}), ("Read", {"file_path": "/proj/app/x"}), ("Edit", {"file_path": "x"}),
            ("Agent", {}), ("WebFetch", {"url": "https://x.test"}), ("mcp__a__b", {})):
        assert paper.decide(name, input).behavior in ("allow", "ask", "deny")
