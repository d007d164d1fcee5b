"""The front end ``terminal``: the folder's trust, one conversation after the other, and how to come back."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc

from kernel import Harness, KernelError, Session, SessionError, __version__, text_of
from kernel_terminal import trust
from kernel_terminal.lines import Line, words
from kernel_terminal.safe import one_line, plain
from kernel_terminal.talk import Talk
from kernel_terminal.view import View

if TYPE_CHECKING:
    from kernel_terminal.screen import Screen

SETTING = "kernel.terminal.plain"
VARIABLE = "KERNEL_TERMINAL_PLAIN"
DUMB = ("", "dumb", "unknown")
CLOSING_S = 0.5
TOLD_CHARS = 2_000
NOT_SAID = ("<system-reminder>", "[Request interrupted")


class Terminal:
    """``kernel`` without ``-p`` on a terminal."""

    name = "terminal"

    async def run(self, harness: Harness) -> int:
        return await Program(harness).to_end()


class Program:
    """From the first line to the last."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.screen = screen_for(harness)
        self.view = View(plain=self.screen.plain, columns=lambda: self.screen.columns, cwd=str(harness.options.cwd))
        self.talk: Talk | None = None
        self._left = False

    async def to_end(self) -> int:
        failure: Exception | None = None
        last: Session | None = None
        self.screen.handlers.leave = self._leave
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._watch_signals)
            tasks.start_soon(self.screen.run)
            await self.screen.started()
            with _printed_above(self.screen):
                try:
                    last = await self._conversations()
                except Exception as error:  # raised below, outside the group, which would wrap it
                    failure = error
            self.screen.stop()
            tasks.cancel_scope.cancel()
        while isinstance(failure, ExceptionGroup) and len(failure.exceptions) == 1:
            failure = failure.exceptions[0]
        if failure is not None and not isinstance(failure, EOFError):
            raise failure
        if last is not None and last.transcript.kept and last.history.messages:
            self.screen.show([words(f"Session {last.id} is kept. To go on with it:"), words(_come_back(last))])
        return 0

    def _leave(self) -> None:
        self._left = True
        if self.talk is not None:
            self.talk.leave()

    # -- conversations -----------------------------------------------------------------------------------------------------
    async def _conversations(self) -> Session | None:
        """One after the other, until the person leaves; the last one."""
        options = self.harness.options
        if not await self._trusted():
            return None
        options.include_partial_messages = True
        for text in self.harness.announced:
            self.screen.show(self.view.announce(text))
        self.harness.listeners.append(lambda text: self.screen.show(self.view.announce(text)))
        picking = options.resume == ""
        if picking:
            options.resume = await self._picked()
        prompt = options.prompt
        before: str | None = None
        while True:
            try:
                session = self.harness.open(self._hear)
            except KernelError as error:
                if before is None and not (picking and options.resume):
                    raise
                self.screen.show(self.view.announce(str(error)))
                options.resume, before = before or await self._picked(), None
                continue
            self._greet(session)
            self.talk = Talk(self.harness, session, self.screen, self.view)
            try:
                following = await self.talk.run(prompt)
            finally:
                await self._close(session, "resume" if self.talk.next else "prompt_input_exit")
            if following is None or self._left:
                return session
            prompt, before = None, session.id
            options.resume, options.continue_session, options.fork_session = following, False, False
            options.session_id = options.resume_at = options.name = None

    def _hear(self, message: Any) -> None:
        if self.talk is not None:
            self.talk.hear(message)

    async def _close(self, session: Session, reason: str) -> None:
        """SessionEnd hooks and servers may take their time, which is then said."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._say_closing)
            with anyio.CancelScope(shield=True):
                await session.close(reason)
            tasks.cancel_scope.cancel()

    async def _say_closing(self) -> None:
        await anyio.sleep(CLOSING_S)
        self.screen.show(self.view.note("Closing the conversation."))

    async def _picked(self) -> str | None:
        """``--resume`` without a name."""
        from kernel_terminal import own

        found = await anyio.to_thread.run_sync(own.sessions, self.harness)
        if not found:
            raise SessionError("there is no conversation in this folder to go on with", hint="kernel begins one")
        chosen: str | None = (await self.screen.ask(own.picker(found))).value
        return chosen

    def _greet(self, session: Session) -> None:
        folder = str(self.harness.options.cwd).replace(os.path.expanduser("~"), "~", 1)
        if self.screen.plain:
            lines: list[Line] = [words(f"kernel {__version__}. Model: {one_line(session.model_info.id)}. "
                                       f"Mode: {session.state.permission_mode}. Folder: {one_line(folder)}. /help tells more.")]
        else:
            lines = [[("bold", "kernel"), ("dim", f" {__version__} · {one_line(session.model_info.id)} · {one_line(folder)}")]]
        self.screen.show(lines)
        messages = session.transcript.restored.messages
        if messages:
            self.screen.show(self.view.note(f"{session.title or 'The conversation'} goes on: {len(messages)} messages before."))
            for role, content in _last_words(messages):
                text = text_of(content)[-TOLD_CHARS:]
                self.screen.show(self.view.said(text) if role == "user" and not self.screen.plain else
                                 self.view.past(role, text))

    # -- trust ---------------------------------------------------------------------------------------------------------------
    async def _trusted(self) -> bool:
        """Ask about the folder, once; false where the person leaves. What a yes changes is read anew."""
        if self.harness.settings.trusted:
            return True
        answer = (await self.screen.ask(trust.question(self.harness.settings))).value
        if answer == "yes":
            trust.accept(self.harness.options.cwd)
            sink = self.harness.debug_sink
            self.harness = Harness(self.harness.options)
            self.harness.debug_sink = sink
        elif answer == "no":
            self.screen.show(self.view.announce("The folder is not trusted: what it brings does not count, and no hook of a "
                                                "settings file runs in this session."))
        return answer in ("yes", "no") and not self._left

    async def _watch_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """SIGINT is ctrl-c where the terminal is in line mode; the others mean that the conversation is to be closed."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            task_status.started()
            async for number in signals:
                if number != signal.SIGINT or self.talk is None or not self.talk.interrupt():
                    self._leave()
                    if self.talk is None:
                        self.screen.stop()


