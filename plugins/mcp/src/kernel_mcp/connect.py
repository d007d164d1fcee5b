"""A client of the package for one server: its transport, its callbacks, its limits (MCP contract, sections 2 and 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_mcp.watch import Watched

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from kernel_mcp.host import Host
    from kernel_mcp.link import Link


async def open_client(host: Host, link: Link, stack: AsyncExitStack) -> Any:
    """Connect, agree on a revision, and leave everything on the stack.

    :raises Exception: whatever stood in the way, perhaps in a group.
    """
    kind = link.server.kind
    if kind == "stdio":
        from kernel_mcp.stdio import Child, Lines

        link.child = child = await Child.start(link.server, host.cwd, host.environment(link.server),
                                               lambda text: host.log(link, f"stderr: {text}"))
        stack.push_async_callback(child.stop)  # also where the import or the first message fails
        await host.engine()
        transport: Any = Lines(child)
    else:
        await host.engine()
        transport = await _remote(host, link) if kind != "sdk" else _in_process(host, link)
    if not _is_server(transport):
        transport = link.watched = Watched(transport, changed=link.note_change, ended=link.ended, log=lambda t: host.log(link, t))
    client = make_client(host, link, transport)
    await stack.enter_async_context(client)
    return client


def make_client(host: Host, link: Link, transport: Any) -> Any:
    from mcp.client.client import Client
    from mcp_types import Implementation

    from kernel import __version__
    from kernel_mcp.asked import Asked

    asked = Asked(host, link)
    return Client(transport, mode=host.mode(link.server), cache=None, list_roots_callback=asked.roots,
                  elicitation_callback=asked.elicit, sampling_callback=asked.sample if asked.may_sample else None,
                  logging_callback=asked.log, message_handler=asked.notice,
                  client_info=Implementation(name="kernel", version=__version__))


def _is_server(thing: Any) -> bool:
    """Whether it is a server object of the package rather than a transport."""
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    return isinstance(thing, Server | MCPServer)


def _in_process(host: Host, link: Link) -> Any:
    from kernel_mcp.host import CHANNEL

    if link.server.instance is not None:
        return link.server.instance
    send = host.session.plugin_state.get(CHANNEL)
    if send is None:
        raise ConnectionError("it lives in a program that is not there: no front end offers a channel to its servers")
    from kernel_mcp.channel import Channel

    return Channel(link.server.name, send)


async def _remote(host: Host, link: Link) -> Any:
    from kernel_mcp.gate import Gate, http_client
    from kernel_mcp.headers import headers_of

    server = link.server
    headers = await headers_of(host, server)
    if server.kind == "ws":
        from kernel_mcp.websocket import WebSocket

        return WebSocket(server.url, headers)
    link.gate = gate = Gate(max(host.limits.first_byte_s, (server.timeout_ms or 0) / 1000))
    auth = None
    if not any(name.lower() == "authorization" for name in headers):
        from kernel_mcp.auth import provider_of

        auth = await provider_of(host, server, gate)
    if server.kind == "sse":
        from mcp.client.sse import sse_client

        return sse_client(server.url, headers=headers, auth=auth, timeout=30.0, sse_read_timeout=1e9,
                          httpx_client_factory=lambda headers=None, timeout=None, auth=None: http_client(gate, headers, auth))
    from mcp.client.streamable_http import streamable_http_client

    from kernel_mcp.stdio import MAX_LINE

    return _WithClient(http_client(gate, headers, auth),
                       lambda client: streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_LINE))


class _WithClient:
    """A transport over an HTTP client of ours: both are opened and closed together."""

    def __init__(self, client: Any, make: Any) -> None:
        self._client = client
        self._make = make

    async def __aenter__(self) -> Any:
        await self._client.__aenter__()
        self._transport = self._make(self._client)
        try:
            return await self._transport.__aenter__()
        except BaseException:
            await self._client.__aexit__(None, None, None)
            raise

    async def __aexit__(self, *error: Any) -> Any:
        try:
            return await self._transport.__aexit__(*error)
        finally:
            await self._client.__aexit__(None, None, None)
