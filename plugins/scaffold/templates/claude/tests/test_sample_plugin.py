"""The folder's parts: the hook as a process and through the real loop, the skill by its description."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel import Tool, ToolContext, ToolResult
from kernel.testing import Kit, assert_allowed, assert_decision, assert_refused, assert_triggers, call, installed, run_hook, text

ROOT = Path(__file__).parent.parent
KEY = "AKIA" + "A" * 16


class Write(Tool):
    """Stands in for the real tool: writes nothing."""

    name = "Write"
    description = "Writes a file."
    input_schema = {"type": "object"}

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="written")


@pytest.mark.parametrize(("content", "decision"), [
    (KEY, "deny"), ("-----BEGIN RSA PRIVATE KEY-----", "deny"), ("hello", None), ("a public key", None), ("", None)])
def test_the_hook_refuses_secrets(tmp_path: Path, content: str, decision: str | None) -> None:
    (group,) = json.loads((ROOT / "hooks" / "hooks.json").read_text())["hooks"]["PreToolUse"]
    run = run_hook(group["hooks"][0]["command"], "PreToolUse", cwd=tmp_path, plugin_root=ROOT,
                   tool_name="Write", tool_input={"file_path": "a", "content": content})
    assert_decision(run, decision, reason="secret" if decision else None)


@pytest.mark.skipif(not installed("command-hooks"), reason="the plugin that runs hooks.json is not installed")
@pytest.mark.parametrize(("content", "check"), [(KEY, assert_refused), ("hello", assert_allowed)])
def test_the_hook_runs_in_a_session(kernel_kit: Callable[..., Kit], content: str, check: Callable[..., Any]) -> None:
    kit = kernel_kit(call("Write", file_path="a", content=content), text("done"), tools=[Write()],
                     installed=["sample-plugin", "command-hooks"])
    check(kit.play("write it"), "Write")


def test_the_skill_triggers_when_it_should(skill_chooser: Any) -> None:
    assert_triggers(ROOT, {"review-checklist": ["Review my pull request", "Can you review the diff of this branch?"]},
                    should_not=["Write a test for the parser", "What time is it?"], choose=skill_chooser)


def test_the_installed_plugin_is_in_order(kernel_kit: Callable[..., Kit]) -> None:
    plugin = kernel_kit(installed=["sample-plugin"]).harness.plugins.get("sample-plugin")
    assert plugin is not None
    assert (plugin.state, plugin.errors, plugin.warnings) == ("ready", [], [])
    for part in ("skills/review-checklist/SKILL.md", "agents/reviewer.md", "commands/review-changes.md", "hooks/hooks.json"):
        assert (plugin.root / part).is_file(), part
