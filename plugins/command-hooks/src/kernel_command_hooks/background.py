"""Handlers that nobody waits for (hooks contract, section 7), and events that wait for no handler."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from kernel import Event, Session
from kernel_command_hooks.answer import NOT_STARTED, Ran, Reading, json_object
from kernel_command_hooks.handlers import Command, Handler

if TYPE_CHECKING:
    from collections.abc import Iterable


class Background:
    """The running handlers of a session that nobody waits for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._killed: set[asyncio.Task[None]] = set()
        self._finished: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], *, kill: bool) -> None:
        """Run something beside the turn. ``kill``: it is ended with the session instead of being waited for."""
        task = asyncio.get_running_loop().create_task(work)
        group = self._killed if kill else self._finished
        group.add(task)
        task.add_done_callback(group.discard)
        task.add_done_callback(self._report)

    def _report(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._session.notice(f"command-hooks: a handler in the background failed: {type(error).__name__}: {error}")

    async def settle(self) -> None:
        """Wait until nothing runs any more."""
        while tasks := self._killed | self._finished:
            await asyncio.wait(tasks)

    async def close(self, patience: float) -> None:
        """The session is over: end ``async`` handlers; handlers of events that wait for none get ``patience`` seconds."""
        for task in self._killed:
            task.cancel()
        if self._finished:
            await asyncio.wait(self._finished, timeout=patience)
            for task in self._finished:
                task.cancel()
        left = self._killed | self._finished
        if left:
            await asyncio.wait(left)

    def deliver(self, event: Event, handler: Handler, ran: Ran) -> None:
        """The result of an ``async`` handler: context for the model's next turn, or a reason to wake it now."""
        spec = handler.spec
        if isinstance(spec, Command) and spec.rewake and ran.code == 2:
            text = ran.stderr.strip() or ran.stdout.strip()
            intro = f"{spec.rewake_message}\n" if isinstance(spec.rewake_message, str) else ""
            if isinstance(spec.rewake_summary, str):
                self._session.notice(spec.rewake_summary, level="info")
            self._session.inbox.post(self._session.cap(f"{event.hook_name} hook, running in the background: {intro}{text}"),
                                     {"kind": "auto-continuation"})
            return
        debug: list[str] = []
        value = json_object(ran, debug)
        for text in _texts(value or {}, event.event_name, debug):
            self._session.add_context(f"{event.hook_name} hook, run in the background: {self._session.cap(text)}")
        for line in debug:
            self._session.debug(f"{event.hook_name} {handler.label}: {line}")
        if (ran.error and ran.unusable) or ran.code in NOT_STARTED:
            why = ran.error or ran.stderr.strip() or f"exit code {ran.code}"
            self._session.notice(f"{event.hook_name} hook error: {handler.label}: could not be started: {why}")

    def observe(self, event: Event, handler: Handler, reading: Reading) -> None:
        """The answer to an event that waits for none; few fields still count (section 18)."""
        answer: Any = reading.answer
        if answer is None:
            return
        texts = [getattr(answer, "additional_context", None) if event.event_name == "PostModelSwitch" else None]
        if event.event_name == "DirectoryAdded":
            if getattr(event, "source", "") == "slash_command":
                texts.append(answer.system_message)
            elif answer.system_message:
                self._session.debug(f"{event.hook_name} {handler.label}: {answer.system_message}")
        for text in filter(None, texts):
            self._session.add_context(f"{event.hook_name} hook additional context: {self._session.cap(text)}")


def _texts(value: dict[str, Any], event: str, debug: list[str]) -> Iterable[str]:
    """``systemMessage`` and ``additionalContext``; a field of the wrong type is dropped and the others count."""
    own = value.get("hookSpecificOutput")
    if own is not None and (not isinstance(own, dict) or own.get("hookEventName", event) != event):
        debug.append("hookSpecificOutput is no object of this event, so it is dropped")
        own = None
    for name, text in (("systemMessage", value.get("systemMessage")),
                       ("hookSpecificOutput.additionalContext", (own or {}).get("additionalContext"))):
        if isinstance(text, str):
            if text:
                yield text
        elif text is not None:
            debug.append(f"{name} must be a string, so it is dropped")
