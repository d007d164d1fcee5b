"""Hook implementations: the front end, and the extension through which words reach a turn that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, Extension, FrontEnd, Registry


@hookimpl
def register_front_ends(register: Registry[FrontEnd]) -> None:
    from kernel_terminal.front_end import Terminal

    register(Terminal())


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_terminal.steering import Steering

    register(Steering())


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    from kernel_terminal.shells import Completion

    register(Completion())
