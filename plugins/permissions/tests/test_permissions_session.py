"""The policy inside a real session: where rules come from, trust, answers that change them, what the model is told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import pytest
from kernel_permissions.paper import paper_tool
from kernel_permissions.policy import RulesPolicy

from kernel import Layer, PermissionCall, Session, Settings, Tool, ToolContext, ToolResult
from kernel.testing import Kit, call, module, text

pytestmark = pytest.mark.anyio


class Bash(Tool):
    """Does not run its command: it notes it."""

    name = "Bash"
    description = "Runs a command."
    input_schema: ClassVar[dict[str, Any]] = {
        "type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    permission = "command"
    rule_field = "command"

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        self.ran.append(input["command"])
        return ToolResult(content="done")


class Read(Tool):
    name = "Read"
    description = "Reads."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"file_path": {"type": "string"}}}
    permission = "path"
    rule_field = "file_path"

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="the content")


class Picky(Tool):
    """A tool with an opinion of its own."""

    name = "Picky"
    description = "Has opinions."
    input_schema: ClassVar[dict[str, Any]] = {"type": "object"}

    def check_permissions(self, input: dict[str, Any], context: ToolContext) -> Any:
        return input.get("answer")

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="ok")


def open_session(cwd: Path, layers: list[tuple[str, Path | str, dict[str, Any]]] = [], *, trusted: bool = True,  # noqa: B006
                 **options: Any) -> Session:
    kit = Kit(cwd, installed=["permissions"], tools=[Bash(), Read(), Picky()], **options)
    kit.harness.settings = Settings(
        [Layer(scope, str(path), {"permissions": data}, str(cwd)) for scope, path, data in layers],  # type: ignore[arg-type]
        [], config_dir=cwd / ".config-dir", project_root=cwd, trusted=trusted)
    return kit.open()


def behavior(session: Session, command: str, mode: str = "default") -> str:
    return session.policy.decide(PermissionCall(
        tool=paper_tool("Bash"), input={"command": command}, cwd=str(session.options.cwd), mode=mode)).behavior


def reads(session: Session, path: Path | str) -> str:
    return session.policy.decide(PermissionCall(
        tool=paper_tool("Read"), input={"file_path": str(path)}, cwd=str(session.options.cwd), mode="default")).behavior


# -- the whole way ------------------------------------------------------------------------------------------------------
async def test_a_call_is_refused_where_nobody_can_be_asked_and_the_model_reads_why(tmp_path: Path) -> None:
    tool = Bash()
    kit = Kit(tmp_path, [call("Bash", command="make x"), call("Bash", command="ls"), text("done")], tools=[tool],
              installed=["permissions"])
    run = await kit.run("go")
    assert tool.ran == ["ls"]
    told = str(run.result_of("call_1")["content"])
    assert "no rule allows 'make x'" in told and "nobody can be asked" in told
    assert [d["tool_name"] for d in kit.outputs[-1].permission_denials] == ["Bash"]  # type: ignore[union-attr]


async def test_a_denied_call_names_its_rule(tmp_path: Path) -> None:
    kit = Kit(tmp_path, [call("Bash", command="sudo rm x"), text("done")], tools=[Bash()], installed=["permissions"],
              settings={"permissions": {"deny": ["Bash(rm *)"]}})
    run = await kit.run("go")
    assert "Bash(rm *)" in str(run.result_of("call_1")["content"]) and run.result_of("call_1")["is_error"] is True


async def test_a_bare_denied_tool_is_not_offered(tmp_path: Path) -> None:
    kit = Kit(tmp_path, [text("done")], tools=[Bash(), Read()], installed=["permissions"], disallowed_tools=["Bash, mcp__x"])
    run = await kit.run("go")
    assert [t["name"] for t in run.requests[0]["tools"]] == ["Read"]


async def test_a_hooks_rewritten_input_meets_the_rules(tmp_path: Path) -> None:
    from kernel import PreToolUseResult

    tool = Bash()
    hook = module(pre_tool_use=lambda event: PreToolUseResult(permission_decision="allow", updated_input={"command": "rm b"}))
    kit = Kit(tmp_path, [call("Bash", command="ls"), text("done")], tools=[tool], installed=["permissions"],
              hooks={"rewriter": hook}, disallowed_tools=["Bash(rm *)"])
    await kit.run("go")
    assert tool.ran == []


async def test_a_persons_answer_is_kept_for_the_session(tmp_path: Path) -> None:
    tool = Bash()
    kit = Kit(tmp_path, [call("Bash", command="make a"), call("Bash", command="make b"), text("done")], tools=[tool],
              installed=["permissions"])
    session = kit.open()
    asked: list[str] = []

    async def asker(request: PermissionCall, verdict: Any, id: str) -> dict[str, Any]:
        asked.append(request.input["command"])
        return {"behavior": "allow", "updatedPermissions": [added(rule())]}
    session.asker = asker
    await kit.run("go", session)
    assert asked == ["make a"] and tool.ran == ["make a", "make b"]


async def test_a_tools_own_opinion_comes_behind_rules_and_modes(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    for answer, expected in (("allow", "allow"), ("deny", "deny"), ("ask", "ask"), (None, "ask")):
        verdict = session.policy.decide(PermissionCall(tool=Picky(), input={"answer": answer}, cwd=str(tmp_path), mode="default"))
        assert verdict.behavior == expected
    denied = open_session(tmp_path, disallowed_tools=["Picky"])
    request = PermissionCall(tool=Picky(), input={"answer": "allow"}, cwd=str(tmp_path), mode="default")
    assert denied.policy.decide(request).behavior == "deny"


# -- sources ------------------------------------------------------------------------------------------------------------
async def test_all_sources_are_joined(tmp_path: Path) -> None:
    session = open_session(tmp_path, [
        ("managed", "/etc/m.json", {"deny": ["Bash(a *)"]}), ("cli", "--settings", {"allow": ["Bash(b *)"]}),
        ("local", tmp_path / ".claude/settings.local.json", {"allow": ["Bash(c *)"]}),
        ("project", tmp_path / ".claude/settings.json", {"allow": ["Bash(d *)", "Bash(a *)"], "ask": ["Bash(b x)"]}),
        ("user", "/home/u/.claude/settings.json", {"allow": ["Bash(e *)"]})],
        allowed_tools=["Bash(f *) Bash(g *)"], disallowed_tools=["Bash(g x)"])
    assert [behavior(session, c) for c in ("a", "b", "c", "d", "e", "f", "g", "h", "b x", "g x")] == [
        "deny", "allow", "allow", "allow", "allow", "allow", "allow", "ask", "ask", "deny"]


async def test_managed_rules_alone(tmp_path: Path) -> None:
    session = open_session(tmp_path, allowed_tools=["Bash(c *)"])
    session.settings.layers = [
        Layer("managed", "/etc/m.json", {"permissions": {"allow": ["Bash(a *)"]}, "allowManagedPermissionRulesOnly": True}, "/"),
        Layer("user", "u.json", {"permissions": {"allow": ["Bash(b *)"]}}, "/")]
    assert [behavior(session, c) for c in "abc"] == ["allow", "ask", "ask"]


async def test_slash_patterns_hang_on_the_directory_of_their_source(tmp_path: Path) -> None:
    session = open_session(tmp_path, [
        ("project", "p.json", {"deny": ["Read(/a)"]}), ("managed", "m.json", {"deny": [f"Read(/{tmp_path}/b)"]}),
        ("user", "u.json", {"deny": ["Read(/c)"]})])
    user = Layer("user", "u", {"permissions": {"deny": ["Read(/c)"]}}, "/elsewhere")
    session.settings.layers = [*session.settings.layers[:2], user]
    assert [reads(session, tmp_path / n) for n in "abc"] == ["deny", "deny", "allow"]


async def test_rules_that_cannot_be_read_are_named_and_skipped(tmp_path: Path) -> None:
    session = open_session(tmp_path, [("project", "p.json", {"deny": ["Bash(", "Bash(rm *)", "Nope", " "], "allow": ["mcp__*"]})])
    said = session.harness.announced
    assert any("'Bash('" in s and "p.json, permissions.deny" in s for s in said) and any("'Nope'" in s for s in said)
    assert any("'mcp__*' is skipped" in s for s in said) and behavior(session, "rm x") == "deny"


async def test_rules_change_with_the_settings(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    assert behavior(session, "make") == "ask"
    session.settings.layers = [Layer("user", "u", {"permissions": {"allow": ["Bash(make)"]}}, "/")]
    assert behavior(session, "make") == "allow"


async def test_a_skills_grants_hold_while_they_are_in_the_state(tmp_path: Path) -> None:
    import msgspec

    session = open_session(tmp_path, [("user", "u", {"deny": ["Bash(make x)"]})])
    session.state = msgspec.structs.replace(session.state, grants=("Bash(make *)",))
    assert (behavior(session, "make"), behavior(session, "make x")) == ("allow", "deny")
    session.state = msgspec.structs.replace(session.state, grants=())
    assert behavior(session, "make") == "ask"


# -- trust --------------------------------------------------------------------------------------------------------------
async def test_what_widens_rights_needs_trust(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    cwd = tmp_path / "work"
    outside.mkdir()
    cwd.mkdir()
    data = {"allow": ["Bash(make *)", "Bash(a)"], "deny": ["Bash(rm *)"], "ask": ["Bash(ls *)"],
            "additionalDirectories": [str(outside)]}
    layers: Any = [("project", cwd / ".claude/settings.json", data), ("user", "u.json", {"allow": ["Bash(b)"]})]
    session = open_session(cwd, layers, trusted=False)
    assert [behavior(session, c) for c in ("make", "rm x", "ls", "b")] == ["ask", "deny", "ask", "allow"]
    assert reads(session, outside / "x") == "ask"
    said = [s for s in session.harness.announced if s.startswith("Ignoring")]
    assert len(said) == 2 and all(str(cwd / ".claude/settings.json") in s and "has not been trusted" in s for s in said)
    assert "Ignoring 2 permissions.allow" in said[0] or "Ignoring 2 permissions.allow" in said[1]
    trusted = open_session(cwd, layers)
    assert behavior(trusted, "make") == "allow" and reads(trusted, outside / "x") == "allow"


def git(*args: str) -> None:
    subprocess.run(["git", *args], check=True, timeout=60)


async def test_a_local_file_needs_trust_only_where_it_came_with_the_repository(tmp_path: Path) -> None:
    git("init", "-q", str(tmp_path))
    local = tmp_path / ".claude" / "settings.local.json"
    local.parent.mkdir()
    local.write_text("{}")
    layers: Any = [("local", local, {"allow": ["Bash(make)"]})]
    assert behavior(open_session(tmp_path, layers, trusted=False), "make") == "allow"
    git("-C", str(tmp_path), "add", "-f", str(local))
    assert behavior(open_session(tmp_path, layers, trusted=False), "make") == "ask"
    git("-C", str(tmp_path), "update-index", "--index-version", "4")
    assert behavior(open_session(tmp_path, layers, trusted=False), "make") == "ask"
    assert behavior(open_session(tmp_path, layers), "make") == "allow"


async def test_a_local_file_behind_a_link_needs_trust(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    (work / ".claude").symlink_to(real)
    layers: Any = [("local", work / ".claude/settings.local.json", {"allow": ["Bash(make)"]})]
    assert behavior(open_session(work, layers, trusted=False), "make") == "ask"


# -- directories and modes ------------------------------------------------------------------------------------------------
async def test_added_directories_can_be_read(tmp_path: Path) -> None:
    work, one, two = tmp_path / "work", tmp_path / "one", tmp_path / "two"
    for folder in (work, one, two):
        folder.mkdir()
    session = open_session(work, [("user", "u.json", {"additionalDirectories": ["../two"]})], add_dirs=[one])
    assert [reads(session, p) for p in (one / "x", two / "x", tmp_path / "three/x")] == ["allow", "allow", "ask"]


async def test_the_configuration_folder_is_protected(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    for path, expected in ((".config-dir/settings.json", "ask"), (".config-dir/plans/p.md", "ask"), ("x", "allow")):
        verdict = session.policy.decide(PermissionCall(
            tool=paper_tool("Write"), input={"file_path": str(tmp_path / path)}, cwd=str(tmp_path), mode="acceptEdits"))
        assert verdict.behavior == expected
    plan = PermissionCall(tool=paper_tool("Write"), input={"file_path": str(tmp_path / ".config-dir/plans/p.md")},
                          cwd=str(tmp_path), mode="plan")
    assert session.policy.decide(plan).behavior == "allow"
    session.plan_file = str(tmp_path / "plan.md")
    assert session.policy.decide(plan).behavior == "ask"


async def test_a_sandbox_of_another_plugin_is_used(tmp_path: Path) -> None:
    class Sandbox:
        def confines(self, input: dict[str, Any]) -> bool:
            return "free" not in input["command"]

    session = open_session(tmp_path)
    session.sandbox = Sandbox()  # type: ignore[assignment]
    session.policy.update([])
    assert (behavior(session, "make"), behavior(session, "make free")) == ("allow", "ask")
    switched_off = open_session(tmp_path)
    switched_off.sandbox = Sandbox()  # type: ignore[assignment]
    switched_off.settings.layers = [Layer("user", "u", {"sandbox": {"autoAllowBashIfSandboxed": False}}, "/")]
    assert behavior(switched_off, "make") == "ask"


# -- updates ------------------------------------------------------------------------------------------------------------
def rule(content: str | None = "make *", tool: str = "Bash") -> dict[str, str]:
    return {"toolName": tool} if content is None else {"toolName": tool, "ruleContent": content}


def added(*rules: dict[str, str], destination: str = "session", type: str = "addRules",
          behavior: str = "allow") -> dict[str, Any]:
    return {"type": type, "rules": list(rules), "behavior": behavior, "destination": destination}


async def test_rules_can_be_added_replaced_and_removed_in_the_session(tmp_path: Path) -> None:
    session = open_session(tmp_path, [("user", "u.json", {"allow": ["Bash(a)"]})])
    assert session.policy.update([added(rule("b"), rule("c (x)"))]) == []
    assert [behavior(session, c) for c in ("a", "b", "'c'")] == ["allow", "allow", "ask"]
    session.policy.update([added(rule("d"), type="replaceRules")])
    assert [behavior(session, c) for c in ("a", "b", "d")] == ["allow", "ask", "allow"]
    session.policy.update([added(rule("d"), type="removeRules"), added(rule("a"), behavior="deny")])
    assert [behavior(session, c) for c in ("a", "d")] == ["deny", "ask"]


@pytest.mark.parametrize(("destination", "place"), [
    ("localSettings", ".claude/settings.local.json"), ("projectSettings", ".claude/settings.json"),
    ("userSettings", "config/settings.json")])
async def test_rules_are_written_to_the_file_of_their_scope(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, destination: str, place: str) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"z": 1, "permissions": {"allow": ["Bash(x)"], "other": true}, "a": 2}')
    session = open_session(tmp_path)
    change = added(rule(), rule("x"), rule(None, "mcp__a"), destination=destination)
    assert session.policy.update([change]) == []
    written = json.loads(path.read_text())
    assert list(written) == ["z", "permissions", "a"] and written["permissions"] == {
        "allow": ["Bash(x)", "Bash(make *)", "mcp__a"], "other": True}
    assert behavior(session, "make") == "allow"
    assert session.policy.update([{**change, "type": "removeRules", "rules": [rule()]}]) == []
    assert json.loads(path.read_text())["permissions"]["allow"] == ["Bash(x)", "mcp__a"] and behavior(session, "make") == "ask"


async def test_a_file_that_cannot_be_read_is_left_alone_and_named(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "settings.local.json"
    path.parent.mkdir()
    path.write_text("{ not json")
    session = open_session(tmp_path)
    problems = session.policy.update([added(rule(), destination="localSettings")])
    assert len(problems) == 1 and str(path) in problems[0] and path.read_text() == "{ not json"


async def test_a_linked_settings_file_is_written_at_its_target(tmp_path: Path) -> None:
    target = tmp_path / "shared.json"
    target.write_text("{}")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.local.json").symlink_to(target)
    session = open_session(tmp_path)
    session.policy.update([added(rule(), destination="localSettings")])
    assert json.loads(target.read_text()) == {"permissions": {"allow": ["Bash(make *)"]}}
    assert (tmp_path / ".claude/settings.local.json").is_symlink()
    assert sorted(os.listdir(tmp_path)) == [".claude", "shared.json"]


async def test_directories_can_be_added_and_removed(tmp_path: Path) -> None:
    work, other = tmp_path / "work", tmp_path / "other"
    work.mkdir()
    other.mkdir()
    session = open_session(work)
    session.policy.update([{"type": "addDirectories", "directories": ["../other"], "destination": "session"}])
    assert reads(session, other / "x") == "allow"
    session.policy.update([{"type": "removeDirectories", "directories": ["../other"], "destination": "session"}])
    assert reads(session, other / "x") == "ask"


async def test_the_mode_can_be_changed_but_bypass_only_where_it_was_made_available(tmp_path: Path) -> None:
    session = open_session(tmp_path)
    assert session.policy.update([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]) == []
    assert session.state.permission_mode == "acceptEdits"
    assert session.policy.update([{"type": "setMode", "mode": "bypassPermissions", "destination": "session"}]) == []
    assert session.state.permission_mode == "acceptEdits"
    assert session.policy.update([{"type": "setMode", "mode": "nonsense", "destination": "session"}]) != []
    session.policy.update([{"type": "setMode", "mode": "plan", "destination": "localSettings"}])
    assert json.loads((tmp_path / ".claude/settings.local.json").read_text()) == {"permissions": {"defaultMode": "plan"}}


@pytest.mark.parametrize("change", [
    {}, {"type": "x"}, {"type": "addRules"}, {"type": "addRules", "rules": "x", "behavior": "allow"},
    {"type": "addRules", "rules": [{}], "behavior": "allow"},
    {"type": "addRules", "rules": [], "behavior": "maybe"},
    {"type": "addRules", "rules": [{"toolName": "("}], "behavior": "allow"},
    {"type": "addRules", "rules": [{"toolName": "*"}], "behavior": "allow"}, {"type": "addDirectories"},
    {"type": "addDirectories", "directories": [1]},
    {"type": "setMode"}, {"type": "addRules", "rules": [], "behavior": "allow", "destination": "nowhere"}, "x", None,
    {"type": "addDirectories", "directories": ["a\0"]},
])
async def test_an_update_that_makes_no_sense_is_named_and_changes_nothing(tmp_path: Path, change: Any) -> None:
    session = open_session(tmp_path)
    problems = session.policy.update([change])
    assert len(problems) == 1 and problems[0].startswith("permission update")
    assert behavior(session, "make") == "ask"


async def test_the_policy_explains_a_call(tmp_path: Path) -> None:
    policy = open_session(tmp_path, allowed_tools=["Bash(make *)"]).policy
    assert isinstance(policy, RulesPolicy)
    request = PermissionCall(tool=paper_tool("Bash"), input={"command": "make x"}, cwd=str(tmp_path), mode="default")
    lines = policy.explain(request)
    assert lines[-1] == "verdict: allow by Bash(make *) (cli)"
