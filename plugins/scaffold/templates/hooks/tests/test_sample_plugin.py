"""The hooks through the real dispatcher and the real loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernel import Tool, ToolContext, ToolResult
from kernel.testing import Kit, assert_allowed, assert_decision, assert_refused, call, text

KEY = "AKIA" + "A" * 16


class Write(Tool):
    """Stands in for the real tool: writes nothing."""

    name = "Write"
    description = "Writes a file."
    input_schema = {"type": "object"}

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="written")


def test_a_secret_is_not_written(kernel_kit: Callable[..., Kit]) -> None:
    kit = kernel_kit(call("Write", file_path="a", content=KEY), text("done"), tools=[Write()], installed=["sample-plugin"])
    assert_refused(kit.play("write it"), "Write", reason="an access key")


def test_other_text_is(kernel_kit: Callable[..., Kit]) -> None:
    kit = kernel_kit(call("Write", file_path="a", content="hello"), text("done"), tools=[Write()], installed=["sample-plugin"])
    assert_allowed(kit.play("write it"), "Write")


@pytest.mark.parametrize(("tool", "input", "decision"), [
    ("Edit", {"new_string": "-----BEGIN RSA PRIVATE KEY-----"}, "deny"),
    ("Edit", {"new_string": "a public key"}, None),
    ("Read", {"file_path": KEY}, None)])
def test_decisions(kernel_kit: Callable[..., Kit], tool: str, input: dict[str, Any], decision: str | None) -> None:
    merged = kernel_kit(installed=["sample-plugin"]).play_event("PreToolUse", tool_name=tool, tool_input=input)
    assert_decision(merged, decision)


@pytest.mark.parametrize(("milliseconds", "told"), [(100, False), (61_000, True)])
def test_a_slow_command_is_commented(kernel_kit: Callable[..., Kit], milliseconds: float, told: bool) -> None:
    merged = kernel_kit(installed=["sample-plugin"]).play_event("PostToolUse", tool_name="Bash", duration_ms=milliseconds)
    assert bool(merged.contexts) is told
