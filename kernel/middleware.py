"""Code around a model request or a tool run (decision D2): an explicit list, folded once, first outermost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Any

from kernel.models import ModelCaller, ModelRequest, StreamEvent
from kernel.tools import Tool, ToolContext, ToolResult, ToolRunner


class Middleware:
    """Base of all middleware; overrides call ``next`` once, or answer by themselves.

    An exception of a middleware counts as a failure of what it wraps.
    """

    name: str

    def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncIterator[StreamEvent]:
        """See or change the request, see or change the stream."""
        return next(request)

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        """See the input that is executed, see or change the result. Permission was given before."""
        return await next(tool, input, context)


def fold_model(middleware: Iterable[Middleware], innermost: ModelCaller) -> ModelCaller:
    """One caller out of the list. Middleware that does not override the method costs nothing."""
    caller = innermost
    for item in reversed(list(middleware)):
        if type(item).around_model is not Middleware.around_model:
            caller = partial(item.around_model, next=caller)
    return caller


def fold_tool(middleware: Iterable[Middleware], innermost: ToolRunner) -> ToolRunner:
    runner = innermost
    for item in reversed(list(middleware)):
        if type(item).around_tool is not Middleware.around_tool:
            runner = partial(item.around_tool, next=runner)
    return runner
