"""Hook implementations of the inspector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, Middleware, Registry


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    """Writes down what a transcript does not hold."""
    from kernel_inspector.recorder import Inspector

    register(Inspector())


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    """``kernel inspect``."""
    from kernel import TyperCommand

    register(TyperCommand("inspect", "a session as a local page: turns, tools, hooks, decisions, context, cost and time",
                          "kernel_inspector.showing:inspect"))
