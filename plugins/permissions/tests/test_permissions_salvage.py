"""What a settings file denied still holds when the file is broken; and what a rule for sed is meant for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from kernel_permissions.paper import Paper, paper_tool
from kernel_permissions.salvage import guards

from kernel import Harness, Options, PermissionCall
from kernel.testing import Kit


@pytest.mark.parametrize(("text", "found"), [
    ('{"permissions":{"deny":["Read(./.env)",]}}', ["Read(./.env)"]),
    ('{"permissions": {"deny": ["a", "b"\n "c"], "allow": ["x"]', ["a", "b", "c"]),
    ('{"permissions": {"allow": ["x"], "deny"  :  [ "a" , // why\n "b" ] } ', ["a", "b"]),
    ('{"permissions": {"deny": ["Bash(echo \\"]\\")", "b"]', ['Bash(echo "]")', "b"]),
    ('{"permissions": {"deny": ["a", "unclosed]}}', ["a"]), ('{"a": {"deny": ["x"]}, "deny": ["y"]', ["x", "y"]),
    ('{"deny": "x"', []), ("", []), ("\x00\xff", []), ('"deny": [[["a"]]]', ["a"]),
])
def test_guards_are_found_in_broken_text(text: str, found: list[str]) -> None:
    assert guards(text, "deny") == found


@given(st.text(max_size=200))
def test_no_text_is_too_broken(text: str) -> None:
    assert isinstance(guards('"deny": [' + text, "deny"), list)


@given(st.lists(st.text(max_size=12), max_size=5), st.integers(0, 40))
def test_every_whole_rule_before_the_break_is_kept(rules: list[str], cut: int) -> None:
    whole = json.dumps({"permissions": {"deny": rules}})
    text = whole[:max(0, len(whole) - cut)]
    found = guards(text, "deny")
    assert all(r in rules for r in found)
    if cut <= 2:
        assert found == list(dict.fromkeys(rules))


@pytest.mark.parametrize("scope", ["project", "local", "user"])
def test_the_run_goes_on_with_the_guards_and_without_the_rest(tmp_path: Path, scope: str,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    project = tmp_path / "project"
    file = {"project": project / ".claude/settings.json", "local": project / ".claude/settings.local.json",
            "user": tmp_path / ".claude/settings.json"}[scope]
    file.parent.mkdir(parents=True)
    project.mkdir(exist_ok=True)
    file.write_text('{"permissions": {"allow": ["Bash"], "ask": ["Bash(ls *)"], "deny": ["Read(.env)", "Nonsense(",]}}')
    kit = Kit(project, installed=["permissions"])
    kit.harness.settings = Harness(Options(cwd=project)).settings
    session = kit.open()

    def decide(tool: str, **input: str) -> str:
        call = PermissionCall(tool=paper_tool(tool), input=dict(input), cwd=str(project), mode="default")
        return session.policy.decide(call).behavior

    assert decide("Read", file_path=".env") == "deny" and decide("Read", file_path="a") == "allow"
    assert decide("Bash", command="ls") == "ask" and decide("Bash", command="make") == "ask"
    announced = "\n".join(kit.harness.announced)
    assert "still count: Read(.env)" in announced and "'Nonsense(' is skipped" in announced


@pytest.mark.parametrize(("command", "expected"), [
    ("sed -n 5p f", "allow"), ("sed -i 's/a/b/' f", "allow"), ("sed -i.bak -e 's/a/b/' -e '/x/d' f", "allow"),
    ("sed -E 's/(a)/\\1/' f", "allow"), ("sed -ne 5p f", "allow"), ("sed -l5 p f", "allow"),
    ("sed --in-place=.x s/a/b/ f", "allow"),
    ("sed -n 'w m' f", "ask"), ("sed '1e touch m' f", "ask"), ("sed 's/a/b/e' f", "ask"), ("sed 's/a/b/w m' f", "ask"),
    ("sed -f x f", "ask"), ("sed -nf x f", "ask"), ("sed --file=x f", "ask"), ("sed --expression='1e x' f", "ask"),
    ("sed --exp '1e x' f", "ask"), ("sed -e p -e '1e x' f", "ask"), ("sed -i -e '1e x' f", "ask"), ("sed -ie '1e x' f", "ask"),
    ("sed \"s/a/$b/\" f", "ask"), ("sed $X f", "ask"), ("/usr/bin/sed '1e x' f", "ask"), ("timeout 5 sed '1e x' f", "ask"),
    ("sed --debug p f", "ask"),
])
def test_a_rule_for_sed_is_meant_for_printing_and_editing(command: str, expected: str) -> None:
    rules = ["Bash(sed *)", "Bash(/usr/bin/sed *)"]
    assert Paper(allow=rules).bash(command) == expected
    assert Paper(allow=["Bash"]).bash(command) == "allow", "a bare rule allows what is understood"
    assert Paper(allow=[f"Bash({command})".replace("\\", "\\\\").replace("(a)", "\\(a\\)")]).bash(command) == "allow"
