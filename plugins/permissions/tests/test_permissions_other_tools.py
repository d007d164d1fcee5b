"""Web, MCP, agents, skills, PowerShell, and the condition of a hook.

Permissions contract, 5.9, 6.1 and 6.3 to 6.5; hooks contract, section 5.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_permissions import powershell
from kernel_permissions.paper import Paper, PaperView
from kernel_permissions.specifiers import host_matches, host_of
from kernel_permissions.syntax import Opaque


@pytest.mark.parametrize(("url", "host"), [
    ("https://example.com/x", "example.com"), ("http://EXAMPLE.com:8080/", "example.com"),
    ("https://user:pw@example.com/", "example.com"),
    ("https://example.com./", "example.com"), ("https://b\u00fccher.example/", "xn--bcher-kva.example"),
    ("https://[::1]/", "::1"),
    ("http://docs.good.test.evil.test/", "docs.good.test.evil.test"), ("http://docs.good.test@evil.test/", "evil.test"),
    ("http://evil.test\x00.docs.good.test/", None), ("http://good.test\\@evil.test/", None),
    ("http://good.test\t.evil.test/", None),
    ("ftp://example.com/", None), ("https:///x", None), ("example.com", None), ("", None), (None, None), (7, None),
    ("http://ex%61mple.com/", None),
    ("http://[::1/", None), ("http://a b/", None), ("https://\u2025/", None), ("https://fu\u00df.de/", None),
    ("https://\uff45xample.com/", None), ("https://a,b/", None),
])
def test_the_host_is_what_a_url_parser_says(url: object, host: str | None) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(("pattern", "host", "expected"), [
    ("example.com", "example.com", True), ("example.com", "a.example.com", False), ("example.com", "xexample.com", False),
    ("*.example.com", "a.b.example.com", True), ("*.example.com", "example.com", False), ("*", "any.host", True),
    ("example.*", "example.org", True),
    ("example.*", "example.evil.com", False), ("EXAMPLE.com.", "example.com", True), ("*.co.*", "a.b.co.uk", True),
    ("api-*.x.test", "api-1.x.test", True),
    ("api-*.x.test", "api-1.y.x.test", False), ("b\u00fccher.example", "xn--bcher-kva.example", True), ("", "x", False),
    ("*x.test", "ax.test", True),
])
def test_domain_patterns(pattern: str, host: str, expected: bool) -> None:
    assert host_matches(pattern, host) is expected


@given(st.text(max_size=30))
def test_no_url_makes_a_decision_fail(url: str) -> None:
    assert Paper(allow=["WebFetch(domain:a.test)"]).decide("WebFetch", {"url": f"https://{url}"}).behavior in ("allow", "ask")


def test_a_url_that_can_be_read_in_two_ways_is_not_allowed_and_meets_deny_rules() -> None:
    url = "http://good.test\\@evil.test/"
    assert Paper(allow=["WebFetch(domain:*)"]).decide("WebFetch", {"url": url}).behavior == "ask"
    assert Paper(allow=["WebFetch"], deny=["WebFetch(domain:evil.test)"]).decide("WebFetch", {"url": url}).behavior == "deny"


@pytest.mark.parametrize(("rules", "tool", "input", "expected"), [
    ({"allow": ["WebFetch(domain:a.test)"]}, "WebFetch", {"url": "https://a.test/"}, "allow"),
    ({}, "WebFetch", {"url": "https://a.test/"}, "ask"),
    ({"allow": ["WebFetch"], "deny": ["WebFetch(domain:*.a.test)"]}, "WebFetch", {"url": "https://x.a.test/"}, "deny"),
    ({"allow": ["WebFetch(domain:*)"]}, "WebFetch", {"url": "https://a.test/"}, "allow"),
    ({"allow": ["WebSearch"]}, "WebSearch", {"query": "x"}, "allow"),
    ({"allow": ["mcp__git"]}, "mcp__git__log", {}, "allow"), ({"allow": ["mcp__git"]}, "mcp__github__log", {}, "ask"),
    ({"allow": ["mcp__git__*"]}, "mcp__git__log", {}, "allow"), ({"allow": ["mcp__git__log"]}, "mcp__git__push", {}, "ask"),
    ({"allow": ["mcp__git__get_*"]}, "mcp__git__get_x", {}, "allow"),
    ({"allow": ["mcp__git"], "deny": ["mcp__git__push"]}, "mcp__git__push", {}, "deny"),
    ({"allow": ["mcp__my.server"]}, "mcp__my_server__x", {}, "allow"),
    ({"deny": ["mcp__a__b(path:/etc*)"]}, "mcp__a__b", {"path": "/etc/x"}, "ask"),
    ({"deny": ["Agent(Explore)"]}, "Agent", {"subagent_type": "Explore"}, "deny"),
    ({"deny": ["Task(Explore)"]}, "Agent", {"subagent_type": "Explore"}, "deny"),
    ({"deny": ["Agent(Explore)"]}, "Agent", {"subagent_type": "Plan"}, "allow"),
    ({"deny": ["Agent(general-purpose)"]}, "Agent", {}, "deny"),
    ({"ask": ["Agent"]}, "Agent", {}, "ask"), ({"allow": ["Skill(a)"]}, "Skill", {"skill": "a"}, "allow"),
    ({"allow": ["Skill(a)"]}, "Skill", {"skill": "ab"}, "ask"),
    ({"allow": ["Skill(a *)"]}, "Skill", {"skill": "a", "args": "x y"}, "allow"),
    ({"allow": ["Skill(a *)"]}, "Skill", {"skill": "ab"}, "ask"), ({"allow": ["Skill(p:a)"]}, "Skill", {"skill": "p:a"}, "allow"),
    ({"allow": ["Skill"], "deny": ["Skill(a)"]}, "Skill", {"skill": "/a", "args": "x"}, "deny"),
    ({"allow": ["Skill(a)"]}, "Skill", {}, "ask"),
    ({"allow": ["Skill(a:*)"]}, "Skill", {"skill": "a", "args": "b"}, "allow"), ({"deny": ["Monitor"]}, "Monitor", {}, "deny"),
    ({"allow": ["Cd(x/**)"]}, "TodoWrite", {}, "allow"), ({"deny": ["TodoWrite"]}, "TodoWrite", {}, "deny"),
    ({"ask": ["*"]}, "TaskList", {}, "ask"),
])
def test_other_tools(rules: dict[str, Any], tool: str, input: dict[str, Any], expected: str) -> None:
    if "/etc" in str(rules):  # a parameter rule needs the tool's schema, and this stand-in has none: the tool itself asks
        assert Paper(**rules).decide(tool, input).behavior == expected
        return
    assert Paper(**rules).decide(tool, input).behavior == expected


# -- PowerShell -----------------------------------------------------------------------------------------------------------
PWSH = {"view": PaperView(home="C:\\Users\\u", windows=True), "cwd": "C:\\proj\\app"}


@pytest.mark.parametrize(("command", "rules", "expected"), [
    ("Get-ChildItem src", {"allow": ["PowerShell(Get-ChildItem *)"]}, "allow"),
    ("gci src", {"allow": ["PowerShell(Get-ChildItem *)"]}, "allow"),
    ("LS", {"allow": ["PowerShell(get-childitem *)"]}, "allow"), ("dir x; make", {"allow": ["PowerShell(dir *)"]}, "ask"),
    ("gci | select name", {"allow": ["PowerShell(Get-ChildItem *)", "PowerShell(Select-Object *)"]}, "allow"),
    ("gci && RM x", {"allow": ["PowerShell"], "deny": ["PowerShell(Remove-Item *)"]}, "deny"),
    ("Remove-Item x", {"allow": ["PowerShell"], "deny": ["PowerShell(rm *)"]}, "deny"),
    ("Microsoft.PowerShell.Management\\Remove-Item x", {"allow": ["PowerShell"], "deny": ["PowerShell(del *)"]}, "deny"),
    ("'a;b' | x", {"allow": ["PowerShell"]}, "ask"), ("echo \"a; rm x\"", {"allow": ["PowerShell(echo *)"]}, "allow"),
    ("& rm x", {"allow": ["PowerShell"]}, "ask"), ("$(rm x)", {"allow": ["PowerShell"]}, "ask"),
    ("if ($x) { rm y }", {"allow": ["PowerShell"]}, "ask"),
    ("echo `n", {"allow": ["PowerShell"]}, "ask"), ("echo \u201ca\u201d", {"allow": ["PowerShell"]}, "ask"),
    ("$x = 1", {"allow": ["PowerShell"]}, "ask"),
    ("echo a > b", {"allow": ["PowerShell"]}, "ask"), ("echo 'x", {"allow": ["PowerShell"]}, "ask"),
    ("echo \"$(rm x)\"", {"allow": ["PowerShell"]}, "ask"),
    ("& rm x", {"allow": ["PowerShell"], "deny": ["PowerShell(rm *)"]}, "deny"), ("make", {}, "ask"),
    ("", {"allow": ["PowerShell"]}, "ask"),
    ("rm -Recurse .", {"allow": ["PowerShell"]}, "ask"), ("rm -Recurse ..", {"allow": ["PowerShell"]}, "deny"),
    ("rm old.txt", {"allow": ["PowerShell"]}, "allow"),
])
def test_powershell(command: str, rules: dict[str, Any], expected: str) -> None:
    assert Paper(**rules, **PWSH).decide("PowerShell", {"command": command}).behavior == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("target", [
    "C:\\", "C:", "c:\\Windows", "/", "\\", "~", "$HOME", "$env:USERPROFILE", "C:\\Users\\u", "*", ".\\*", "src/*", "$d\\*",
    "x,C:\\",
    "'C:\\'", "..\\..",
])
@pytest.mark.parametrize("mode", ["default", "bypassPermissions", "acceptEdits"])
def test_powershell_never_removes_system_paths_or_everything(target: str, mode: str) -> None:
    paper = Paper(allow=["PowerShell"], **PWSH)  # type: ignore[arg-type]
    for command in (f"Remove-Item {target}", f"rm -Recurse -Force {target}", f"ls; del -Path {target}"):
        assert paper.decide("PowerShell", {"command": command}, mode=mode).behavior == "deny", command


def test_bypass_skips_the_question_about_the_working_directory() -> None:
    paper = Paper(**PWSH)  # type: ignore[arg-type]
    assert paper.decide("PowerShell", {"command": "rm -Recurse ."}, mode="bypassPermissions").behavior == "allow"


@given(st.text("ab$(){}|;&'\"` \n-\\/*=", max_size=30))
def test_no_powershell_text_makes_the_reader_fail(text: str) -> None:
    try:
        powershell.read(text)
    except Opaque as error:
        return assert_reason(str(error))
    assert Paper(allow=["PowerShell"]).decide("PowerShell", {"command": text}).behavior in ("allow", "ask", "deny")
    return None


def assert_reason(text: str) -> None:
    assert text


# -- the condition of a hook ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("rule", "tool", "input", "expected"), [
    ("Bash(git *)", "Bash", {"command": "FOO=bar git push"}, True),
    ("Bash(git *)", "Bash", {"command": "npm test && git push"}, True),
    ("Bash(git *)", "Bash", {"command": "echo $(git log)"}, True), ("Bash(rm *)", "Bash", {"command": "echo $(rm -rf /)"}, True),
    ("Bash(rm *)", "Bash", {"command": "echo $(date)"}, False), ("Bash(git *)", "Bash", {"command": "echo $(date)"}, False),
    ("Bash(git push *)", "Bash", {"command": "echo $(date)"}, True),
    ("Bash(git push *)", "Bash", {"command": "echo `date`"}, True),
    ("Bash(git push *)", "Bash", {"command": "echo $X"}, True), ("Bash(git push *)", "Bash", {"command": "git pull"}, False),
    ("Bash(rm *)", "Bash", {"command": "echo 'unterminated"}, True), ("Bash(rm *)", "Bash", {"command": "$CMD x"}, True),
    ("Bash(ls *)", "Bash", {"command": "lsof"}, False), ("Bash(ls*)", "Bash", {"command": "lsof"}, True),
    ("Bash(git push:*)", "Bash", {"command": "git push x"}, True),
    ("Bash(git commit:*)", "Bash", {"command": "git push x"}, False), ("Bash(rm *)", "Bash", {"command": "timeout 5 rm x"}, True),
    ("Bash(rm *)", "Bash", {"command": "ls | xargs rm"}, True), ("Bash", "Bash", {"command": "x"}, True),
    ("Bash(*)", "Bash", {"command": "x"}, True),
    ("Bash(x *)", "PowerShell", {"command": "x y"}, False), ("Edit(*.ts)", "Edit", {"file_path": "/proj/app/a/b.ts"}, True),
    ("Edit(*.ts)", "Write", {"file_path": "/proj/app/b.ts"}, False),
    ("Edit(src/**)", "Edit", {"file_path": "/proj/app/v/src/a"}, False),
    ("Edit(src/**)", "Edit", {"file_path": "/proj/app/src/a"}, True),
    ("Edit(**/src/**)", "Edit", {"file_path": "/proj/app/v/src/a"}, True),
    ("Write(*.ts)", "Write", {"file_path": "/proj/app/b.ts"}, True), ("Read(//etc/**)", "Read", {"file_path": "/etc/x"}, True),
    ("Edit(/src/**)", "Edit", {"file_path": "/proj/app/src/a"}, True), ("mcp__a__b", "mcp__a__b", {}, True),
    ("mcp__a", "mcp__a__b", {}, True),
    ("mcp__a__c", "mcp__a__b", {}, False), ("Task", "Agent", {}, True),
    ("Agent(Explore)", "Agent", {"subagent_type": "Explore"}, True),
    ("Agent(Explore)", "Agent", {"subagent_type": "Plan"}, False), ("Agent(model:opus)", "Agent", {"model": "opus"}, True),
    ("WebFetch(domain:a.test)", "WebFetch", {"url": "https://b.test"}, False),
    ("Bash(git *) && Bash(rm *)", "Bash", {"command": "ls"}, False),
    ("Bash(", "Bash", {"command": "x"}, True), ("", "Bash", {"command": "x"}, True),
    ("Bash(x) y", "Read", {"file_path": "x"}, True),
    ("PowerShell(rm *)", "PowerShell", {"command": "del x"}, True), ("PowerShell(rm *)", "PowerShell", {"command": "& x"}, True),
])
def test_the_condition_of_a_hook(rule: str, tool: str, input: dict[str, Any], expected: bool) -> None:
    paper = Paper()
    assert paper.policy.matches(rule, tool, input) is expected
    assert bool(paper.warnings) is (rule in ("Bash(", "", "Bash(x) y"))


@given(st.text(max_size=20), st.sampled_from(["Bash", "Edit", "WebFetch", "X"]), st.text(max_size=20))
def test_no_condition_makes_a_hook_fail(rule: str, tool: str, value: str) -> None:
    assert Paper().policy.matches(rule, tool, {"command": value, "file_path": value, "url": value}) in (True, False)
