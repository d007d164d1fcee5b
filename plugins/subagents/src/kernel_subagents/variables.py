"""What environment variables say."""

from __future__ import annotations

import os

ON = frozenset({"1", "true", "yes", "on"})


def is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() in ON


def number(variable: str, default: int) -> int:
    """A whole number above 0; the default where there is none."""
    given = os.environ.get(variable, "").strip()
    return int(given) if given.isdecimal() and int(given) else default
