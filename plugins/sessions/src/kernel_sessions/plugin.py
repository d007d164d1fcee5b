"""Hook implementations of the sessions plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Command, Extension, Middleware, Registry, TranscriptStore


@hookimpl
def register_stores(register: Registry[TranscriptStore]) -> None:
    """The store ``files``."""
    from kernel_sessions.store import FileStore

    register(FileStore())


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    """Typed commands, and the sweep."""
    from kernel_sessions.typed import SessionExtension

    register(SessionExtension())


@hookimpl
def register_middleware(register: Registry[Middleware]) -> None:
    """Keeps files before they are changed."""
    from kernel_sessions.watching import FileWatch

    register(FileWatch())


@hookimpl
def register_commands(register: Registry[Command]) -> None:
    """``kernel sessions ...``."""
    from kernel_sessions.commands import COMMANDS

    for command in COMMANDS:
        register(command)
