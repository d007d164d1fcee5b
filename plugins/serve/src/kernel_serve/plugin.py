"""Hook implementations."""

from __future__ import annotations

from kernel import Command, Registry, hookimpl


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    from kernel_serve.command import COMMANDS

    for command in COMMANDS:
        register(command)
