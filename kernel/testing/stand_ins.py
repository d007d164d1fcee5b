"""Stand-ins for what a test must not depend on: time, a person's rules, an installed module."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

from kernel.clock import Clock
from kernel.hookspecs import hookimpl
from kernel.policy import PermissionCall, Verdict
from kernel.session import Session
from kernel.tools import Tool


class FakeClock(Clock):
    """Time that moves only when somebody sleeps; ids that count up. ``sleeps`` keeps what was slept, in seconds."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._now = 0.0
        self._ids = itertools.count(1)
        self.sleeps: list[float] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._now)

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self._now += seconds

    def new_id(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._ids):012x}"


class StubPolicy:
    """Decides by a function of (tool name, input); ``"allow"`` for everything by default. Every call is kept."""

    name = "rules"

    def __init__(self, decide: Callable[[str, dict[str, Any]], str] = lambda name, input: "allow") -> None:
        self._decide = decide
        self.calls: list[PermissionCall] = []

    def open(self, session: Session) -> StubPolicy:
        return self

    def decide(self, call: PermissionCall) -> Verdict:
        self.calls.append(call)
        behavior: Any = self._decide(call.tool.name, call.input)
        if behavior == "ask" and call.hook == "allow":
            behavior = "allow"
        if behavior == "allow" and call.hook == "ask":
            behavior = "ask"
        return Verdict(behavior=behavior, reason_type="rule", message=f"decided: {behavior}")

    def is_visible(self, tool: Tool) -> bool:
        return True

    def matches(self, rule: str, tool_name: str, input: dict[str, Any]) -> bool:
        return rule.split("(", 1)[0] == tool_name

    def update(self, changes: list[dict[str, Any]]) -> list[str]:
        return []


def module(**functions: Any) -> SimpleNamespace:
    """Functions as a plugin's module: ``module(pre_tool_use=lambda event: ...)``."""
    return SimpleNamespace(**{name: f if hasattr(f, "kernel_impl") else hookimpl(f) for name, f in functions.items()})
