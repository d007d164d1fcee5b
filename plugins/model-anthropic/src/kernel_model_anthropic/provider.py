"""The provider: one request, one stream of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from kernel import ModelInfo, ModelRequest, StreamEvent
from kernel_model_anthropic import errors, models
from kernel_model_anthropic.body import Bodies
from kernel_model_anthropic.connection import Connections
from kernel_model_anthropic.target import CONNECT_S, Target, answer_seconds, silence_seconds, target

if TYPE_CHECKING:
    import httpx

MAX_ERROR_BYTES = 64 * 1024
ERROR_BODY_S = 30.0
"""For the body of an error answer; the status is worth reporting without it."""


class Anthropic:
    """The Messages API over HTTP. Never retries; raises what the kernel's policy decides on.

    :param silence_s: seconds without a byte after which a stream counts as broken; from the environment by default.
    """

    name = "anthropic"

    def __init__(self, *, silence_s: float | None = None) -> None:
        self._silence_s = silence_s
        self._bodies = Bodies()
        self._connections = Connections()

    def resolve(self, model: str) -> ModelInfo | None:
        return models.resolve(model)

    async def aclose(self) -> None:
        await self._connections.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent]:
        """See ``ModelProvider.stream``."""
        where = target(request)
        body = self._bodies.build(request)
        line = self._connections.take(where.secure)
        broken = began = False
        try:
            import httpx

            try:
                response = await self._send(line.client, where, body, request)
                try:
                    async with aclosing(events(response, where)) as stream:
                        async for event in stream:
                            began = True
                            yield event
                finally:
                    await response.aclose()
            except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, OSError) as error:
                broken = True
                raise errors.from_transport(error, where, began) from None
        finally:
            await self._connections.give_back(line, broken=broken)

    async def _send(self, client: httpx.AsyncClient, where: Target, body: bytes, asked: ModelRequest) -> httpx.Response:
        """The answer, once its headers say that it is a stream of events.

        :raises ModelError: it is something else.
        """
        wait = answer_seconds()
        limits: dict[str, float | None] = {"connect": CONNECT_S, "read": wait, "write": wait, "pool": CONNECT_S}
        request = client.build_request("POST", where.url, content=body, headers=where.headers,
                                       extensions={"timeout": limits})
        with anyio.fail_after(wait):
            response = await client.send(request, stream=True)
        if asked.heard is not None:
            asked.heard(response.headers)
        # The transport looks the limit up again when the body is read.
        limits["read"] = self._silence_s or silence_seconds()
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.status_code == 200 and kind == "text/event-stream":
            return response
        found = await _some(response)
        if not 200 <= response.status_code < 300:
            raise errors.from_answer(response.status_code, response.headers, found, where)
        what = f"content of type {kind!r}" if kind else "content without a type"
        raise errors.no_model_response(what if found else "an empty body", found, where, status=response.status_code)


async def _some(response: httpx.Response) -> bytes:
    """The beginning of an answer's body, as far as it comes."""
    import httpx

    found = b""
    try:
        with anyio.move_on_after(ERROR_BODY_S):
            async for chunk in response.aiter_bytes():
                found += chunk
                if len(found) >= MAX_ERROR_BYTES:
                    break
    except httpx.HTTPError:
        pass
    finally:
        await response.aclose()
    return found


async def events(response: httpx.Response, where: Target) -> AsyncGenerator[StreamEvent]:
    """The events of a stream, decoded.

    :raises ModelError: an ``error`` event, something that is no event of this API, or no event at all;
        ``StreamError`` after the first event.
    """
    from httpx_sse import EventSource  # not needed before the request is on its way

    decode = msgspec.json.decode
    request_id = response.headers.get("request-id", "")
    began = False
    response.encoding = "utf-8"  # server-sent events are, whatever the header says
    async with aclosing(EventSource(response).aiter_sse()) as stream:
        async for sse in stream:
            data = sse.data
            if not data:
                continue
            try:
                event = decode(data)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                event = _decode_leniently(data)
            if sse.event == "error" or (isinstance(event, dict) and event.get("type") == "error"):
                raise errors.from_event(event, data, where, request_id, began)
            if not isinstance(event, dict):
                if data.strip() == "[DONE]":  # some gateways end every stream with it
                    continue
                raise errors.no_model_response("an event that is no JSON object", data, where, status=None, began=began)
            if "type" not in event:
                event["type"] = sse.event
            began = True
            yield event
    if not began:
        raise errors.no_model_response("a stream without an event", "", where, status=200)


def _decode_leniently(data: str) -> Any:
    """Python's own decoder takes lone surrogates, which cut strings may hold; ``None`` where it is no JSON."""
    import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
