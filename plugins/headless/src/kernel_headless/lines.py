"""Stream input: one reader for all that comes on stdin, a queue of prompts, and what a control may do beside them.

Prompts wait here while a turn runs; what is no prompt goes to the control at once (SDK contract, section 2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.abc

from kernel import Block, Dialogue, Session
from kernel_headless.reading import stream_messages
from kernel_headless.writers import Writer

CONTROL = "stdio"
"""Name of the control that is spoken with over these lines."""

Prompt = tuple[str | list[Block], dict[str, Any]]
"""The content of a user message, and the object that it came in."""


class Lines:
    """A ``kernel.Wire``. ``first``: the session may start, since the first object came and was looked at, or none comes.

    :param tasks: where the control's work runs.
    """

    def __init__(self, session: Session, writer: Writer, tasks: anyio.abc.TaskGroup) -> None:
        self.first = anyio.Event()
        self.ready = anyio.Event()
        """``session.start()`` is done."""
        self._session = session
        self._writer = writer
        self._tasks = tasks
        self._waiting: deque[Prompt] = deque()
        self._came = anyio.Event()
        self._over = False
        self._failure: Exception | None = None
        self._running = False
        control = session.harness.one("controls", CONTROL) if writer.name == "stream-json" else None
        self._dialogue: Dialogue | None = control.open(session, self) if control is not None else None

    # -- reading ---------------------------------------------------------------------------------------------------------
    async def read(self) -> None:
        """Sort all that comes on stdin, to its end."""
        try:
            async for prompt in self._sorted():
                self._waiting.append(prompt)
                self._wake()
        except Exception as error:  # raised where prompts are taken, behind the ones that came before it
            self._failure = error
        self._over = True
        if self._dialogue is not None:
            self._dialogue.ended()
        self._wake()

    def _wake(self) -> None:
        self.first.set()
        self._came.set()

    async def _sorted(self) -> AsyncIterator[Prompt]:
        """Each user message; ids that were seen before are skipped, unknown types are ignored."""
        seen: set[str] = set()
        held: list[Block] = []
        async for value in stream_messages():
            if value.get("type") != "user":
                if self._dialogue is not None and self._dialogue.take(value):
                    self.first.set()
                elif value.get("type") != "keep_alive":
                    self._session.debug(f"stdin: a message of type {str(value.get('type'))[:40]!r} is ignored")
                continue
            content = (value.get("message") or {}).get("content") if isinstance(value.get("message"), dict) else None
            uuid = value.get("uuid")
            if not isinstance(content, str | list) or (isinstance(uuid, str) and uuid in seen):
                continue
            if isinstance(uuid, str):
                seen.add(uuid)
            if value.get("shouldQuery") is False:
                held += blocks_of(content)
                continue
            if held:
                content, held = [*held, *blocks_of(content)], []
            yield content, value

    async def wait(self) -> bool:
        """Until a prompt waits; false where none comes any more.

        :raises UsageError: a line was no JSON object.
        """
        while not self._waiting:
            if self._over:
                if self._failure is not None:
                    raise self._failure
                return False
            self._came = anyio.Event()
            await self._came.wait()
        return True

    def next(self) -> Prompt | None:
        """The first prompt that waits; it may have been dropped."""
        return self._waiting.popleft() if self._waiting else None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn runs meanwhile, which can be interrupted."""
        self._running = True
        try:
            yield
        finally:
            self._running = False

    async def close(self) -> None:
        if self._dialogue is not None:
            await self._dialogue.close()

    # -- what a control may do (kernel.Wire) -------------------------------------------------------------------------------
    def write(self, line: bytes) -> None:
        self._writer.write(line + b"\n")

    def spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        self._tasks.start_soon(work, *args)

    async def started(self) -> None:
        await self.ready.wait()

    @property
    def busy(self) -> bool:
        return self._running or bool(self._waiting)

    def interrupt(self) -> bool:
        if self.busy:
            self._session.interrupt()  # the flag holds for the prompt that is about to begin
        return self.busy

    def queued(self, *, drop: bool = False) -> list[str]:
        behind = list(self._waiting)[0 if self._running else 1:]
        if drop:
            for prompt in behind:
                self._waiting.remove(prompt)
        return [more["uuid"] for _, more in behind if isinstance(more.get("uuid"), str)]


def blocks_of(content: str | list[Block]) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else [b for b in content if isinstance(b, dict)]
