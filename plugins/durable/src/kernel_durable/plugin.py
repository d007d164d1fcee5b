"""Hook implementations. Where durable runs are not switched on, nothing but the commands is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, Extension, Middleware, Registry


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    """The step runner."""
    from kernel_durable.config import is_on

    if is_on(register.settings, register.options):
        from kernel_durable.steps import Durable

        register(Durable())


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    """Where a run ends, and who is asked."""
    from kernel_durable.config import is_on

    if is_on(register.settings, register.options):
        from kernel_durable.extension import DurableExtension

        register(DurableExtension())


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    """``kernel durable ...``."""
    from kernel_durable.commands import COMMANDS

    for command in COMMANDS:
        register(command)
