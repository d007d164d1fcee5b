"""The named steps of a change. A test listens here, to fail or to die at each of them."""

from __future__ import annotations

from collections.abc import Callable

STEPS = ("resolve", "fetch", "check", "python", "health", "store", "prepare", "journal", "switch", "switched", "clean")
"""In their order. Up to ``prepare`` nothing has changed; once ``journal`` is passed the change is carried to its end."""

listeners: list[Callable[[str], None]] = []


def step(name: str) -> None:
    for listener in listeners:
        listener(name)
