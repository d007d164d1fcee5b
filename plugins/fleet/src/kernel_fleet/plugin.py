"""Hook implementations: the commands, and the shared pace of a fleet's requests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, Middleware, Registry


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    """``kernel fleet ...``."""
    from kernel_fleet.commands import COMMANDS

    for command in COMMANDS:
        register(command)


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    """Only inside a run of a fleet that has a limit of requests."""
    given = os.environ.get("KERNEL_FLEET_PACE", "")
    if given:
        from kernel_fleet.pace import Pace

        register(Pace.read(given))
