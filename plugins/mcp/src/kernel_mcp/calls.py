"""One request of ours to a connected server: limits, cancellation, a lost session (MCP contract, section 5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio

from kernel import ToolError
from kernel_mcp.faults import AUTH, call_error, login_error

if TYPE_CHECKING:
    from kernel_mcp.link import Link

Progress = Callable[[float, float | None, str | None], None]
_TICK_S = 0.5


async def call_tool(link: Link, tool: str, arguments: dict[str, Any], *, progress: Progress | None = None,
                    read_only: bool = False) -> Any:
    """Call a tool and return the package's result.

    :raises ToolError: every way in which no result comes, under its documented code.
    """
    async def send(client: Any, alive: Callable[[], None]) -> Any:
        async def told(done: float, total: float | None, message: str | None) -> None:
            alive()
            if progress is not None:
                progress(done, total, message)

        return await client.call_tool(tool, arguments, progress_callback=told)

    return await request(link, send, read_only=read_only)


async def request(link: Link, send: Callable[[Any, Callable[[], None]], Awaitable[Any]], *, read_only: bool = False) -> Any:
    """Send one request under the limits of a call; a session that the server has forgotten is opened again, once.

    :raises ToolError: no result came.
    """
    attempt = 0
    while True:
        attempt += 1
        client = await _connected(link)
        gate = link.gate
        try:
            return await _limited(link, client, send, read_only)
        except ToolError:
            raise
        except Exception as error:
            if gate is not None and gate.lost and link.client is client:
                link.ended()  # nobody answers there: the connection is opened anew, with growing waits
            if attempt == 2 or not _worth_another(link, gate, error):
                raise call_error(link, error, read_only=read_only) from error
            if link.client is client:
                await link.reconnect()


def _worth_another(link: Link, gate: Any, error: Exception) -> bool:
    """The server did not begin with the call: it did not know the session, or the caller."""
    if gate is None:
        return False
    if gate.status in AUTH:
        return bool(link.server.headers_helper or link.server.oauth or gate.logged_in)
    return "Session terminated" in str(error) and gate.status == 404


async def _connected(link: Link) -> Any:
    if link.status == "pending":
        with anyio.move_on_after(link.host.limits.start_s):
            await link.settled.wait()
    if link.client is not None and link.status == "connected":
        return link.client
    name = link.server.name
    if link.status == "needs-auth":
        raise login_error(name)
    raise ToolError("mcp_disconnected", f"The MCP server {name!r} is not connected ({link.error or link.status}).")


async def _limited(link: Link, client: Any, send: Callable[[Any, Callable[[], None]], Awaitable[Any]], read_only: bool) -> Any:
    """The whole call has one limit; silence has another, which progress and a person who is asked put off."""
    limits = link.host.limits
    most = link.server.timeout_ms / 1000 if link.server.timeout_ms else limits.call_s
    idle = limits.idle_remote_s if link.server.remote else limits.idle_local_s if link.server.kind == "stdio" else None
    if idle is not None:
        idle = max(idle, (link.server.timeout_ms or 0) / 1000)
    heard = anyio.current_time()

    def alive() -> None:
        nonlocal heard
        heard = anyio.current_time()

    async def watch() -> None:
        while idle is not None:
            await anyio.sleep(min(_TICK_S, idle))
            if link.host.waiting_for_person:
                alive()
            if anyio.current_time() - heard > idle:
                silent.cancel()
                return

    result: Any = None
    with anyio.move_on_after(most) as whole, anyio.CancelScope() as silent:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(watch)
                result = await send(client, alive)
                group.cancel_scope.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return result
    name = link.server.name
    if whole.cancelled_caught:
        raise ToolError("mcp_timeout", f"The MCP server {name!r} gave no result within {most:g} seconds; the call was cancelled.",
                        retryable=read_only)
    raise ToolError("mcp_idle", f"The MCP server {name!r} was silent for {idle:g} seconds; the call was cancelled.")
