"""One server's connection, owned by one task from its first byte to its last (MCP contract, section 2).

Whatever the package opens is entered and left in that task, so that no cancel scope ever crosses tasks. Others call
``call`` and the like, which only send requests and wait; they may be cancelled at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Literal

import anyio
from msgspec import Struct, field

from kernel_mcp import limits as lim
from kernel_mcp.faults import describe, transient

if TYPE_CHECKING:
    from kernel_mcp.entries import Server
    from kernel_mcp.host import Host

Status = Literal["pending", "connected", "failed", "needs-auth", "disabled"]
KINDS = ("tools", "prompts", "resources")


class Lists(Struct):
    """What a server offers, as the package's models. ``output_schemas`` by the server's own name of the tool."""

    tools: list[Any] = field(default_factory=list)
    prompts: list[Any] = field(default_factory=list)
    resources: list[Any] = field(default_factory=list)
    output_schemas: dict[str, Any] = field(default_factory=dict)


class Link:
    """The connection of one server.

    :param host: the session's side: slots, limits, callbacks, the log.
    :param changed: called when status or lists changed.
    """

    def __init__(self, server: Server, host: Host, changed: Callable[[Link], None]) -> None:
        self.server = server
        self.host = host
        self.status: Status = "pending"
        self.error = ""
        self.client: Any = None
        self.lists = Lists()
        self.instructions = ""
        self.server_info: dict[str, Any] | None = None
        self.facts: dict[str, Any] = {}
        """What a command tells of a connection that is closed already."""
        self.settled = anyio.Event()
        """Set while the status is not ``pending``."""
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._scope: anyio.CancelScope | None = None
        self._over = anyio.Event()
        self._stopping = False
        self._again = False
        self.worked = False
        """Whether it was ever connected."""
        self._ready = False
        self._stale: set[str] = set()
        self._wake = anyio.Event()
        self.gate: Any = None
        self.watched: Any = None
        self.child: Any = None

    # -- life ------------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Begin to connect; returns at once."""
        if self._task is None or self._task.done():
            self._stopping = False
            self._set("pending")
            self._task = asyncio.get_running_loop().create_task(self._run(), name=f"mcp {self.server.name}")

    async def stop(self, status: Status = "disabled", *, within: float = 6.0) -> None:
        """End the connection and its process; bounded."""
        self._stopping = True
        self._end()
        if self._task is not None:
            done, _ = await asyncio.wait({self._task}, timeout=within)
            if not done:
                if self.child is not None:
                    self.child.kill()
                self._task.cancel()
                await asyncio.wait({self._task}, timeout=1.0)
        self._set(status)

    async def reconnect(self) -> None:
        """Close what there is, connect anew, and wait until that is settled."""
        if self._task is None or self._task.done():
            self.start()
        else:
            self._again = True
            self._set("pending")
            self._end()
        await self.settled.wait()

    def _end(self) -> None:
        self._over.set()
        if self._scope is not None and self.status == "pending":
            self._scope.cancel()

    def _set(self, status: Status, error: str = "") -> None:
        if (status, error) == (self.status, self.error) and self.settled.is_set() == (status != "pending"):
            return
        self.status, self.error = status, error
        if status == "pending":
            if self.settled.is_set():
                self.settled = anyio.Event()
        else:
            self.settled.set()
        self._changed(self)

    async def _run(self) -> None:
        """Connect, and again where that helps: a remote server three times at first, five times once it had worked."""
        tries, worked, refreshed = 0, False, False
        while not self._stopping:
            tries += 1
            self._over, self._again = anyio.Event(), False
            error: BaseException | None = None
            try:
                await self._live()
            except Exception as caught:
                error = caught
            if self._stopping:
                break
            was_ready = self._ready
            if was_ready:
                worked, refreshed, tries = True, False, 0
            if self._again:
                continue
            verdict, text = describe(self, error, was_ready)
            most = lim.RECONNECTS if worked else lim.FIRST_TRIES
            if verdict == "needs-auth" and not refreshed and self.host.may_refresh(self.server):
                refreshed = True  # the token was refused before its time: a refresh, and once more
                continue
            if verdict == "needs-auth" or not self.server.remote or tries >= most or not (was_ready or transient(self, error)):
                self._set(verdict, text)
                return
            self._set("pending", text)
            with suppress(TimeoutError):
                with anyio.fail_after((lim.RECONNECT_S if worked else lim.RETRY_S) * 2.0 ** max(tries - 1, 0)):
                    await self._over.wait()
            if self._stopping:
                return

    async def _live(self) -> None:
        """One connection: open, list, serve until it is over."""
        self._ready = False
        started = anyio.Event()
        watchdog: asyncio.TimerHandle | None = None
        try:
            with anyio.CancelScope() as self._scope:
                async with AsyncExitStack() as stack:
                    async with self.host.slot(self.server):
                        watchdog = asyncio.get_running_loop().call_later(self.host.limits.start_s, self._too_slow, started)
                        client = await self.host.open_client(self, stack)
                        self._take_facts(client)
                        await self._list_all(client, KINDS[:1], must=True)
                        with anyio.move_on_after(self.host.limits.extras_s):  # what hangs here costs its list alone
                            await self._list_all(client, KINDS[1:])
                    started.set()
                    watchdog.cancel()
                    self.client, self.worked, self._ready = client, True, True
                    self._set("connected")
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._keep_fresh, client)
                        if self.host.listens(client):
                            group.start_soon(self.host.listen, self, client)
                        await self._over.wait()
                        group.cancel_scope.cancel()
        finally:
            if watchdog is not None:
                watchdog.cancel()
            self._scope = self.client = None
        if not started.is_set() and not self._over.is_set():
            raise TimeoutError(f"it was not ready within {self.host.limits.start_s:g} seconds")

    def _too_slow(self, started: anyio.Event) -> None:
        """The start took too long: said at once, whatever closing takes."""
        if not started.is_set() and self._scope is not None:
            self._set("failed", f"it was not ready within {self.host.limits.start_s:g} seconds")
            self._scope.cancel()

    def ended(self) -> None:
        """The transport says that nothing more comes."""
        self._over.set()

    # -- what it offers --------------------------------------------------------------------------------------------------
    def _take_facts(self, client: Any) -> None:
        info = client.server_info
        self.server_info = {"name": info.name, "version": info.version} if info is not None else None
        self.instructions = client.instructions or ""

    def note_change(self, kind: str) -> None:
        """A list of the server changed; it is fetched anew when the storm is over."""
        self._stale.add(kind)
        self._wake.set()

    async def _keep_fresh(self, client: Any) -> None:
        while True:
            await self._wake.wait()
            began = anyio.current_time()
            while self._wake.is_set() and anyio.current_time() - began < lim.DEBOUNCE_MOST_S:
                self._wake = anyio.Event()
                await anyio.sleep(lim.DEBOUNCE_S)
            self._wake = anyio.Event()
            kinds, self._stale = [k for k in KINDS if k in self._stale], set()
            with anyio.move_on_after(self.host.limits.start_s):
                await self._list_all(client, kinds)
                self._changed(self)

    async def _list_all(self, client: Any, kinds: Any, *, must: bool = False) -> None:
        """Fetch lists. One that cannot be fetched keeps its old content.

        :param must: a server whose tools cannot be listed is not connected.
        """
        has = client.server_capabilities
        for kind in kinds:
            if getattr(has, kind, None) is None:
                continue
            try:
                items = await self._list(client, kind)
            except Exception as error:
                if must and kind == "tools":
                    raise
                self.host.log(self, f"{kind}/list failed: {error}")
                continue
            setattr(self.lists, kind, items)
            if kind == "tools" and self.watched is not None:
                self.lists.output_schemas = dict(self.watched.output_schemas)

    async def _list(self, client: Any, kind: str) -> list[Any]:
        fetch = getattr(client, f"list_{kind}")
        items: list[Any] = []
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(lim.MAX_PAGES):
            page = await self._tried(lambda: fetch(cursor=cursor))  # noqa: B023  # called before the loop goes on
            items += getattr(page, kind)
            cursor = page.next_cursor
            if not cursor or cursor in seen or len(items) > lim.MAX_ITEMS:
                break
            seen.add(cursor)
        if cursor:
            self.host.log(self, f"{kind}/list goes on without end; the first {min(len(items), lim.MAX_ITEMS)} are used")
        return items[:lim.MAX_ITEMS]

    async def _tried(self, fetch: Callable[[], Any]) -> Any:
        attempt = 0
        while True:
            attempt += 1
            try:
                return await fetch()
            except Exception as error:
                if attempt == lim.FIRST_TRIES or not self.server.remote or not transient(self, error):
                    raise
                await anyio.sleep(lim.RETRY_S * attempt)
