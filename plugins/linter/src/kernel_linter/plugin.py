"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, Registry


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    from kernel_linter.command import Lint, Schema, Validate

    for command in (Validate(), Schema(), Lint()):
        register(command)
