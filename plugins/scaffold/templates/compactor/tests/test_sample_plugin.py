"""The compactor through the real loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_sample_plugin.compactor import CLEARED, KEPT, SamplePluginCompactor

from kernel import ModelError, Tool, ToolContext, ToolResult
from kernel.testing import Kit, Turn, assert_end, assert_request, call, module, text

CALLS = KEPT + 2
CHOSEN = {"kernel": {"compactor": "sample-plugin"}}


class Fetch(Tool):
    """A tool with much to say."""

    name = "Fetch"
    description = "Fetches."
    input_schema = {"type": "object"}

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=f"page {input['number']}: " + "word " * 100)


def turns() -> list[Any]:
    return [*(call("Fetch", number=number) for number in range(CALLS)), text("done")]


def kit_for(kernel_kit: Callable[..., Kit], *script: Any, limit: int) -> Kit:
    given = module(register_compactors=lambda register: register(SamplePluginCompactor(limit)))
    return kernel_kit(*script, tools=[Fetch()], hooks={"sample-plugin": given}, settings=CHOSEN)


def test_old_results_are_cleared_when_it_gets_full(kernel_kit: Callable[..., Kit]) -> None:
    run = kit_for(kernel_kit, *turns(), limit=1_000).play("fetch them")
    assert_end(run, text="done")
    assert_request(run, contains=CLEARED, lacks="page 0:")
    assert_request(run, contains=f"page {CALLS - 1}:")


def test_nothing_is_cleared_while_there_is_room(kernel_kit: Callable[..., Kit]) -> None:
    assert_request(kit_for(kernel_kit, *turns(), limit=1_000_000).play("fetch them"), lacks=CLEARED, contains="page 0:")


def test_a_request_that_was_too_long_is_sent_again_with_less(kernel_kit: Callable[..., Kit]) -> None:
    refused = Turn(fail=ModelError("prompt is too long", status=400, kind="invalid_request_error"))
    run = kit_for(kernel_kit, *turns()[:-1], refused, text("done"), limit=1_000_000).play("fetch them")
    assert_end(run, text="done")
    assert_request(run, -2, contains="page 0:")
    assert_request(run, -1, contains=CLEARED, lacks="page 0:")


def test_the_installed_plugin_can_be_chosen(kernel_kit: Callable[..., Kit]) -> None:
    kit = kernel_kit(text("done"), installed=["sample-plugin"], settings=CHOSEN)
    assert kit.harness.one("compactors", "sample-plugin") is not None
    assert_end(kit.play("hello"), text="done")
