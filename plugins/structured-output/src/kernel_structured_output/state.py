"""What one run knows of its structured answer."""

from __future__ import annotations

import os
from typing import Any

from msgspec import UNSET, Struct, field

from kernel import OutputProblem, Session

STATE = "structured-output"
MAX_RETRIES = 5
SEMANTIC_RETRIES = 2
PLANNER_AT = 3


def max_retries() -> int:
    given = os.environ.get("MAX_STRUCTURED_OUTPUT_RETRIES", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 6 else MAX_RETRIES


class Attempts(Struct):
    """Counts of one run. ``value`` is what was accepted; of two in one response the last.

    ``scopes``: failures of meaning by who was asked again; ``spent`` names the one that has no try left. ``done``: tools of the
    run, its subagents included, that ended well.
    """

    value: Any = UNSET
    failed: int = 0
    scopes: dict[str, int] = field(default_factory=dict)
    spent: str = ""
    done: set[str] = field(default_factory=set)
    items: dict[str, int] = field(default_factory=dict)
    refused: list[bytes] = field(default_factory=list)
    last: list[OutputProblem] = field(default_factory=list)
    warnings: list[OutputProblem] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        return self.value is not UNSET

    def reopen(self) -> None:
        self.value = UNSET


def attempts(session: Session) -> Attempts:
    found: Attempts = session.plugin_state.setdefault(STATE, Attempts())
    return found


def begin(session: Session) -> None:
    """A new run needs a value of its own."""
    session.plugin_state[STATE] = Attempts()
