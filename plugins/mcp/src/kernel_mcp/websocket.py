"""A server behind a web socket: JSON-RPC messages as text frames (MCP contract, section 2)."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from importlib.util import find_spec
from typing import Any

import anyio

from kernel_mcp.stdio import MAX_LINE, Noise


class WebSocket:
    """A transport of the package's kind over the web socket of ``httpx2``.

    :param headers: sent with the opening request; there is no other authentication.
    """

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        self._url = url
        self._headers = headers

    async def __aenter__(self) -> tuple[Any, Any]:
        import httpx2

        if find_spec("wsproto") is None:
            raise ConnectionError("servers of type ws need one more package: pip install 'kernel-mcp[ws]'")

        self._incoming, read = anyio.create_memory_object_stream[Any](0)
        write, self._outgoing = anyio.create_memory_object_stream[Any](0)
        self._streams = (self._incoming, read, write, self._outgoing)
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(httpx2.AsyncClient(headers=self._headers))
            socket = await stack.enter_async_context(client.websocket(
                self._url, subprotocols=["mcp"], max_message_size_bytes=MAX_LINE))
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(self._read, socket)
            tasks.start_soon(self._write, socket)
            stack.callback(tasks.cancel_scope.cancel)
            self._stack = stack.pop_all()
        return read, write

    async def __aexit__(self, *error: Any) -> bool | None:
        for stream in self._streams:
            stream.close()
        return await self._stack.__aexit__(*error)

    async def _read(self, socket: Any) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        async with self._incoming:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                while True:
                    try:
                        text = await socket.receive_text()
                    except anyio.get_cancelled_exc_class():
                        raise
                    except Exception:
                        return  # closed by the other side, or lost
                    try:
                        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
                    except ValueError:
                        await self._incoming.send(Noise(text[:200].encode("utf-8", "replace")))
                        continue
                    await self._incoming.send(SessionMessage(message))

    async def _write(self, socket: Any) -> None:
        async with self._outgoing:
            async for item in self._outgoing:
                await socket.send_text(item.message.model_dump_json(by_alias=True, exclude_unset=True))
