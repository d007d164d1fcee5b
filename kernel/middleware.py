"""Code around what a run does with the outside: a model request, a tool run, the hooks of an event, a permission decision,
a question to a person (decisions D2 and 32). An explicit list, folded once a session, first outermost.

These are a run's steps. Whoever records, times, replays or makes durable what happens is a middleware.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from kernel.dispatch import Outcome
from kernel.events import Event
from kernel.models import ModelCaller, ModelRequest, StreamEvent
from kernel.policy import Asker, Decider, PermissionCall, Verdict
from kernel.tools import Tool, ToolContext, ToolResult, ToolRunner

if TYPE_CHECKING:
    from kernel.session import Session

HookRunner = Callable[[Event], Awaitable[list[Outcome]]]
"""Calls every implementation of the event; the outcomes in call order."""


class Middleware:
    """Base of all middleware; overrides call ``next`` once, or answer by themselves.

    An exception of a middleware counts as a failure of what it wraps: a request that failed, a call that crashed, a gate that
    refuses.
    """

    name: str

    def for_session(self, session: Session) -> Middleware:
        """What stands around the steps of this session, subagents' included; asked again when model or plugins change."""
        return self

    def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncIterator[StreamEvent]:
        """See or change the request, see or change the stream. Called for each attempt."""
        return next(request)

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        """See the input that is executed, see or change the result. Permission was given before."""
        return await next(tool, input, context)

    async def around_hooks(self, event: Event, next: HookRunner) -> list[Outcome]:
        """See an event and what each plugin answered. Called also where nobody implements the event."""
        return await next(event)

    async def around_decision(self, call: PermissionCall, call_id: str, next: Decider) -> Verdict:
        """See what the policy, hooks and people together said about one call; the time includes the wait for a person."""
        return await next(call, call_id)

    async def around_approval(self, call: PermissionCall, verdict: Verdict, call_id: str, next: Asker) -> dict[str, Any]:
        """See a question to a person or a program, and the answer. Called only where somebody can be asked."""
        return await next(call, verdict, call_id)


def fold(middleware: Iterable[Middleware], method: str, innermost: Callable[..., Any]) -> Callable[..., Any]:
    """One caller out of the list. Middleware that does not override the method costs nothing."""
    caller = innermost
    for item in reversed(list(middleware)):
        if getattr(type(item), method) is not getattr(Middleware, method):
            caller = partial(getattr(item, method), next=caller)
    return caller
