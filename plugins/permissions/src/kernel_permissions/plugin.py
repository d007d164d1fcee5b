"""The hooks of this plugin."""

from __future__ import annotations

from typing import Any

from kernel import hookimpl


@hookimpl
def register_commands(register: Any) -> None:
    from .workbench.command import PermissionsCommand

    register(PermissionsCommand())


@hookimpl
def register_policies(register: Any) -> None:
    from .sources import RulesFactory

    register(RulesFactory())
