"""Hook implementations of the sessions plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Registry, TranscriptStore


@hookimpl
def register_stores(register: Registry[TranscriptStore]) -> None:
    """The store ``files``."""
    from kernel_sessions.store import FileStore

    register(FileStore())
