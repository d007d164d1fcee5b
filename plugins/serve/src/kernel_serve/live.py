"""One session in a thread and an event loop of its own: a hook that blocks, or a tool that floods, is in nobody's way."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from typing import Any

import anyio

from kernel import Block, Harness, KernelError, ResultMessage, SessionError, Usage, encode_output, harness_from
from kernel_serve import surroundings
from kernel_serve.conversation import Conversation
from kernel_serve.ring import Ring
from kernel_serve.wishes import Wish

MOST_WAITING = 256
"""Prompts that may wait behind the running one, and what the session's thread has not heard yet."""
CLOSING_S = 8.0
"""A session that is told to end is waited for so long; one that does not is left behind."""
TERMINATED = 143


class Busy(Exception):
    """More prompts than may wait."""


class Live:
    """A session as the server sees it; methods are called from the server's thread.

    :param admit: called in the session's thread with its harness, before anything is opened; raises what is against it.
    """

    def __init__(self, wish: Wish, *, admit: Callable[[Harness], None]) -> None:
        self.wish = wish
        self.ring = Ring()
        self.id = ""
        self.opened: Future[dict[str, Any]] = Future()
        """What the command line came to, once the session is open; or why it cannot be opened."""
        self.ended: Future[dict[str, Any]] = Future()
        """``exit_code`` as print mode would have it, and ``error`` where there was one."""
        self.began = time.time()
        self.followers = 0
        self.left = time.monotonic()
        """When the last client turned away, or said something."""
        self._admit = admit
        self._conversation: Conversation | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: Context | None = None
        self.over = False
        """No more prompts are taken."""
        self._terminated = False
        self._said = self._heard = 0
        self._left_behind: dict[str, Any] = {}
        """What there was to say at the end; the conversation itself is let go."""
        self._thread = threading.Thread(target=self._run, name="session", daemon=True)

    def start(self) -> None:
        self._thread.start()

    # -- what clients say --------------------------------------------------------------------------------------------------
    def prompt(self, content: str | list[Block], more: dict[str, Any]) -> None:
        """:raises Busy: too many wait."""
        self._check_room()
        self._tell(lambda c: c.take_prompt(content, more))

    def frame(self, frame: dict[str, Any]) -> None:
        """An object of the control protocol.

        :raises Busy: the session does not hear what comes.
        """
        self._check_room()
        self._tell(lambda c: c.take_frame(frame))

    def _check_room(self) -> None:
        talk = self._conversation
        waiting = talk.waiting if talk is not None else 0
        if self._said - self._heard + waiting >= MOST_WAITING:
            raise Busy

    def interrupt(self) -> bool:
        """End the turn that runs or is about to begin; false where there is none."""
        self._tell(lambda c: c.interrupt())
        return self.state == "running"

    def end(self) -> None:
        """No more prompts come: what waits still runs."""
        self.over = True
        self._tell(lambda c: c.no_more())

    def close(self) -> None:
        """End now: commands are stopped, ``SessionEnd`` is raised, and the conversation can be resumed."""
        self.over = self._terminated = True
        self._tell(lambda c: c.terminate())

    def turned_away(self) -> None:
        """A client does not listen any more."""
        self.left = time.monotonic()

    def _tell(self, work: Callable[[Conversation], object]) -> None:
        """In the session's thread, in order; nothing where it is over."""
        self.left = time.monotonic()
        if self._loop is not None and self._conversation is not None and not self.ended.done():
            try:
                self._loop.call_soon_threadsafe(self._hear, work, context=self._context)  # not of this thread
                self._said += 1
            except RuntimeError:
                pass  # its loop has just been closed

    def _hear(self, work: Callable[[Conversation], object]) -> None:
        self._heard += 1
        if self._conversation is not None:
            work(self._conversation)

    # -- what there is to say ------------------------------------------------------------------------------------------------
    @property
    def state(self) -> str:
        """``starting``, ``idle``, ``running`` or ``closed``."""
        talk = self._conversation
        if self.ended.done():
            return "closed"
        return "starting" if talk is None else "running" if talk.busy else "idle"

    @property
    def controlled(self) -> bool:
        """Whether control frames are understood."""
        talk = self._conversation
        return talk is not None and talk.dialogue is not None

    def idle_s(self) -> float:
        """Seconds since anybody listened, anything was said on either side, or anything was done but wait for a person."""
        talk = self._conversation
        if self.followers or (self.state == "running" and talk is not None and not talk.asks):
            return 0.0
        return time.monotonic() - max(talk.active if talk is not None else 0.0, self.left)

    def row(self, *, result: bool = True) -> dict[str, Any]:
        """:param result: with the last result message, which may be long."""
        row = {"id": self.id, "state": self.state, "cwd": str(self.wish.cwd), "began_at": round(self.began, 3),
               "followers": self.followers, "first_event_id": self.ring.first, "last_event_id": self.ring.last,
               **(self._left_behind or self._facts()), **(self.ended.result() if self.ended.done() else {})}
        if not result:
            row.pop("result", None)
        return row

    def _facts(self) -> dict[str, Any]:
        talk = self._conversation  # the session's thread lets it go at its end
        if talk is None:
            return {}
        session = talk.session
        return {"session_id": session.id, "model": session.model_info.id, "permission_mode": session.state.permission_mode,
                "title": session.title, "turns": talk.turns, "cpu_s": round(talk.cpu_s, 4), "waiting": talk.waiting,
                "control": talk.dialogue is not None,
                "result": json.loads(encode_output(talk.result)) if talk.result is not None else None}

    # -- the session's thread --------------------------------------------------------------------------------------------------
    def _run(self) -> None:
        error: BaseException | None = None
        try:
            variables = dict(os.environ) if self.wish.variables is None else self.wish.variables
            surroundings.enter(variables, str(self.wish.cwd))
            anyio.run(self._to_end)
        except BaseException as caught:  # SystemExit of a plugin, too: it ends this session and no other
            error = caught
        if error is not None and not self.opened.done():
            self.opened.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))
        told = self._told(error)
        self.left = time.monotonic()
        self._left_behind = self._facts()
        self.ended.set_result(told)
        self._conversation = None
        self.ring.put(json.dumps(told).encode(), "end")
        self.ring.close()

    def _told(self, error: BaseException | None) -> dict[str, Any]:
        if error is None:
            return {"exit_code": TERMINATED if self._terminated else self._conversation.code if self._conversation else 1}
        if isinstance(error, KernelError):
            return {"exit_code": 1, "error": str(error)}
        traceback.print_exception(error, file=sys.stderr)
        return {"exit_code": 3, "error": f"an unexpected fault of kernel ({type(error).__name__}: {error}); the server's "
                                         "stderr has the details"}

    async def _to_end(self) -> None:
        self._loop, self._context = asyncio.get_running_loop(), copy_context()
        harness = harness_from(self.wish.args, self.wish.cwd)
        self._admit(harness)
        for text in harness.announced:
            self._warn(text)
        harness.listeners.append(self._warn)
        if "debug" in harness.options.extra:
            harness.debug_sink = lambda text: self.ring.put(json.dumps(text).encode(), "debug")
        try:
            talk = self._conversation = Conversation(harness, self.ring)
        except SessionError as error:
            raise Unavailable(error, harness) from None
        self.id = threading.current_thread().name = talk.session.id
        options = harness.options
        self.opened.set_result({
            "prompt": options.prompt, "input_format": options.input_format, "output_format": options.output_format,
            "verbose": options.verbose, "init_only": bool(options.extra.get("init_only"))})
        await talk.to_end()

    def _warn(self, text: str) -> None:
        self.ring.put(json.dumps(text).encode(), "warning")


class Unavailable(SessionError):
    """The conversation cannot be had. ``result``: what a program is told on stdout besides (headless contract, 5.5)."""

    def __init__(self, error: SessionError, harness: Harness) -> None:
        super().__init__(error.message, context=error.context, hint=error.hint)
        options = harness.options
        self.result = None if options.output_format == "text" else encode_output(ResultMessage(
            uuid=harness.clock.new_id(), session_id=options.resume or options.session_id or "",
            subtype="error_during_execution", is_error=True, duration_ms=0, duration_api_ms=0, num_turns=0, stop_reason=None,
            total_cost_usd=0.0, usage=Usage(), model_usage={}, permission_denials=[],
            terminal_reason="turn_setup_failed", errors=[str(error)])).decode()
