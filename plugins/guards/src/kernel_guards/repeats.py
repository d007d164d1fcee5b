"""The repeat guard: the same call with the same result is told at the second time and not run at the third (10.2).

What a tool says is never changed but for one line behind it. With the plugin off nothing is different.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from kernel import Extension, Middleware, Session, Tool, ToolContext, ToolResult, ToolRunner
from kernel_guards import fingerprints
from kernel_guards.limits import is_count

STATE = "guards.repeats"
BUDGET = 6
RETRIES = 2
WAIT_S = 0.5
PASSING = frozenset({"timeout", "transient", "rate_limited", "connection_error"})
SAME = "(This result is the same as that of the same call before.)"
STOPPED = ("Not run: this very call gave the same result twice already, and nothing was changed in between. Do not repeat it: "
           "use another tool or other arguments, or answer from what you have.")
CONVERGE = ("The same calls were repeated again and again. Do not call tools now: give your final answer from what you have "
            "found, and say what is missing.")
WIDEN = "(Nothing was found. Widen it: a shorter or looser pattern, a folder further up, other words, or another tool.)"


class Seen(Struct):
    """``counts``: fingerprint of a call -> (fingerprint of its last result, how often in a row); they stand in ``history``."""

    counts: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)
    empty: dict[str, int] = field(default_factory=dict)
    blocked: int = 0
    converging: bool = False
    history: Any = None
    asked: bool = False


def seen(session: Session) -> Seen:
    found: Seen = session.plugin_state.setdefault(STATE, Seen())
    return found


def budget(session: Session) -> int:
    given = session.settings.own("kernel.guards.repeatBudget")
    return int(given) if is_count(given) else BUDGET


class Repeats(Middleware):
    name = "repeats"

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        if tool.polling or tool.internal or context.session.settings.own("kernel.guards.repeats") is False:
            return await next(tool, input, context)
        mine = seen(context.session)
        if mine.history is not context.session.history:  # summed up or cleared: the model cannot look at old results
            mine.history = context.session.history
            mine.counts.clear()
        call = fingerprints.of_call(tool.name, input, tool.input_schema)
        if mine.counts.get(call, (b"", 0))[1] >= 2:
            mine.blocked += 1
            return ToolResult(content=STOPPED, status="blocked", error_code="repeated_call", structured=STOPPED)
        result = await _patient(tool, input, context, next)
        if not _only_reads(tool, input):
            mine.counts = {call: mine.counts[call]} if call in mine.counts else {}  # the world may be another now
        outcome = fingerprints.of_result(result.content, context.session.project_root)
        last, times = mine.counts.get(call, (b"", 0))  # a neighbour of the same batch may have ended meanwhile
        times = times + 1 if outcome == last else 1
        mine.counts[call] = (outcome, times)
        if result.status == "empty":
            return _widen(mine, tool, result)
        return _with(result, SAME) if times >= 2 else result


async def _patient(tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
    """A call that only reads is tried again where a failure may pass (10.1)."""
    attempt = 0
    while True:
        result = await next(tool, input, context)
        attempt += 1
        passing = result.status == "retryable_error" and result.error_code in PASSING
        if not passing or attempt > RETRIES or not _only_reads(tool, input):
            return result
        await context.session.clock.sleep(WAIT_S * 2 ** (attempt - 1))


def _only_reads(tool: Tool, input: dict[str, Any]) -> bool:
    """A tool that cannot say so does not (loop contract, 7.2)."""
    try:
        return tool.is_read_only(input)
    except Exception:
        return False


def _widen(mine: Seen, tool: Tool, result: ToolResult) -> ToolResult:
    """An empty result says how to widen it (10.3)."""
    mine.empty[tool.name] = times = mine.empty.get(tool.name, 0) + 1
    told = _with(result, WIDEN)
    if isinstance(result.structured, dict):
        told = msgspec.structs.replace(told, structured={**result.structured, "canWiden": True, "emptyResults": times})
    return told


def _with(result: ToolResult, line: str) -> ToolResult:
    content = result.content
    more = f"{content}\n{line}" if isinstance(content, str) else [*content, {"type": "text", "text": line}]
    return msgspec.structs.replace(result, content=more)


class FinalAnswer(Extension):
    """When the budget of repeated calls is spent, the model is asked once for its answer, without tools."""

    name = "final-answer"

    async def before_prompt(self, session: Session) -> None:
        session.plugin_state[STATE] = Seen()

    async def after_batch(self, session: Session) -> bool:
        mine = seen(session)
        if mine.blocked > budget(session) and not mine.converging:
            mine.converging = True
            session.notice(f"{mine.blocked} repeated calls were not run; the model is asked for its answer")
            session.add_context(CONVERGE)
        return False

    async def before_request(self, session: Session) -> None:
        mine = seen(session)
        if mine.converging and not mine.asked:
            mine.asked = True
            session.once["tool_choice"] = {"type": "none"}
