"""Print mode: prompts in, one format out, an exit code (headless contract, sections 3, 4 and 9)."""

from __future__ import annotations

import signal
import sys
from contextlib import nullcontext
from typing import Any

import anyio
import anyio.abc

from kernel import Block, Harness, ResultMessage, Session, SessionError, Usage, UsageError, UserMessage, env_number
from kernel_headless.lines import Lines, blocks_of
from kernel_headless.reading import NO_PROMPT, text_prompt
from kernel_headless.writers import Writer, kept_clean

ENDING = (signal.SIGTERM, signal.SIGHUP)
"""They end the process at once; SIGINT does when it comes twice. The exit code is 128 and the number."""
LEFT = {"waiting_for_approval": 75}
"""Exit codes of runs that are not over: another process takes them up (75 is ``EX_TEMPFAIL``)."""
WAIT_MS = 600_000
"""Seconds that agents in the background have behind the last prompt; ``CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS``, 0 for no limit."""
BLANK_PROMPT = "The prompt was blank, so the model was not asked."


class Headless:
    """One front end per output format."""

    def __init__(self, writer: type[Writer]) -> None:
        self.name = writer.name
        self._writer = writer

    async def run(self, harness: Harness) -> int:
        writer = self._writer(harness.options.verbose)
        with kept_clean(writer):
            return await Run(harness, writer).to_end()


