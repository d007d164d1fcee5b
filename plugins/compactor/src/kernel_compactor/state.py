"""What one context knows of its compactions."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from kernel import Session

STATE = "compactor"


class State(Struct):
    """``requests`` counts since the last compaction; ``refills`` how often the window was full again right after one."""

    failures: int = 0
    requests: int = 0
    refills: int = 0
    compacted: bool = False
    told: set[str] = field(default_factory=set)
    pins: list[str] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)

    def once(self, what: str) -> bool:
        """Whether that was not said yet."""
        new = what not in self.told
        self.told.add(what)
        return new


def state(session: Session) -> State:
    found: State = session.plugin_state.setdefault(STATE, State())
    return found
