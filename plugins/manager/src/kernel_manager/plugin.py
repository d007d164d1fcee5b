"""Hook implementations."""

from __future__ import annotations

from typing import Any

from kernel import hookimpl


@hookimpl
def register_commands(register: Any) -> None:
    from kernel_manager import cli
    from kernel_manager.harness_file import commands as harness_commands

    cli.register(register)
    harness_commands.register(register)


@hookimpl
def register_extensions(register: Any) -> None:
    from kernel_manager.live import Reloading

    register(Reloading())
