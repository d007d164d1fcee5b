"""One conversation's side of the protocol: both directions, each request with exactly one answer (SDK contract, section 2)."""

from __future__ import annotations

from typing import Any

import anyio

from kernel import CONTRACT, Dialogue, KernelError, Session, UsageError, Wire
from kernel_control import frames
from kernel_control.extension import STATE
from kernel_control.frames import Gone, NoAnswer, Refused
from kernel_control.mirror import Mirror

CAPABILITIES = ("interrupt_receipt_v1", "interrupt_cancel_queued_v1")
CLOSING_S = 3.0
"""Requests that are still served when the conversation is over get that time; then their answer is an error."""
CLOSED = "the program closed its input"


class Stdio:
    """The control for front ends that read lines."""

    name = "stdio"

    def open(self, session: Session, wire: Wire) -> Dialogue:
        return Talk(session, wire)


class Slot:
    """A request of ours that waits for its answer."""

    def __init__(self, frame: dict[str, Any]) -> None:
        self.frame = frame
        self.done = anyio.Event()
        self.answer: dict[str, Any] = {}
        self.error: NoAnswer | None = None


class Talk:
    """A ``kernel.Dialogue``."""

    def __init__(self, session: Session, wire: Wire) -> None:
        from kernel_control.asking import Asking
        from kernel_control.setup import Setup

        self.session = session
        self.wire = wire
        self.setup = Setup(self)
        self.mirror: Mirror | None = None
        self.closed = False
        """Nothing comes from the program any more."""
        self._open: dict[str, Slot] = {}
        self._serving: dict[str, anyio.CancelScope] = {}
        self._idle = anyio.Event()
        self._seen: set[str] = set()
        self._first_model = f"{session.provider.name}:{session.model_info.id}"
        self._next_model: str | None = None
        session.plugin_state[STATE] = self
        session.plugin_state["mcp.channel"] = self.mcp
        session.init_facts["capabilities"] = list(CAPABILITIES)
        if session.options.extra.get("permission_prompt_tool") == "stdio":
            session.asker = Asking(self)
        if session.options.extra.get("session_mirror"):
            self.mirror = Mirror(session, wire)
        session.debug(f"control: contract {CONTRACT}, protocol of SDK {frames.SDK}")

    # -- what comes --------------------------------------------------------------------------------------------------------
    def take(self, frame: dict[str, Any]) -> bool:
        kind = frame.get("type")
        if kind == "control_request":
            self._asked(frame)
        elif kind == "control_response":
            self._answered(frame)
        elif kind == "control_cancel_request":
            scope = self._serving.get(str(frame.get("request_id")))
            if scope is not None:
                scope.cancel()
        else:
            return False
        return True

    def _asked(self, frame: dict[str, Any]) -> None:
        id, request = frame.get("request_id"), frame.get("request")
        if not isinstance(id, str):
            self.session.debug("control: a request without a request_id cannot be answered")
            return
        if id in self._seen:
            self.session.debug(f"control: a second request with the id {id[:80]!r} is ignored")
            return
        self._seen.add(id)
        try:
            if not isinstance(request, dict):
                raise Refused("a control_request needs the object 'request'")
            if request.get("subtype") == "initialize":
                self.setup.apply(request)  # at once: the session starts behind it
        except Refused as error:
            self.wire.write(frames.line(frames.failure(id, str(error))))
            return
        except Exception as error:  # a fault of ours: the reader of all lines goes on
            self.session.debug(f"control: {error!r}")
            self.wire.write(frames.line(frames.failure(id, f"{type(error).__name__}: {error}")))
            return
        self._serving[id] = anyio.CancelScope()
        self.wire.spawn(self._serve, id, request)

    async def _serve(self, id: str, request: dict[str, Any]) -> None:
        from kernel_control.requests import serve

        answer: dict[str, Any] | None = None
        with self._serving[id] as scope:
            try:
                answer = await serve(self, id, request)
            except Refused as error:
                answer = frames.failure(id, str(error))
            except KernelError as error:
                answer = frames.failure(id, str(error) or type(error).__name__)
            except Exception as error:  # a fault of ours or of a plugin: the session goes on
                import traceback

                self.session.debug("".join(traceback.format_exception(error)))
                answer = frames.failure(id, f"{type(error).__name__}: {error}")
        if answer is not None and not scope.cancelled_caught:
            self.wire.write(frames.line(answer))
        self._serving.pop(id, None)
        if not self._serving:
            self._idle.set()

    def _answered(self, frame: dict[str, Any]) -> None:
        response = frame.get("response")
        slot = self._open.pop(str(response.get("request_id")), None) if isinstance(response, dict) else None
        if slot is None:
            return  # withdrawn, or never asked
        assert isinstance(response, dict)
        answer = response.get("response")
        if response.get("subtype") == "success" and (answer is None or isinstance(answer, dict)):
            slot.answer = answer or {}
        else:
            slot.error = NoAnswer(str(response.get("error") or "the program answered with an error"))
        slot.done.set()

    def ended(self) -> None:
        self.closed = True
        for slot in self._open.values():
            slot.error = Gone(CLOSED)
            slot.done.set()
        self._open.clear()

    async def close(self) -> None:
        with anyio.move_on_after(CLOSING_S):
            while self._serving:
                self._idle = anyio.Event()
                await self._idle.wait()
        for id, scope in list(self._serving.items()):
            scope.cancel()
            self.wire.write(frames.line(frames.failure(id, "the session has ended")))

    # -- what is asked -----------------------------------------------------------------------------------------------------
    async def request(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Ask the program and wait, without limit; whoever is cancelled meanwhile withdraws the request.

        :raises NoAnswer: it answered with an error.
        :raises Gone: its side is closed.
        """
        if self.closed:
            raise Gone(CLOSED)
        id = self.session.clock.new_id()
        slot = self._open[id] = Slot({"type": "control_request", "request_id": id, "request": payload})
        self.wire.write(frames.line(slot.frame))
        try:
            await slot.done.wait()
        finally:
            if self._open.pop(id, None) is not None:
                self.wire.write(frames.line({"type": "control_cancel_request", "request_id": id}))
        if slot.error is not None:
            raise slot.error
        return slot.answer

    async def mcp(self, server: str, message: dict[str, Any]) -> dict[str, Any] | None:
        """A message for a server that lives in the program (section 7)."""
        answer = (await self.request({"subtype": "mcp_message", "server_name": server, "message": message})).get("mcp_response")
        return answer if isinstance(answer, dict) else None

    def open_questions(self) -> list[dict[str, Any]]:
        """Permission questions without an answer, as they were sent."""
        return [slot.frame for slot in self._open.values() if slot.frame["request"]["subtype"] == "can_use_tool"]

    # -- the model ---------------------------------------------------------------------------------------------------------
    def choose_model(self, model: str | None) -> None:
        """From the next request on, also within a turn; ``None`` and ``default`` go back to the first one.

        :raises UsageError: nobody serves it.
        """
        wanted = self._first_model if model in (None, "default") else str(model)
        self.session.harness.provider_of(wanted)
        self._next_model = wanted
        if not self.wire.busy and not self.session.history.open_calls:
            self.switch_model()

    def switch_model(self) -> None:
        wanted, self._next_model = self._next_model, None
        if wanted is not None:
            try:
                self.session.switch(wanted)
            except UsageError as error:  # settings changed since it was asked for
                self.session.notice(f"the model stays {self.session.model_info.id}: {error}")
