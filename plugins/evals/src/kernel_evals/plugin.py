"""Hook implementations: the commands, and inside a case the middleware that writes down what happens."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, Middleware, Registry


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    """``kernel evals ...``."""
    from kernel_evals.commands import COMMANDS

    for command in COMMANDS:
        register(command)


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    """Only in the process of a case."""
    folder = os.environ.get("KERNEL_EVALS_TRACE", "")
    if folder:
        from kernel_evals.trace import Trace

        register(Trace.open(folder))
