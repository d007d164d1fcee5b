"""The two protocols of what stands around the loop: front ends and commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kernel.harness import Harness


class FrontEnd(Protocol):
    """Reads prompts, opens sessions, shows their output. Registered by ``register_front_ends`` under ``name``."""

    name: str

    async def run(self, harness: Harness) -> int:
        """Run to the end and return the exit code. ``harness.options`` holds what the command line said."""


class Command(Protocol):
    """A subcommand of ``kernel``. Registered by ``register_commands`` under ``name``."""

    name: str
    summary: str

    def run(self, args: list[str]) -> int:
        """Run with the arguments behind the command's name and return the exit code."""
