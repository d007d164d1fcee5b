"""Limits of a run and of a session: turns, seconds, tokens, dollars, and calls by plugin (loop contract, 9)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kernel import Extension, Harness, Leave, Session, UsageError

SETTINGS = "kernel.guards"
STATE = "guards.limits"
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
    """Checked before every request and behind every batch; a call that runs is not cut off."""

    name = "limits"

    def check(self, harness: Harness) -> None:
        whole = harness.settings.own(SETTINGS)
        if whole is None:
            return
        if not isinstance(whole, dict):
            raise UsageError("must be an object", context=f"settings, {SETTINGS}")
        parts = {SETTINGS: whole, f"{SETTINGS}.session": whole.get("session"), f"{SETTINGS}.agent": whole.get("agent")}
        for where, part in parts.items():
            for name in NUMBERS:
                value = part.get(name) if isinstance(part, dict) else None
                if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
                    raise UsageError("must be a positive number", context=f"settings, {where}.{name}")
        calls = whole.get("calls", {})
        if not isinstance(calls, dict) or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in calls.values()):
            raise UsageError("must map plugins to numbers of calls", context=f"settings, {SETTINGS}.calls")

    async def open(self, session: Session) -> None:
        session.plugin_state[STATE] = _begun(session)
        session.plugin_state[f"{STATE}.session"] = _begun(session)

    async def before_prompt(self, session: Session) -> None:
        session.plugin_state[STATE] = _begun(session)

    async def before_request(self, session: Session) -> None:
        self._hold(session)

    async def after_batch(self, session: Session) -> bool:
        for key in (STATE, f"{STATE}.session"):
            session.plugin_state.setdefault(key, _begun(session)).turns += 1
        self._hold(session)
        self._hold_calls(session)
        return False

    def _hold(self, session: Session) -> None:
        _compare(session, limits(session), session.plugin_state.setdefault(STATE, _begun(session)), "this run")
        whole = session.settings.own(f"{SETTINGS}.session")
        if session.parent is None and isinstance(whole, dict):
            _compare(session, whole, session.plugin_state.setdefault(f"{STATE}.session", _begun(session)), "this session")

    def _hold_calls(self, session: Session) -> None:
        """How many calls of a plugin's tools one run may make."""
        most = session.settings.own(f"{SETTINGS}.calls")
        if not isinstance(most, dict) or not most:
            return
        blocks = next((b for r, b in reversed(session.history.messages) if r == "assistant"), [])
        made: dict[str, int] = session.plugin_state.setdefault(f"{STATE}.calls", {})
        if session.plugin_state[STATE].turns == 1:
            made.clear()
        for block in blocks:
            if block.get("type") == "tool_use":
                plugin = session.harness.tools.owner(str(block.get("name"))) or ""
                made[plugin] = made.get(plugin, 0) + 1
                if plugin in most and made[plugin] > most[plugin]:
                    raise _over(f"{made[plugin]} calls of tools of the plugin {plugin!r} in this run; at most {most[plugin]} "
                                f"({SETTINGS}.calls)")


def _begun(session: Session) -> Count:
    return Count(began=session.clock.monotonic(), tokens=tokens(session), usd=session.spending.usd)


def _compare(session: Session, most: dict[str, Any], count: Count, what: str) -> None:
    now = {"maxTurns": count.turns, "maxSeconds": session.clock.monotonic() - count.began,
           "maxTokens": tokens(session) - count.tokens, "maxUsd": session.spending.usd - count.usd}
    for name, value in now.items():
        limit = most.get(name)
        if limit is not None and value >= limit:
            raise _over(f"{what} reached {name} ({limit:g})", turns=name == "maxTurns", money=name == "maxUsd")


def _over(text: str, *, turns: bool = False, money: bool = False) -> Leave:
    if turns:
        return Leave("max_turns", "error_max_turns", errors=(text,))
    return Leave("budget_exhausted", "error_max_budget_usd" if money else "error_during_execution", errors=(text,))
