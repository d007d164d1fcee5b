"""What one context knows of its compactions."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from kernel import Session

STATE = "compactor"


class State(Struct):
    """``requests`` counts since the last compaction; ``refills`` how often the window was full again right after one.

    ``prompted``: a prompt came that no request has held yet. ``fresh``: the request that is being made is the first to hold it.
    ``request`` is that prompt, word for word. ``media``: characters of images and documents in the first ``looked`` messages
    of the history ``measured``.
    """

    failures: int = 0
    session: str = ""
    requests: int = 0
    refills: int = 0
    compacted: bool = False
    told: set[str] = field(default_factory=set)
    pins: list[str] = field(default_factory=list)
    measured: Any = None
    looked: int = 0
    media: int = 0
    prompted: bool = True
    fresh: bool = False
    request: str = ""
    receipts: list[dict[str, Any]] = field(default_factory=list)

    def once(self, what: str) -> bool:
        """Whether that was not said yet."""
        new = what not in self.told
        self.told.add(what)
        return new


def state(session: Session) -> State:
    """Of the conversation that is on; after ``/clear`` a new one."""
    found: State | None = session.plugin_state.get(STATE)
    if found is None or found.session != session.id:
        found = session.plugin_state[STATE] = State(session=session.id)
    return found
