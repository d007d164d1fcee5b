"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, Compactor, Extension, Registry


@hookimpl
def register_compactors(register: Registry[Compactor]) -> None:
    from kernel_compactor.summary import SummaryCompactor

    register(SummaryCompactor())


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_compactor.ledger import Ledger
    from kernel_compactor.typed import TypedCommands

    register(TypedCommands())
    register(Ledger())


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    from kernel import TyperCommand

    register(TyperCommand("context ledger", "what of the last request's prefix each request of a session kept, and what broke it",
                          "kernel_compactor.command:show"))