class Run:
    """One process from the first prompt to the exit code."""

    def __init__(self, harness: Harness, writer: Writer) -> None:
        self.harness = harness
        self.options = harness.options
        self.writer = writer
        self.code = 0
        self._turns = anyio.Lock()
        self._ended_by = 0
        self._closing = anyio.CancelScope()
        self._lines: Lines | None = None

    async def to_end(self) -> int:
        streaming = self.options.input_format == "stream-json"
        prompt = None if streaming else text_prompt(self.options.prompt)
        for text in self.harness.announced:
            self.writer.announce(text)
        self.harness.listeners.append(self.writer.announce)
        session = self._opened()
        failure: Exception | None = None
        async with anyio.create_task_group() as watch:
            async with anyio.create_task_group() as tasks:
                await watch.start(self._watch_signals, session, tasks.cancel_scope)
                self.writer.on_failure = tasks.cancel_scope.cancel  # nobody hears the answer: stop asking
                try:
                    await (self._stream(session, tasks) if streaming else self._work(session, prompt))
                except Exception as error:  # raised below, outside the groups, which would wrap it
                    failure = error
                tasks.cancel_scope.cancel()
            await self._close(session)
            watch.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if self.writer.failure is not None:
            if not isinstance(self.writer.failure, BrokenPipeError):
                raise UsageError(f"stdout cannot be written: {self.writer.failure.strerror}")
            return 1
        return 128 + self._ended_by if self._ended_by else self.code

    async def _close(self, session: Session) -> None:
        """End the session; no signal leaves that half done, unless it is one more SIGINT when all is ending already."""
        with anyio.CancelScope(shield=True) as self._closing:
            await session.close()

    def _opened(self) -> Session:
        """The conversation. A program is told on stdout, too, that it cannot be had (headless contract, 5.5).

        :raises SessionError: it cannot.
        """
        try:
            return self.harness.open(self.writer.take)
        except SessionError as error:
            if self.writer.protocol:
                self.writer.take(refusal(self.harness, str(error)))
                self.writer.finish()
            raise

    async def _work(self, session: Session, prompt: str | None) -> None:
        """One prompt."""
        await session.start()
        if self.options.extra.get("init_only"):
            return
        if session.initial_message:
            self._judge(await session.submit(session.initial_message))
        elif prompt is None and not session.deferred:
            raise UsageError(NO_PROMPT)
        if prompt is not None or session.deferred:
            self._judge(await session.submit(prompt))
        await self._settle(session)
        await self._close(session)
        self.writer.finish()

    async def _stream(self, session: Session, tasks: anyio.abc.TaskGroup) -> None:
        """Prompts as they come, until stdin ends. The session starts behind the first line, which may configure it."""
        lines = self._lines = Lines(session, self.writer, tasks)
        if not self.options.extra.get("init_only"):
            tasks.start_soon(lines.read)
            await lines.first.wait()
        await session.start()
        lines.ready.set()
        if self.options.extra.get("init_only"):
            return
        if session.initial_message:
            with lines.turn():
                self._judge(await session.submit(session.initial_message))
        failure: Exception | None = None
        async with anyio.create_task_group() as beside:
            beside.start_soon(self._between_turns, session)
            try:
                while await lines.wait():
                    async with self._turns:
                        with lines.turn():
                            if prompt := lines.next():
                                await self._turn(session, *prompt)
            except Exception as error:  # raised below, outside the group, which would wrap it
                failure = error
            beside.cancel_scope.cancel()
        if failure is not None:
            raise failure
        await self._settle(session)
        await self._close(session)
        await lines.close()
        self.writer.finish()

    def _judge(self, result: ResultMessage) -> None:
        self.code = LEFT.get(result.terminal_reason, int(result.is_error))

    # -- what happened beside the conversation ---------------------------------------------------------------------------
    async def _between_turns(self, session: Session) -> None:
        """A run for what the model must know, where it comes while none is on."""
        while True:
            await session.inbox.arrival()
            async with self._turns:
                await self._deliver(session)

    async def _deliver(self, session: Session) -> None:
        if len(session.inbox):
            with self._lines.turn() if self._lines else nullcontext():
                self._judge(await session.submit(None, origin=session.inbox.origin))

    async def _settle(self, session: Session) -> None:
        """Wait for agents in the background; each report starts a run (section 9)."""
        most = env_number("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS", WAIT_MS, least=0) / 1000
        began = session.clock.monotonic()
        while len(session.inbox) or session.inbox.awaited:
            await self._deliver(session)
            left = most - (session.clock.monotonic() - began) if most else None
            if left is not None and left <= 0:
                break
            if not await session.inbox.wait(left):
                break

    # -- stream input ---------------------------------------------------------------------------------------------------
    async def _turn(self, session: Session, content: str | list[Block], more: dict[str, Any]) -> None:
        uuid = more.get("uuid") if isinstance(more.get("uuid"), str) else None
        if self.options.replay_user_messages:
            uuid = uuid or session.clock.new_id()  # names the checkpoint of this prompt, so it must be the entry's
            session.emit(UserMessage(uuid=uuid, session_id=session.id, is_replay=True,
                                     message={"role": "user", "content": content}, parent_tool_use_id=None))
        if not any(b.get("type") != "text" or str(b.get("text", "")).strip() for b in blocks_of(content)):
            session.notice(BLANK_PROMPT, level="info")
            session.interrupted = False  # meant for this prompt
            session.emit(session.blank_result(BLANK_PROMPT))
            return
        origin = more.get("origin") if isinstance(more.get("origin"), dict) else None
        if origin is None and more.get("isSynthetic"):
            origin = {"kind": "unclassified"}
        self._judge(await session.submit(content, uuid=uuid, origin=origin))

    # -- signals ----------------------------------------------------------------------------------------------------------
    async def _watch_signals(self, session: Session, scope: anyio.CancelScope, *,
                             task_status: anyio.abc.TaskStatus[None]) -> None:
        """SIGINT ends the turn, a second one the process; SIGTERM and SIGHUP end commands and raise SessionEnd only.

        What whoever started the process has it ignore stays ignored: ``nohup``, a job in the background of a script.
        """
        heard = [number for number in (signal.SIGINT, *ENDING) if signal.getsignal(number) is not signal.SIG_IGN]
        with anyio.open_signal_receiver(*heard) as signals:
            task_status.started()
            interrupts = 0
            async for number in signals:
                if number in ENDING:
                    self._ended_by = self._ended_by or number
                    session.interrupted = True  # commands get no time to end by themselves
                    scope.cancel()
                    continue
                interrupts += 1
                if self._ended_by or interrupts > 2:
                    self._closing.cancel()
                elif interrupts == 2:
                    sys.stderr.write("Interrupted twice.\n")
                    self._ended_by = number
                    scope.cancel()
                else:
                    session.interrupt()


def refusal(harness: Harness, text: str) -> ResultMessage:
    """The result of a run that was refused before it had a conversation."""
    return ResultMessage(
        uuid=harness.clock.new_id(), session_id=harness.options.resume or harness.options.session_id or "",
        subtype="error_during_execution", is_error=True, duration_ms=0, duration_api_ms=0, num_turns=0, stop_reason=None,
        total_cost_usd=0.0, usage=Usage(), model_usage={}, permission_denials=[],
        terminal_reason="turn_setup_failed", errors=[text])
