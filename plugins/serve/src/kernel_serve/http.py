"""HTTP/1.1 over asyncio streams: h11 reads and writes the protocol, this sets limits (decision 35).

Every fault of a client is an answer or the end of its connection; nothing of it reaches another one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Protocol

import h11

MOST_HEAD = 32 * 1024
"""Bytes of a request line with its headers."""
MOST_BODY = 32 * 1024 * 1024
MOST_DEPTH = 64
"""Levels of a JSON body."""
BIG = 64 * 1024
"""A body above this is parsed in a thread, beside the loop."""
HEAD_S = 10.0
"""A request line with its headers must be complete within this time from its first byte."""
FIRST_S = 8.0
"""A connection over TCP must have shown the token within this time."""
BODY_S = 60.0
KEEP_S = 120.0
"""A connection without a request is kept this long."""
WRITE_S = 60.0
"""A client that takes nothing for so long is let go."""

Headers = list[tuple[str, str]]


class Refused(Exception):
    """An answer that is an error: status, stable name, text for people; ``more`` stands beside them."""

    def __init__(self, status: int, name: str, message: str, *, headers: Headers | None = None, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.message = message
        self.headers = headers or []
        self.more = more


class Request:
    """``path`` without the query; header names in lower case; ``body`` is the decoded JSON object, or empty."""

    def __init__(self, method: str, path: str, query: str, headers: dict[str, str], peer: Any) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.peer = peer
        self.body: dict[str, Any] = {}


class Answer:
    """JSON, or a stream of bytes."""

    def __init__(self, value: Any = None, *, status: int = 200, stream: AsyncGenerator[bytes] | None = None,
                 kind: str = "application/json", headers: Headers | None = None) -> None:
        self.status = status
        self.value = value
        self.stream = stream
        self.kind = kind
        self.headers = headers or []


class Application(Protocol):
    """What a connection calls."""

    def admit(self, request: Request) -> None:
        """Before the body is read. :raises Refused: it need not be."""

    async def answer(self, request: Request) -> Answer:
        """:raises Refused: with an error."""


class Connection:
    """One connection, from its first request to its end. ``known``: it need not hurry to show that it has the token."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, application: Application, *,
                 known: bool) -> None:
        self._reader = reader
        self._writer = writer
        self._application = application
        self._until = None if known else asyncio.get_running_loop().time() + FIRST_S
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD)

    async def serve(self) -> None:
        try:
            while await self._one():
                self._http.start_next_cycle()
        except (h11.RemoteProtocolError, h11.LocalProtocolError, ConnectionError, TimeoutError, OSError):
            pass
        finally:
            self._writer.close()

    async def _one(self) -> bool:
        """One request and its answer; false where the connection ends."""
        try:
            async with asyncio.timeout_at(self._until):
                event = await self._begun()
            if not isinstance(event, h11.Request):
                return False
            request = self._request(event)
            try:
                self._application.admit(request)
                self._until = None
                async with asyncio.timeout(BODY_S):
                    request.body = await self._body(request)
                answer = await self._application.answer(request)
            except Refused as refused:
                answer = refusal(refused)
                if self._http.their_state is h11.SEND_BODY:
                    self._http.next_event()  # the end, where there is no body
            except TimeoutError:
                answer = refusal(Refused(408, "too_slow", f"a body must be complete within {BODY_S:g} s"))
        except h11.RemoteProtocolError as error:
            if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                return False
            answer = refusal(Refused(error.error_status_hint or 400, "bad_request", f"is no HTTP request: {error}"))
            await self._send(answer, close=True)
            return False
        whole = self._http.their_state is h11.DONE
        await self._send(answer, close=not whole or answer.stream is not None)
        if not whole:  # what still comes is read, or the end of the connection would take the answer with it
            async with asyncio.timeout(1):
                while await self._reader.read(1 << 16):
                    pass
        return whole and self._http.our_state is h11.DONE

    def _request(self, event: h11.Request) -> Request:
        headers: dict[str, str] = {}
        for raw, value in event.headers:
            name = raw.decode("latin-1").lower()
            if name in headers and name in ("host", "authorization", "content-type", "content-length", "origin"):
                raise h11.RemoteProtocolError(f"{name} stands there twice", error_status_hint=400)
            headers[name] = value.decode("latin-1")
        path, _, query = event.target.decode("latin-1").partition("?")
        return Request(event.method.decode("latin-1"), path, query, headers, self._writer.get_extra_info("socket"))

    async def _body(self, request: Request) -> dict[str, Any]:
        """:raises Refused: it is too large, of another type, or no JSON object."""
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > MOST_BODY:
            raise Refused(413, "too_large", f"a body may have {MOST_BODY} bytes")
        if self._http.they_are_waiting_for_100_continue:
            self._writer.write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        data = bytearray()
        while not isinstance(event := await self._event(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise ConnectionError("the client is gone")
            data += event.data
            if len(data) > MOST_BODY:
                raise Refused(413, "too_large", f"a body may have {MOST_BODY} bytes")
        if not data:
            return {}
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refused(415, "unsupported_type", "a body must have the content type application/json")
        return await asyncio.to_thread(decoded, data) if len(data) > BIG else decoded(data)

    async def _begun(self) -> Any:
        """The next request's head."""
        if self._http.trailing_data[0] == b"":
            async with asyncio.timeout(KEEP_S):
                self._http.receive_data(await self._reader.read(1 << 16))
        async with asyncio.timeout(HEAD_S):
            return await self._event()

    async def _event(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(1 << 16))
        return event

    async def _send(self, answer: Answer, *, close: bool) -> None:
        body = b"" if answer.stream is not None else json.dumps(answer.value).encode() + b"\n"
        headers: Headers = [("content-type", answer.kind), ("cache-control", "no-store"), ("x-content-type-options", "nosniff"),
                            *answer.headers]
        headers.append(("transfer-encoding", "chunked") if answer.stream is not None else ("content-length", str(len(body))))
        if close:
            headers.append(("connection", "close"))
        response = h11.Response(status_code=answer.status, headers=headers)
        if answer.stream is None:
            await self._write(response, h11.Data(data=body), h11.EndOfMessage())
            return
        await self._write(response)
        async with aclosing(self._while_they_listen(answer.stream)) as parts:
            async for part in parts:
                await self._write(h11.Data(data=part))
        await self._write(h11.EndOfMessage())

    async def _while_they_listen(self, stream: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """The stream's parts, until it ends or the client hangs up."""
        gone = asyncio.ensure_future(self._reader.read(1))
        part: asyncio.Future[bytes] | None = None
        try:
            while True:
                part = asyncio.ensure_future(anext(stream))
                await asyncio.wait((gone, part), return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    return
                try:
                    yield part.result()
                except StopAsyncIteration:
                    return
        finally:
            for task in (gone, part):
                if task is not None and not task.done():
                    task.cancel()
                    await asyncio.wait((task,))
            await stream.aclose()

    async def _write(self, *events: Any) -> None:
        self._writer.write(b"".join(self._http.send(event) or b"" for event in events))
        async with asyncio.timeout(WRITE_S):
            await self._writer.drain()


def refusal(refused: Refused) -> Answer:
    return Answer({"error": {"type": refused.name, "message": refused.message, **refused.more}}, status=refused.status,
                  headers=refused.headers)


def decoded(data: bytes | bytearray) -> dict[str, Any]:
    """:raises Refused: it is no JSON object, or nested too deeply."""
    try:
        value = json.loads(data, parse_constant=_no_number)
        deep = depth(value)
    except (ValueError, RecursionError) as error:
        text = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refused(400, "bad_request", f"the body is not valid JSON: {text}") from None
    if deep > MOST_DEPTH:
        raise Refused(400, "bad_request", f"the body has more than {MOST_DEPTH} levels")
    if not isinstance(value, dict):
        raise Refused(400, "bad_request", "the body must be a JSON object")
    return value


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def depth(value: Any) -> int:
    """Levels of objects and lists; more than ``MOST_DEPTH`` are not counted."""
    level, here = 0, [value]
    while here and level <= MOST_DEPTH:
        here = [inner for one in here if isinstance(one, dict | list)
                for inner in (one.values() if isinstance(one, dict) else one)]
        level += 1
    return level
