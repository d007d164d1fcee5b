"""The policy through the real gates of the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel import PreToolUse, PreToolUseResult, Tool, ToolContext, ToolResult
from kernel.testing import Kit, assert_allowed, assert_refused, call, module, text


class Touch(Tool):
    """Stands in for any tool with a path."""

    name = "Touch"
    description = "Changes a file."
    input_schema = {"type": "object"}
    permission = "path"
    rule_field = "file_path"

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="ran")


class Look(Touch):
    name = "Look"
    description = "Reads a file."

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True


def kit_for(kernel_kit: Callable[..., Kit], *turns: Any, **more: Any) -> Kit:
    return kernel_kit(*turns, text("done"), tools=[Look(), Touch()], installed=["sample-plugin"],
                      settings={"kernel": {"policy": "sample-plugin"}}, **more)


def test_looking_is_allowed(kernel_kit: Callable[..., Kit]) -> None:
    assert_allowed(kit_for(kernel_kit, call("Look", file_path="a.txt")).play("look"), "Look")


def test_touching_is_refused(kernel_kit: Callable[..., Kit]) -> None:
    assert_refused(kit_for(kernel_kit, call("Touch", file_path="a.txt")).play("touch"), "Touch", reason="only looking is allowed")


def test_looking_elsewhere_is_refused(kernel_kit: Callable[..., Kit]) -> None:
    assert_refused(kit_for(kernel_kit, call("Look", file_path="../a.txt")).play("look"), "Look", reason="outside")


def test_a_hook_that_asks_is_not_overruled(kernel_kit: Callable[..., Kit]) -> None:
    def pre_tool_use(event: PreToolUse) -> PreToolUseResult:
        return PreToolUseResult(permission_decision="ask", permission_decision_reason="better ask")

    kit = kit_for(kernel_kit, call("Look", file_path="a.txt"), hooks={"careful": module(pre_tool_use=pre_tool_use)})
    assert_refused(kit.play("look"), "Look")
