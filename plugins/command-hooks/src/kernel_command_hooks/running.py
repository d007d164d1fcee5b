"""Running handlers and what comes of it. The kernel merges; nothing here decides between two handlers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kernel import Answer, Event, side_by_side
from kernel_command_hooks import run_command
from kernel_command_hooks.answer import Ran, Reading, read, refuses
from kernel_command_hooks.background import Background
from kernel_command_hooks.facts import SESSION_END_CAP_S, SESSION_END_S, TIMEOUT_S, row
from kernel_command_hooks.handlers import Command, Handler
from kernel_command_hooks.run_command import Call
from kernel_command_hooks.spawn import seal
from kernel_command_hooks.stream import Report

if TYPE_CHECKING:
    from kernel_command_hooks.hooks import Answers, Hooks

RUNNERS = "command-hooks.runners"
"""Where other plugins put what takes the place of our own way to run a type: ``session.root.plugin_state[RUNNERS]`` maps a type
(``mcp_tool``, ``prompt``, ``agent``) to ``async run(spec: dict, event: Event, session: Session) -> str | Answer | None``. A text
is read as the stdout of a command that ended well; an exception is a non-blocking error."""

MODULES = {"command": "run_command", "http": "run_http", "mcp_tool": "run_mcp", "prompt": "run_prompt", "agent": "run_agent",
           "sdk": "callbacks"}
"""Type -> the module whose ``run`` runs it, imported at first use."""

TERMINAL = "hooks.terminal"
"""Where a terminal front end puts ``write(text)``: it is handed the sequences that handlers may send to the terminal (11.2)."""

PARALLEL = 32
"""Handlers of a session that run at once; the clock of one that waits has not started."""
END_GRACE_S = 0.5
"""From SIGTERM to SIGKILL while the session ends."""

Runner = Callable[[Call], Awaitable[Ran]]


class Handled(NamedTuple):
    """One run of one handler, for whoever keeps a record. ``reading`` is ``None`` for one in the background."""

    event: Event
    handler: Handler
    ran: Ran
    reading: Reading | None
    seconds: float
    waited: bool


class Running:
    """The running side of one session's hooks."""

    def __init__(self, hooks: Hooks) -> None:
        self.hooks = hooks
        self.session = hooks.session
        self.background = Background(self.session)
        seal()
        self.listeners: list[Callable[[Handled], None]] = []
        self._slots = asyncio.Semaphore(PARALLEL)
        self._ranks = 0

    def reload(self) -> None:
        """The configuration is new: look at the environment again."""
        run_command.forget_environment(self.session)

    def answer(self, event: Event, chosen: list[Handler]) -> Answers:
        """Run the chosen handlers; also hand over what ran in the background, and end with the session."""
        name = event.event_name
        if name == "SessionEnd":
            return self._end(event, chosen)
        if name == "SessionStart" and event.match_value in ("resume", "clear"):
            run_command.drop_env_file(self.session)
        if not chosen:
            return None
        return self._run(event, encode(event), chosen)  # encoded now: nobody's later change reaches a handler

    async def _run(self, event: Event, payload: bytes, chosen: list[Handler],
                   budget: float | None = None) -> list[Answer] | None:
        """Start all at once; answers come back in configuration order, ranked in the order in which they ended. ``None``, not an
        empty list, where nobody answers: the kernel counts the time of an answer that is none."""
        facts = row(event.event_name)
        waited: list[Handler] = []
        for handler in chosen:
            if handler.spec.once:
                self.hooks.spent.add(handler.identity)
            if budget is None and self._is_async(handler, event):
                self.background.start(self._detached(handler, event, payload), kill=True)
            elif facts.background:
                self.background.start(self._observed(handler, event, payload), kill=False)
            else:
                waited.append(handler)
        if len(waited) < len(chosen):
            await asyncio.sleep(0)  # so that they have begun, even if the session ends without another pause
        readings = await side_by_side([self._one(h, event, payload, budget=budget) for h in waited])
        _yield_to_refusals(readings)
        answers = [a for handler, reading in zip(waited, readings, strict=True) if (a := self._take(handler, event, reading))]
        paths = [p for a in answers if (p := getattr(a, "watch_paths", None)) is not None]
        if paths:  # of several handlers, all of them (12.2); together they replace the list before
            self.hooks.watcher.ask(sorted({path for some in paths for path in some}))
        return answers or None

    def _is_async(self, handler: Handler, event: Event) -> bool:
        if not isinstance(handler.spec, Command) or handler.broken:
            return False
        if handler.spec.rewake and event.event_name in ("Stop", "SubagentStop") and self.session.options.print_mode:
            return False  # a print run ends with the turn, so what could wake the model is waited for
        return handler.spec.run_async or handler.spec.rewake

    # -- one handler ---------------------------------------------------------------------------------------------------
    async def _one(self, handler: Handler, event: Event, payload: bytes, *, budget: float | None = None) -> Reading:
        """Run one handler and read what it brought back."""
        began = perf_counter()
        ran, report = await self._ran(handler, event, payload, budget=budget)
        reading = read(event, handler, ran)
        report.ended(ran, failed=bool(reading.failed))
        if handler.broken:
            reading.notice = ""  # said when the configuration was read
        self._handled(Handled(event, handler, ran, reading, perf_counter() - began, not row(event.event_name).background))
        if reading.answer is not None:
            self._ranks += 1
            reading.answer.rank = self._ranks
            reading.answer.source = handler.label
        return reading

    async def _detached(self, handler: Handler, event: Event, payload: bytes) -> None:
        """An ``async`` handler; without a timeout of its own it gets 600 s, whatever the event."""
        began = perf_counter()
        ran, report = await self._ran(handler, event, payload, default=TIMEOUT_S, background=True)
        report.ended(ran, failed=bool(ran.error) or ran.code not in (0, None))
        self._handled(Handled(event, handler, ran, None, perf_counter() - began, waited=False))
        self.background.deliver(event, handler, ran)

    async def _observed(self, handler: Handler, event: Event, payload: bytes) -> None:
        """A handler of an event that waits for none."""
        reading = await self._one(handler, event, payload)
        self._take(handler, event, reading)
        self.background.observe(event, handler, reading)

    async def _ran(self, handler: Handler, event: Event, payload: bytes, *, default: float | None = None,
                   budget: float | None = None, background: bool = False) -> tuple[Ran, Report]:
        facts = row(event.event_name)
        report = Report(self.session, event, background=background or facts.background)
        if handler.broken:
            report.silence()
            return Ran(code=None, error=handler.broken, unusable=True), report
        runner = self._runner(handler.spec.type)
        timeout = handler.spec.timeout or default or facts.default_timeout(handler.spec.type)
        async with nullcontext() if background else self._slots:
            call = Call(handler, event, self.session, payload, timeout, progress=report.progress if report.listened else None)
            if budget is not None:
                call.timeout, call.grace = min(handler.spec.timeout or budget, budget), END_GRACE_S
            report.started()
            try:
                ran = await runner(call)
            except asyncio.CancelledError:
                report.ended(None, failed=True)
                raise
            except Exception as error:  # a runner's fault is a handler that failed, whatever it is
                ran = Ran(code=None, error=f"failed: {type(error).__name__}: {error}")
        self._log(handler, event, ran)
        return ran, report

    def _runner(self, type: str) -> Runner:
        given = self.session.root.plugin_state.get(RUNNERS, {}).get(type)
        run: Runner = import_module(f"kernel_command_hooks.{MODULES[type]}").run if given is None else _adapted(given)
        return run

    def _handled(self, done: Handled) -> None:
        for listener in self.listeners:
            listener(done)

    # -- what comes of it ----------------------------------------------------------------------------------------------
    def _take(self, handler: Handler, event: Event, reading: Reading) -> Answer | None:
        """Tell whoever must know; the answer is what is left for the merge."""
        session, name = self.session, event.event_name
        for line in reading.debug:
            session.debug(f"{event.hook_name} {handler.label}: {line}")
        quiet = name == "Setup" and session.options.print_mode and not session.options.verbose
        if reading.notice and (reading.guard or not quiet):
            session.notice(f"{event.hook_name} hook error: {handler.label}: {reading.notice}", guard=reading.guard)
        if reading.warning:
            session.notice(f"{event.hook_name}: {handler.label}: {reading.warning}")
        found = reading.answer
        if found is not None and (quiet or (name in ("CwdChanged", "FileChanged") and session.options.print_mode)):
            found.system_message = None  # shown in an interactive session only
        if found is not None:
            self._show(event, found)
        return found

    def _show(self, event: Event, found: Answer) -> None:
        """What no host shows: sequences for the terminal, and why a teammate is stopped."""
        write = self.session.root.plugin_state.get(TERMINAL)
        if found.terminal_sequence and callable(write) and not self.session.options.print_mode:
            write(found.terminal_sequence)
        if not found.continue_ and found.stop_reason and getattr(event, "teammate_name", None):
            self.session.notice(f"{event.hook_name}: {self.session.cap(found.stop_reason)}")

    def _log(self, handler: Handler, event: Event, ran: Ran) -> None:
        if self.session.harness.debug_sink is not None:
            how = "timed out" if ran.timed_out else ran.error or f"exit code {ran.code}"
            self.session.debug(f"{event.hook_name} {handler.label}: {how}\nstdout: {ran.stdout}\nstderr: {ran.stderr}")

    # -- the end -------------------------------------------------------------------------------------------------------
    async def _end(self, event: Event, chosen: list[Handler]) -> list[Answer] | None:
        """SessionEnd: its handlers share one budget; what runs in the background ends with a session that is over."""
        budget = self.end_budget()
        began = asyncio.get_running_loop().time()
        answers = await self._run(event, encode(event), chosen, budget=budget) if chosen else None
        if event.match_value not in ("clear", "resume"):
            left = budget - (asyncio.get_running_loop().time() - began)
            await self.hooks.close(max(left, 0.0))
        run_command.drop_env_file(self.session)
        return answers

    def end_budget(self) -> float:
        """Seconds that all SessionEnd handlers share. Timeouts of plugins do not raise it."""
        given = os.environ.get("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS", "")
        if given.isdigit():
            return int(given) / 1000
        asked = [h.spec.timeout or 0.0 for h in self.hooks.handlers.get("SessionEnd", ()) if h.scope not in ("plugin", "session")]
        return min(max([SESSION_END_S, *asked]), SESSION_END_CAP_S)


def _yield_to_refusals(readings: list[Reading]) -> None:
    """The refusal for a callback that did not answer stands back behind one that somebody decided (8.3)."""
    if any(refuses(r.answer) and not r.stands_in for r in readings):
        for reading in readings:
            if reading.stands_in:
                reading.answer = None


def _adapted(run: Callable[..., Awaitable[Any]]) -> Runner:
    """A runner of another plugin in the form of our own."""
    async def adapted(call: Call) -> Ran:
        import anyio

        try:
            with anyio.fail_after(call.timeout):
                value = await run(msgspec.to_builtins(call.handler.spec), call.event, call.session)
        except TimeoutError:
            return Ran(code=None, timed_out=True, timeout=call.timeout)
        return Ran(answer=value) if isinstance(value, Answer) else Ran(stdout=value or "")
    return adapted


def encode(event: Event) -> bytes:
    """The event as one line of JSON that ends in a line feed. Values that JSON does not know become text."""
    try:
        return msgspec.json.encode(event) + b"\n"
    except (TypeError, ValueError, RecursionError):
        import json

        value = msgspec.to_builtins(event, enc_hook=str)
        text = json.dumps(value, ensure_ascii=False, default=str)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode() + b"\n"
