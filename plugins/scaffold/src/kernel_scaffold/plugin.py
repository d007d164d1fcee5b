"""Hook implementations: the command."""

from __future__ import annotations

from kernel import Command, Registry, hookimpl


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    from kernel_scaffold.command import PluginsNew

    register(PluginsNew())
