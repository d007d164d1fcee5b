"""Servers inside the program that runs us: each message is handed over and its answer comes back (SDK contract, section 7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

Send = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]]


class Channel:
    """A transport of the package's kind over ``send``. Nothing ever comes that was not asked for."""

    def __init__(self, name: str, send: Send) -> None:
        self._name = name
        self._send = send

    async def __aenter__(self) -> tuple[Any, Any]:
        self._incoming, read = anyio.create_memory_object_stream[Any](32)
        write, self._outgoing = anyio.create_memory_object_stream[Any](0)
        self._streams = (self._incoming, read, write, self._outgoing)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._pump)
        return read, write

    async def __aexit__(self, *error: Any) -> bool | None:
        self._tasks.cancel_scope.cancel()
        for stream in self._streams:
            stream.close()
        return await self._tasks.__aexit__(*error)

    async def _pump(self) -> None:
        async for item in self._outgoing:
            self._tasks.start_soon(self._pass, item.message)

    async def _pass(self, message: Any) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

        wire = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
        request = wire.get("id")
        answer: Any
        try:
            answer = await self._send(self._name, wire)
            if request is None:
                return  # a notification: its answer says nothing
            answer = jsonrpc_message_adapter.validate_python({**(answer or {}), "id": request}, by_name=False)
        except Exception as error:
            if request is None:
                return
            answer = JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(
                code=INTERNAL_ERROR, message=f"the program did not answer: {type(error).__name__}: {error}"))
        try:
            await self._incoming.send(SessionMessage(answer))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            return
