"""What helps while a line is typed: completions as prompt_toolkit wants them, and what was typed before."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.to_thread
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from kernel_terminal.completion import Found

HISTORY_BYTES = 500_000


class Suggestions(Completer):
    def __init__(self, complete: Callable[[str], list[Found]], on: Callable[[], bool]) -> None:
        self._complete = complete
        self._on = on

    def get_completions(self, document: Document, complete_event: Any) -> Any:
        return ()

    async def get_completions_async(self, document: Document, complete_event: Any) -> AsyncGenerator[Completion, None]:
        if not self._on():
            return
        before = document.text_before_cursor
        if "/" not in before[:2] and "@" not in before:
            return
        for found in await anyio.to_thread.run_sync(self._complete, before, abandon_on_cancel=True):
            yield Completion(found.text, -found.start, display=found.shown, display_meta=found.detail)


def kept_history(path: Path | None) -> History:
    """What was typed before, in a file that only its owner reads; an old one is cut to its newer half."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(number, "r+b") as file:
            os.fchmod(file.fileno(), 0o600)
            data = file.read()
            if len(data) > HISTORY_BYTES:
                file.seek(0)
                file.truncate()
                file.write(data[data.find(b"\n\n", len(data) // 2) + 1:])
    except OSError:
        return InMemoryHistory()
    return Kept(str(path))


class Kept(FileHistory):
    def store_string(self, string: str) -> None:
        with suppress(OSError):  # a full disk: it is known until the program ends
            super().store_string(string)
