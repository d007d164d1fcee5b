"""One conversation on a screen: what is typed becomes prompts, what the session says is shown, what it asks is asked."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio
import anyio.abc

from kernel import KernelError, Notification, Output, Session, SessionError, UsageError
from kernel_terminal import completion, own
from kernel_terminal.asking import Asking
from kernel_terminal.lines import Line
from kernel_terminal.questions import Choice, Question
from kernel_terminal.safe import one_line
from kernel_terminal.steering import STATE

if TYPE_CHECKING:
    from kernel import Harness
    from kernel_terminal.screen import Screen
    from kernel_terminal.view import View

MODES = ("default", "acceptEdits", "plan", "auto", "bypassPermissions")
IDLE_S = 60.0
STARTING = "Starting"
TERMINAL = "hooks.terminal"
"""Where the plugin ``command-hooks`` looks for who writes a hook's sequence to the terminal."""


class Talk:
    """``run`` ends with what comes next: ``None`` to leave, or the id of another conversation."""

    def __init__(self, harness: Harness, session: Session, screen: Screen, view: View) -> None:
        self.harness = harness
        self.session = session
        self.screen = screen
        self.view = view
        self.next: str | None = None
        self._queue: deque[str] = deque()
        self._changed = anyio.Event()
        self._busy = False
        self._over = False
        self._starting: anyio.CancelScope | None = None
        self._files = completion.Files(str(harness.options.cwd))
        self._tasks: anyio.abc.TaskGroup | None = None
        session.plugin_state[STATE] = self
        session.plugin_state[TERMINAL] = screen.write
        self._asking = Asking(session, screen, view)
        handlers = screen.handlers
        handlers.line, handlers.interrupt, handlers.leave = self.typed, self.interrupt, self.leave
        handlers.mode, handlers.whole, handlers.take_back = self._next_mode, self._whole, self._take_back
        handlers.live, handlers.status, handlers.waiting = view.live, self.status, lambda: list(self._queue)
        handlers.complete = lambda before: completion.found(before, self.commands(), self._files)

    # -- life --------------------------------------------------------------------------------------------------------------
    async def run(self, first: str | None = None) -> str | None:
        """Prompts until the person leaves. The session is started here and closed by the caller."""
        if first:
            self._queue.append(first)
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            deaf = self.session.inbox.listen(self._wake)
            await self._start()
            while not self._over:
                if self._queue and not self._over:
                    await self._turn(self._queue.popleft())
                elif len(self.session.inbox):
                    await self._turn(None)
                else:
                    await self._wait()
            deaf()
            tasks.cancel_scope.cancel()
        self._tasks = None
        return self.next

    async def _start(self) -> None:
        """Hooks and servers may take their time; what is typed meanwhile waits."""
        self.view.start(STARTING)
        self._busy = True
        try:
            with anyio.CancelScope() as self._starting:
                await self.session.start()
        finally:
            self._busy, self._starting = False, None
            self.view.stop()
            self.screen.changed()
        if self._over:
            return
        if self.session.initial_message:
            self._queue.appendleft(self.session.initial_message)
        await self._asking.servers()

    async def _wait(self) -> None:
        self._changed = anyio.Event()
        self.screen.ready()
        with anyio.move_on_after(IDLE_S) as scope:
            await self._changed.wait()
        if scope.cancelled_caught:
            await self.session.fire(self.session.make(Notification, message="kernel is waiting for your input",
                                                      notification_type="idle_prompt"))
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()

    async def _turn(self, prompt: str | None) -> None:
        if prompt is not None:
            self.view_show(self.view.said(prompt))
            if command := self._own(prompt):
                await self._run_own(*command)
                return
        self.view.start()
        self._busy = True
        try:
            await self.session.submit(prompt, origin=None if prompt is not None else self.session.inbox.origin)
        finally:
            self._busy = False
            self.session.interrupted = False
            self.view_show(self.view.stop())

    # -- what the session says -----------------------------------------------------------------------------------------------
    def hear(self, message: Output) -> None:
        """The session's ``emit``."""
        self.view_show(self.view.take(message))

    def announce(self, text: str) -> None:
        self.view_show(self.view.announce(text))

    def view_show(self, lines: list[Line]) -> None:
        if lines:
            self.screen.show(lines)
        else:
            self.screen.changed()

    def status(self) -> Line:
        session = self.session
        used, window = own.used_tokens(session), session.model_info.context_window
        mode = session.state.permission_mode
        parts: list[tuple[str, str]] = [("accent", one_line(session.model_info.id, 30)),
                                        ("warn" if mode in ("bypassPermissions", "auto") else "dim", mode)]
        if used is not None and window:
            share = 100 * used / window
            parts.append(("warn" if share > 80 else "dim", f"{share:.0f} % of context"))
        if session.root.spending.usd > 0:
            parts.append(("dim", f"${session.root.spending.usd:.2f}"))
        if self.view.tasks:
            count = len(self.view.tasks)
            parts.append(("running", f"{count} in the background"))
        if activity := self.view.activity():
            parts.append(("running", f"{activity}"))
        elif self.harness.options.permission_mode is None and not session.history.messages:
            parts.append(("dim", "/help"))
        line: Line = [("", "  ")]
        for number, part in enumerate(parts):
            line += [("dim", " · "), part] if number else [part]
        return line

    # -- what the person does ------------------------------------------------------------------------------------------------
    def typed(self, text: str) -> None:
        if not text.strip():
            if not self._busy:
                self.screen.ready()
            return
        command = self._own(text)
        if command is not None and command[0] in own.AT_ONCE:
            self.view_show(self.view.said(text))
            if self._tasks is not None:
                self._tasks.start_soon(self._run_own, *command)
            return
        if command is None and (unknown := self._unknown(text)):
            self.view_show(self.view.note(unknown))
            self.screen.ready()
            return
        self._queue.append(text)
        if self._busy and self.screen.plain:
            starting = self.view.doing == STARTING
            self.view_show(self.view.note("The message waits for the start." if starting else
                                          "The message waits; it goes to the model with its next step."))
        self._wake()
        self.screen.changed()

    def steer(self) -> list[str]:
        """Messages that go into the running turn now; a command waits for its end, and so does what stands behind it."""
        taken: list[str] = []
        while self._queue and not self._queue[0].lstrip().startswith("/"):
            taken.append(self._queue.popleft())
            self.view_show(self.view.said(taken[-1]))
        return taken

    def interrupt(self) -> bool:
        if not self._busy:
            return False
        if self._starting is None:  # a session that was half started would be of no use
            self.session.interrupt()
        return True

    def leave(self) -> None:
        self._over = True
        if self._starting is not None:
            self._starting.cancel()
        elif self._busy:
            self.session.interrupt()
        self._wake()

    def _take_back(self) -> str:
        return self._queue.pop() if self._queue else ""

    def _whole(self) -> None:
        self.view_show(self.view.whole_result())

    def _next_mode(self) -> None:
        """The mode behind the one that is on; those that cannot be used are left out."""
        options, now = self.session.options, self.session.state.permission_mode
        place = MODES.index(now) if now in MODES else -1
        for step in range(1, len(MODES) + 1):
            mode = MODES[(place + step) % len(MODES)]
            if mode == "bypassPermissions" and not (options.allow_bypass or options.permission_mode == mode):
                continue
            try:
                self.session.set_mode(mode)
            except UsageError:
                continue
            self.screen.changed()
            return

    # -- commands ------------------------------------------------------------------------------------------------------------
    def commands(self) -> dict[str, str]:
        """Every command that can be typed, with what it does."""
        return {**completion.described(self.session.commands), **own.COMMANDS}

    def _own(self, text: str) -> tuple[str, str] | None:
        name, _, args = text.strip().removeprefix("/").partition(" ") if text.lstrip().startswith("/") else ("", "", "")
        name = own.ALIASES.get(name, name)
        return (name, args.strip()) if name in own.COMMANDS else None

    def _unknown(self, text: str) -> str:
        """Why a typed command is none; empty where it is one, or no command at all."""
        from difflib import get_close_matches

        name = text.split()[0]
        if not text.startswith("/") or "/" in name[1:] or name[1:] in self.session.commands:
            return ""
        near = get_close_matches(name[1:], self.commands(), n=1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them."
        return f"There is no command {one_line(name, 60)}; {hint} (With a blank in front it is sent as text.)"

    async def _run_own(self, name: str, args: str) -> None:
        try:
            said = await getattr(self, f"_do_{name}")(args)
        except KernelError as error:
            said = str(error)
        except EOFError:
            return
        except Exception as error:  # of a plugin that was asked
            said = f"/{name} failed: {type(error).__name__}: {error}"
        if said:
            self.view_show(self.view.result(said))
        if not self._busy:
            self.screen.ready()

    async def _do_help(self, args: str) -> str:
        return own.help_text(self.commands(), self.screen.plain)

    async def _do_quit(self, args: str) -> str:
        self.leave()
        return ""

    async def _do_status(self, args: str) -> str:
        return own.status(self.session, self.harness)

    async def _do_output(self, args: str) -> str:
        self._whole()
        return ""

    async def _do_cost(self, args: str) -> str:
        return own.cost(self.session)

    async def _do_context(self, args: str) -> str:
        return own.context(self.session)

    async def _do_tasks(self, args: str) -> str:
        return own.tasks(self.session)

    async def _do_stop(self, args: str) -> str:
        task = (self.session.root.plugin_state.get("tasks") or {}).get(args)
        if task is None or task.status != "running":
            return f"No task {one_line(args, 40)!r} is running. /tasks lists them."
        await task.stop()
        return ""

    async def _do_model(self, args: str) -> str:
        session = self.session
        if not args:
            args = await self._choose_model() or ""
        if args:
            session.switch(args)
            self.screen.changed()
        return f"The model is {session.model_info.id}."

    async def _choose_model(self) -> str | None:
        session = self.session
        choices = []
        for name in dict.fromkeys([session.model_info.id, "sonnet", "opus", "haiku"]):
            try:
                info = session.model_info if name == session.model_info.id else session.provider.resolve(name)
            except Exception:
                info = None
            if info is not None:
                choices.append(Choice(name, name, detail=f"{info.id}, {info.context_window:,} tokens"))
        choices.append(Choice("Another one", "", ask="Its name, or PROVIDER:NAME"))
        given = await self.screen.ask(Question("Which model?", choices, kind="Model"))
        return given.value or given.text.strip() or None

    async def _do_mode(self, args: str) -> str:
        options = self.session.options
        if not args:
            choices = [Choice(mode, mode) for mode in MODES
                       if mode != "bypassPermissions" or options.allow_bypass or options.permission_mode == mode]
            args = (await self.screen.ask(Question("Which permission mode?", choices, kind="Mode"))).value or ""
        if args == "bypassPermissions" and not (options.allow_bypass or options.permission_mode == args):
            raise UsageError("bypassPermissions has to be allowed at the start", hint="--allow-dangerously-skip-permissions")
        if args:
            self.session.set_mode(args)
        return f"The mode is {self.session.state.permission_mode}."

    async def _do_resume(self, args: str) -> str:
        wanted = args or await self.pick(but=self.session.id)
        if wanted:
            self.next, self._over = wanted, True
        return ""

    async def pick(self, but: str = "") -> str | None:
        """The conversation that the person chooses."""
        found = await anyio.to_thread.run_sync(own.sessions, self.harness)
        if found is None:
            raise SessionError("the store of this harness cannot list conversations", hint="/resume ID works")
        question = own.picker(found, but)
        if not question.choices:
            raise SessionError("there is no other conversation in this folder", hint="kernel sessions list --all shows all")
        chosen: str | None = (await self.screen.ask(question)).value
        return chosen
