"""Environment variables that a plugin or the kernel reads (settings contract, 7.1)."""

from __future__ import annotations

import os


def env_switch(name: str) -> bool | None:
    """What an on/off variable says; ``None`` where it is missing or says neither (settings contract, 7.1)."""
    value = os.environ.get(name, "").strip().lower()
    return True if value in ("1", "true", "yes", "on") else False if value in ("0", "false", "no", "off") else None


def env_number(name: str, default: int, least: int = 1) -> int:
    """A variable that holds a whole number; the default where it holds none, or one below ``least``."""
    value = os.environ.get(name, "").strip()
    return int(value) if value.isdecimal() and len(value) < 16 and int(value) >= least else default
