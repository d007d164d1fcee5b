"""Limits of a run and of a session: turns, seconds, tokens, dollars, and calls by plugin (loop contract, 9)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kernel import Extension, Harness, Leave, Middleware, Session, Tool, ToolContext, ToolResult, ToolRunner, UsageError

SETTINGS = "kernel.guards"
STATE = "guards.limits"
CALLS = "guards.limits.calls"
OVER = "\0over"
NUMBERS = ("maxTurns", "maxSeconds", "maxTokens", "maxUsd")
"""Of one run; under ``session`` of the whole session, under ``agent`` of each subagent."""


class Count(Struct):
    """``began``: when the run began, on the monotonic clock. ``tokens``, ``usd``: what had been spent then."""

    began: float
    tokens: int = 0
    usd: float = 0.0
    turns: int = 0


def limits(session: Session) -> dict[str, Any]:
    """The limits that hold in this context."""
    whole = session.settings.own(SETTINGS)
    whole = whole if isinstance(whole, dict) else {}
    if session.parent is not None:
        own = whole.get("agent")
        return {k: v for k, v in (own if isinstance(own, dict) else {}).items() if k in NUMBERS}
    return {k: v for k, v in whole.items() if k in NUMBERS}


def tokens(session: Session) -> int:
    return sum(m["inputTokens"] + m["outputTokens"] + m["cacheReadInputTokens"] + m["cacheCreationInputTokens"]
               for m in session.spending.by_model.values())


class Limits(Extension):
    """Checked before every request and behind every batch; a call that runs is not cut off.

    What a subagent spends counts for the conversation, too, and ends it as well where its limit is reached.
    """

    name = "limits"

    def check(self, harness: Harness) -> None:
        whole = harness.settings.own(SETTINGS)
        if whole is None:
            return
        _known(whole, (*NUMBERS, "session", "agent", "calls", "repeats", "repeatBudget"), SETTINGS)
        parts = {SETTINGS: whole}
        for name in ("session", "agent"):
            if name in whole:
                parts[f"{SETTINGS}.{name}"] = _known(whole[name], NUMBERS, f"{SETTINGS}.{name}")
        for where, part in parts.items():
            for name in NUMBERS:
                if name in part and not _is_limit(part[name]):
                    raise UsageError("must be a positive number", context=f"settings, {where}.{name}")
        calls = whole.get("calls", {})
        if not isinstance(calls, dict) or not all(is_count(n) for n in calls.values()):
            raise UsageError("must map plugins to numbers of calls", context=f"settings, {SETTINGS}.calls")
        for name in sorted(set(calls) - {p.name for p in harness.plugins}):
            harness.announce(f"settings, {SETTINGS}.calls: there is no plugin {name!r}, so nothing is counted for it")
        if not isinstance(whole.get("repeats", True), bool):
            raise UsageError("must be true or false", context=f"settings, {SETTINGS}.repeats")
        if not is_count(whole.get("repeatBudget", 0)):
            raise UsageError("must be a whole number, 0 or more", context=f"settings, {SETTINGS}.repeatBudget")

    async def open(self, session: Session) -> None:
        session.plugin_state[STATE] = _begun(session)
        session.plugin_state[f"{STATE}.session"] = _begun(session)

    async def before_prompt(self, session: Session) -> None:
        session.plugin_state[STATE] = _begun(session)
        session.plugin_state.pop(CALLS, None)

    async def before_request(self, session: Session) -> None:
        _hold(session)

    async def after_batch(self, session: Session) -> bool:
        for key in (STATE, f"{STATE}.session"):
            session.plugin_state.setdefault(key, _begun(session)).turns += 1
        if over := session.root.plugin_state.get(CALLS, {}).get(OVER):
            raise _over(over)
        if not _hands_in(session):  # the answer may be there already
            _hold(session)
        return False


class CallLimit(Middleware):
    """Calls of a plugin's tools that one run may make, its subagents included; one more is not run, and the run ends."""

    name = "call-limit"

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        session = context.session
        most = session.settings.own(f"{SETTINGS}.calls")
        plugin = session.harness.tools.owner(tool.name) or ""
        if not isinstance(most, dict) or not is_count(most.get(plugin)):
            return await next(tool, input, context)
        made: dict[str, Any] = session.root.plugin_state.setdefault(CALLS, {})
        if made.get(plugin, 0) >= most[plugin]:
            made[OVER] = (f"more than {most[plugin]} calls of tools of the plugin {plugin!r} were asked for in this run "
                          f"({SETTINGS}.calls)")
            return ToolResult(content=f"Not run: {made[OVER]}.", status="blocked", error_code="call_limit")
        made[plugin] = made.get(plugin, 0) + 1
        return await next(tool, input, context)


def _hands_in(session: Session) -> bool:
    """Whether the last answer called a tool of the harness itself, which may be the end of the run."""
    blocks = next((b for r, b in reversed(session.history.messages) if r == "assistant"), [])
    names = [b.get("name") for b in blocks if b.get("type") == "tool_use"]
    return any(tool.internal for tool in (session.toolbox.by_name.get(str(name)) for name in names) if tool is not None)


def _hold(session: Session) -> None:
    _compare(session, limits(session), session.plugin_state.setdefault(STATE, _begun(session)), "this run")
    root = session.root
    whole = session.settings.own(f"{SETTINGS}.session")
    theirs = [(whole if isinstance(whole, dict) else {}, f"{STATE}.session", "this session")]
    if root is not session:
        theirs.append((limits(root), STATE, "the run of the conversation"))
    for most, key, what in theirs:
        _compare(root, most, root.plugin_state.setdefault(key, _begun(root)), what)


def _known(part: Any, names: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(part, dict):
        raise UsageError("must be an object", context=f"settings, {where}")
    for name in part:
        if name not in names:
            raise UsageError(f"there is no such limit; known: {', '.join(names)}", context=f"settings, {where}.{name}")
    return part


def _is_limit(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _begun(session: Session) -> Count:
    return Count(began=session.clock.monotonic(), tokens=tokens(session), usd=session.spending.usd)


def _compare(session: Session, most: dict[str, Any], count: Count, what: str) -> None:
    now = {"maxTurns": count.turns, "maxSeconds": session.clock.monotonic() - count.began,
           "maxTokens": tokens(session) - count.tokens, "maxUsd": session.spending.usd - count.usd}
    for name, value in now.items():
        limit = most.get(name)
        if limit is not None and _is_limit(limit) and value >= limit:
            raise _over(f"{what} reached {name} ({limit:g})", turns=name == "maxTurns", money=name == "maxUsd")


def _over(text: str, *, turns: bool = False, money: bool = False) -> Leave:
    if turns:
        return Leave("max_turns", "error_max_turns", errors=(text,))
    return Leave("budget_exhausted", "error_max_budget_usd" if money else "error_during_execution", errors=(text,))