def _come_back(session: Session) -> str:
    """The command that goes on with a session. A model that was named with its provider would not be found again without it."""
    model = session.options.model or ""
    return f"kernel --resume {session.id}{f' --model {shlex.quote(one_line(model))}' if ':' in model else ''}"


def _last_words(messages: list[Any]) -> list[Any]:
    """The last thing that each side said."""
    spoken = [(role, content) for role, content in messages if text_of(content).strip()
              and not text_of(content).lstrip().startswith(NOT_SAID)]
    return spoken[-2:]


def screen_for(harness: Harness) -> Screen:
    """The plain form where a person asks for it or the terminal cannot do more."""
    asked = os.environ.get(VARIABLE, "").lower()
    wanted = asked in ("1", "true", "yes", "on") if asked else harness.settings.own(SETTING) is True
    if wanted or os.environ.get("TERM", "") in DUMB:
        from kernel_terminal.plain_screen import PlainScreen

        return PlainScreen()
    from kernel_terminal.live_screen import LiveScreen

    return LiveScreen(harness.settings.config_dir / "kernel" / "history")


class _Above:
    """What somebody prints while the screen is drawn, line by line above it."""

    encoding = "utf-8"

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._rest = ""

    def write(self, text: str) -> int:
        *whole, self._rest = (self._rest + text).split("\n")
        self._screen.show([words(part) for line in whole for part in plain(line).splitlines()])
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return sys.__stdout__.fileno() if sys.__stdout__ else 1


@contextmanager
def _printed_above(screen: Screen) -> Iterator[None]:
    above: Any = _Above(screen)
    with redirect_stdout(above), redirect_stderr(above):
        yield
