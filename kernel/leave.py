"""The exception that leaves the loop (loop contract, section 9)."""

from __future__ import annotations

from typing import Any


class Leave(Exception):
    """The loop ends. ``subtype`` and ``terminal_reason`` are the documented names; ``errors`` go to the result."""

    def __init__(self, terminal_reason: str, subtype: str = "success", *, stop_reason: str | None = None,
                 text: str | None = None, errors: tuple[str, ...] = (), status: int | None = None,
                 is_error: bool = False, **more: Any) -> None:
        super().__init__(terminal_reason)
        self.terminal_reason = terminal_reason
        self.subtype = subtype
        self.stop_reason = stop_reason
        self.text = text
        self.errors = errors
        self.status = status
        self.is_error = is_error or subtype != "success"
        self.more = more
