"""The session's side: prompts in, messages out, by the rules of print mode (headless contract, sections 3, 4 and 9).

Runs in the event loop of the session's own thread; so do all methods.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.abc

from kernel import Block, Dialogue, Harness, Output, ResultMessage, Session, UsageError, UserMessage, encode_output
from kernel_serve.ring import Ring

CONTROL = "stdio"
WAIT_S = 600.0
"""Seconds for background work behind the last prompt; ``CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS`` of the session, 0: no limit."""
NO_PROMPT = "Input must be provided either through stdin or as a prompt argument when using --print"
BLANK_PROMPT = "The prompt was blank, so the model was not asked."

Prompt = tuple[str | list[Block], dict[str, Any]]
"""The content of a user message, and the object that it came in."""


class Conversation:
    """A ``kernel.Wire``. ``code``: the exit code that print mode would have so far."""

    def __init__(self, harness: Harness, ring: Ring) -> None:
        self.ring = ring
        self.code = 0
        self.result: ResultMessage | None = None
        self.running = False
        self.turns = 0
        self.cpu_s = 0.0
        """CPU time of this thread within turns."""
        self.active = time.monotonic()
        self._waiting: deque[Prompt] = deque()
        self._held: list[Block] = []
        self._seen: set[str] = set()
        self._over = False
        self._first, self._came, self._ready = anyio.Event(), anyio.Event(), anyio.Event()
        self._turns = anyio.Lock()
        self._tasks: anyio.abc.TaskGroup = anyio.create_task_group()
        options = harness.options
        self._streaming = options.input_format == "stream-json"
        self.session: Session = harness.open(self._say)
        control = harness.one("controls", CONTROL) if self._streaming and options.output_format == "stream-json" else None
        self.dialogue: Dialogue | None = control.open(self.session, self) if control is not None else None

    def _say(self, message: Output) -> None:
        if isinstance(message, ResultMessage):
            self.result = message
        self.write(encode_output(message))

    # -- from the first prompt to the end ------------------------------------------------------------------------------------
    async def to_end(self) -> None:
        failure: Exception | None = None
        try:
            async with self._tasks:
                try:
                    await self._talk()
                except Exception as error:  # raised below, outside the group, which would wrap it
                    failure = error
                self._tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self.session.close()
                await self.session.provider.aclose()
        if failure is not None:
            raise failure

    async def _talk(self) -> None:
        """Prompts as they come, until no more do. The session starts behind the first object, which may configure it."""
        session = self.session
        init_only = bool(session.options.extra.get("init_only"))
        if not init_only:
            await self._first.wait()
        await session.start()
        self._ready.set()
        if init_only:
            return
        if session.initial_message:
            await self._submit(session.initial_message)
        if not self._streaming and not self._waiting:  # the end came, and no prompt
            if session.deferred:
                await self._submit(None)
            elif not session.initial_message:
                raise UsageError(NO_PROMPT)
        await self._prompts()
        await self._settle()
        await session.close()
        if self.dialogue is not None:
            await self.dialogue.close()

    async def _prompts(self) -> None:
        failure: Exception | None = None
        async with anyio.create_task_group() as beside:
            beside.start_soon(self._between_turns)
            try:
                while await self._prompt_waits():
                    async with self._turns:
                        if self._waiting:  # it may have been dropped
                            await self._one(*self._waiting.popleft())
            except Exception as error:
                failure = error
            beside.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _prompt_waits(self) -> bool:
        while not self._waiting:
            if self._over:
                return False
            self._came = anyio.Event()
            await self._came.wait()
        return True

    async def _one(self, content: str | list[Block], more: dict[str, Any]) -> None:
        session = self.session
        uuid = more.get("uuid")
        if session.options.replay_user_messages:
            uuid = uuid or session.clock.new_id()  # names the checkpoint of this prompt, so it must be the entry's
            session.emit(UserMessage(uuid=uuid, session_id=session.id, is_replay=True,
                                     message={"role": "user", "content": content}, parent_tool_use_id=None))
        if self._streaming and is_blank(content):
            session.notice(BLANK_PROMPT, level="info")
            session.interrupted = False  # meant for this prompt
            session.emit(session.blank_result(BLANK_PROMPT))
            return
        origin = more.get("origin")
        if origin is None and more.get("isSynthetic"):
            origin = {"kind": "unclassified"}
        await self._submit(content, uuid=uuid, origin=origin)

    async def _submit(self, prompt: str | list[Block] | None, **more: Any) -> None:
        with self._turn():
            result = await self.session.submit(prompt, **more)
        self.code = 1 if result.is_error else 0

    @contextmanager
    def _turn(self) -> Iterator[None]:
        began = time.thread_time()
        self.running = True
        try:
            yield
        finally:
            self.running = False
            self.turns += 1
            self.cpu_s += time.thread_time() - began
            self.active = time.monotonic()

    async def _between_turns(self) -> None:
        """A run for what the model must know, where it comes while none is on."""
        while True:
            await self.session.inbox.arrival()
            async with self._turns:
                await self._deliver()

    async def _deliver(self) -> None:
        if len(self.session.inbox):
            await self._submit(None, origin=self.session.inbox.origin)

    async def _settle(self) -> None:
        """Wait for background work; each report starts a run."""
        inbox, clock = self.session.inbox, self.session.clock
        given = os.environ.get("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", "")
        most = int(given) / 1000 if given.isdecimal() else WAIT_S
        began = clock.monotonic()
        while len(inbox) or inbox.awaited:
            await self._deliver()
            left = most - (clock.monotonic() - began) if most else None
            if (left is not None and left <= 0) or not await inbox.wait(left):
                break

    # -- what clients say ------------------------------------------------------------------------------------------------------
    def take_prompt(self, content: str | list[Block], more: dict[str, Any]) -> None:
        """Put a prompt behind those that wait; one whose uuid came before is skipped."""
        uuid = more.get("uuid")
        if self._over or uuid in self._seen:
            return
        if isinstance(uuid, str):
            self._seen.add(uuid)
        if more.get("shouldQuery") is False:
            self._held += blocks_of(content)
            return
        if self._held:
            content, self._held = [*self._held, *blocks_of(content)], []
        self._waiting.append((content, more))
        self._wake()

    def take_frame(self, frame: dict[str, Any]) -> None:
        if self.dialogue is not None and self.dialogue.take(frame):
            self._first.set()

    def no_more(self) -> None:
        """No prompt comes any more; those that wait still run."""
        self._over = True
        if self.dialogue is not None:
            self.dialogue.ended()
        self._wake()

    def terminate(self) -> None:
        """End now, as SIGTERM ends print mode."""
        self._over = self.session.interrupted = True  # commands get no time to end by themselves
        self._tasks.cancel_scope.cancel()

    def _wake(self) -> None:
        self._first.set()
        self._came.set()

    # -- kernel.Wire -------------------------------------------------------------------------------------------------------------
    def write(self, line: bytes) -> None:
        self.active = time.monotonic()
        self.ring.put(line)

    def spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
        self._tasks.start_soon(work, *args)

    async def started(self) -> None:
        await self._ready.wait()

    @property
    def busy(self) -> bool:
        return self.running or bool(self._waiting)

    @property
    def asks(self) -> bool:
        """Whether a question to a person is open."""
        return self.session.asking.statistics().locked

    def interrupt(self) -> bool:
        if self.busy:
            self.session.interrupt()  # the flag holds for the prompt that is about to begin
        return self.busy

    def queued(self, *, drop: bool = False) -> list[str]:
        behind = list(self._waiting)[0 if self.running else 1:]
        if drop:
            for prompt in behind:
                self._waiting.remove(prompt)
        return [more["uuid"] for _, more in behind if isinstance(more.get("uuid"), str)]

    @property
    def waiting(self) -> int:
        return len(self._waiting)


def blocks_of(content: str | list[Block]) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else [b for b in content if isinstance(b, dict)]


def is_blank(content: str | list[Block]) -> bool:
    return not any(b.get("type") != "text" or str(b.get("text", "")).strip() for b in blocks_of(content))
