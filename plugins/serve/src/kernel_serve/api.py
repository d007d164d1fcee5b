"""The routes: one table, which the server follows; docs/serve.md holds the same, and a test compares them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

from kernel import KernelError, UsageError
from kernel_serve.http import Answer, Refused, Request
from kernel_serve.live import CLOSING_S, Busy, Live, Unavailable
from kernel_serve.wishes import read

if TYPE_CHECKING:
    from kernel_serve.server import Server

HEARTBEAT_S = 15.0
BESIDE: dict[str, type] = {"uuid": str, "origin": dict, "isSynthetic": bool, "shouldQuery": bool}
"""What may stand beside a prompt, as in a line of stream input."""
FRAMES = ("control_request", "control_response", "control_cancel_request")


class Route(NamedTuple):
    method: str
    path: str
    summary: str
    handler: Callable[[Server, Request, str], Awaitable[Answer]]


async def status(server: Server, request: Request, id: str) -> Answer:
    return Answer(server.status())


async def stop(server: Server, request: Request, id: str) -> Answer:
    server.stop("a client asked for it")
    return Answer({"stopping": True}, status=202)


async def list_sessions(server: Server, request: Request, id: str) -> Answer:
    return Answer({"sessions": [live.row(result=False) for live in server.sessions.values()]})


async def create(server: Server, request: Request, id: str) -> Answer:
    body = request.body
    try:
        wish = read(body)
        prompt = content_of(body) if "prompt" in body else None
        live = server.begin(wish, body.get("client"))
        try:
            facts = await asyncio.shield(asyncio.wrap_future(live.opened))
            server.opened(live)
        finally:
            server.settled(live)
    except UsageError as error:
        raise Refused(400, "usage", str(error)) from None
    except Unavailable as error:
        more: dict[str, Any] = {"result": error.result} if error.result else {}
        raise Refused(409, error.reference, str(error), **more) from None
    except KernelError as error:
        raise Refused(409, error.reference, str(error)) from None
    except Refused:
        raise
    except Exception as error:
        raise Refused(500, "fault", f"the session cannot be opened: {type(error).__name__}: {error}") from None
    if prompt is not None:
        live.prompt(prompt, {})
    if body.get("end") is True:
        live.end()
    return Answer({**live.row(), **facts}, status=201, headers=[("location", f"/v1/sessions/{live.id}")])


async def one_session(server: Server, request: Request, id: str) -> Answer:
    return Answer(server.session(id).row())


async def close(server: Server, request: Request, id: str) -> Answer:
    live = server.session(id)
    if live.ended.done():
        del server.sessions[id]
        return Answer(live.row())
    live.close()
    await asyncio.wait((asyncio.wrap_future(live.ended),), timeout=CLOSING_S)
    return Answer(live.row(), status=200 if live.ended.done() else 202)


async def messages(server: Server, request: Request, id: str) -> Answer:
    live = _open(server, id)
    more = {key: request.body[key] for key in BESIDE if key in request.body}
    for key, value in more.items():
        if not isinstance(value, BESIDE[key] | None):
            raise Refused(400, "bad_request", f"'{key}' must be {_KINDS[BESIDE[key]]}")
    if live.over:
        raise Refused(409, "closed", f"the session {id} was told that no more prompts come")
    try:
        live.prompt(content_of(request.body), more)
    except Busy:
        raise Refused(429, "too_many", "too many prompts wait in this session") from None
    if request.body.get("end") is True:
        live.end()
    return Answer({"taken": True}, status=202)


_KINDS = {str: "a string", dict: "an object", bool: "true or false"}


async def control(server: Server, request: Request, id: str) -> Answer:
    live = _open(server, id)
    if request.body.get("type") not in FRAMES:
        raise Refused(400, "bad_request", f"'type' must be one of {', '.join(FRAMES)}")
    if not live.controlled:
        raise Refused(409, "no_control", "nothing in this session understands control frames",
                      hint="the plugin control is needed, and a session that was not made with other formats")
    try:
        live.frame(request.body)
    except Busy:
        raise Refused(429, "too_many", "too much waits to be heard by this session") from None
    return Answer({"taken": True}, status=202)


async def interrupt(server: Server, request: Request, id: str) -> Answer:
    return Answer({"interrupted": _open(server, id).interrupt()}, status=202)


async def end(server: Server, request: Request, id: str) -> Answer:
    _open(server, id).end()
    return Answer({"ending": True}, status=202)


async def events(server: Server, request: Request, id: str) -> Answer:
    live = server.session(id)
    given = (request.headers.get("last-event-id") or parse_qs(request.query).get("after", ["0"])[0]).strip()
    if not re.fullmatch(r"\d{1,15}", given):
        raise Refused(400, "bad_request", "Last-Event-ID must be the number of an event")
    seen = int(given) if int(given) <= live.ring.last else 0  # a higher number is of a session before this one
    return Answer(stream=follow(live, seen), kind="text/event-stream")


async def follow(live: Live, seen: int) -> AsyncGenerator[bytes]:
    """Events behind that number to the end of the session. Whoever has fallen behind what is kept gets ``lost``, and is cut."""
    ring, loop, me = live.ring, asyncio.get_running_loop(), object()
    live.followers += 1
    begun = False
    try:
        yield b": kernel\n\n"
        while True:
            start, last, found = ring.behind(me, seen)
            if found:
                if start > seen + 1:
                    yield b'event: lost\ndata: {"from": %d, "to": %d}\n\n' % (seen + 1, start - 1)
                    if begun:
                        return
                begun, seen = True, last
                yield b"".join(found)
                continue
            begun = True
            came = asyncio.Event()

            def wake(came: asyncio.Event = came) -> None:
                with suppress(RuntimeError):  # the server is gone
                    loop.call_soon_threadsafe(came.set)

            if not ring.wait(seen, wake):
                if ring.closed and ring.last == seen:
                    return
                continue
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await came.wait()
            except TimeoutError:
                yield b": still here\n\n"
            finally:
                ring.forget(wake)
    finally:
        ring.leave(me)
        live.followers -= 1
        live.turned_away()


def content_of(body: dict[str, Any]) -> Any:
    """The prompt of a body: ``prompt``, or the ``message`` of a line of stream input."""
    message = body.get("message")
    content = body["prompt"] if "prompt" in body else message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, str) and not (isinstance(content, list) and all(isinstance(b, dict) for b in content)):
        raise Refused(400, "bad_request", "'prompt' must be a text or a list of content blocks",
                      hint='or give a line of stream input: {"type": "user", "message": {"role": "user", "content": ...}}')
    return content


def _open(server: Server, id: str) -> Live:
    live = server.session(id)
    if live.ended.done():
        raise Refused(409, "closed", f"the session {id} is closed", hint="a new one with 'resume' goes on with it")
    return live


ROUTES = (
    Route("GET", "/v1/status", "What this server is, and how full it is", status),
    Route("POST", "/v1/stop", "Close all sessions and end the server", stop),
    Route("GET", "/v1/sessions", "All sessions", list_sessions),
    Route("POST", "/v1/sessions", "Open a session", create),
    Route("GET", "/v1/sessions/{id}", "One session", one_session),
    Route("DELETE", "/v1/sessions/{id}", "End a session now; its conversation can be resumed. Forget one that is closed",
          close),
    Route("POST", "/v1/sessions/{id}/messages", "A prompt", messages),
    Route("POST", "/v1/sessions/{id}/control", "A frame of the SDK's control protocol", control),
    Route("POST", "/v1/sessions/{id}/interrupt", "End the turn that runs", interrupt),
    Route("POST", "/v1/sessions/{id}/end", "No more prompts come: what waits still runs, then the session closes", end),
    Route("GET", "/v1/sessions/{id}/events", "The session's messages as server-sent events", events),
)


def find(method: str, path: str) -> tuple[Route, str]:
    """The route and the id in its path.

    :raises Refused: there is none, or it has other methods.
    """
    methods = []
    for route in ROUTES:
        found = re.fullmatch(route.path.replace("{id}", "([A-Za-z0-9._-]{1,100})"), path)
        if found is not None:
            if route.method == method:
                return route, found[1] if found.groups() else ""
            methods.append(route.method)
    if methods:
        allowed = ", ".join(methods)
        raise Refused(405, "no_such_method", f"{path} has the methods {allowed}", headers=[("allow", allowed)])
    raise Refused(404, "not_found", f"there is no {path[:200]}")
