"""The session's side of all connections: slots, limits, the log, and who answers what a server asks."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from kernel_mcp import limits as lim

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from kernel import Session
    from kernel_mcp.auth import Login
    from kernel_mcp.credentials import Credentials
    from kernel_mcp.entries import Server
    from kernel_mcp.link import Link

CHANNEL = "mcp.channel"
"""Where a front end that has servers of its own program puts how they are reached, before the session starts:
``session.plugin_state[CHANNEL]``, ``async (server, JSON-RPC message) -> JSON-RPC answer or None``."""
PERSON = "mcp.person"
"""Where a front end puts who answers a server's question: ``async (server, params as JSON) -> {"action", "content"?}``."""


class Host:
    """One per session that has servers.

    :param login: who takes a person through a login; ``None``: nobody, as in a run without a person.
    """

    def __init__(self, session: Session, *, login: Login | None = None) -> None:
        self.session = session
        self.login = login
        self.limits = lim.read()
        self.added: list[Path] = []
        """Working directories that came while the session lived."""
        self.waiting_for_person = 0
        """How many servers wait for a person now; their calls are not idle."""
        self._slots = {False: anyio.Semaphore(self.limits.local), True: anyio.Semaphore(self.limits.remote)}
        self._forgetful: dict[str, Credentials] = {}
        self._engine: asyncio.Task[None] | None = None

    def credentials(self, server: Server) -> Credentials:
        """What is kept of the logins at a server; one object per connection of a session that keeps nothing on disk."""
        from kernel_mcp.credentials import Credentials, place

        if self.login is not None and not self.login.remembers:
            return self._forgetful.setdefault(server.url, Credentials(server, None))
        return Credentials(server, place())

    def may_refresh(self, server: Server) -> bool:
        """Whether a refused token can be replaced without a person; the next connection does it then."""
        if server.kind not in ("http", "sse") or server.oauth.get("grantType"):
            return False
        credentials = self.credentials(server)
        if not credentials.can_refresh:
            return False
        credentials.expire()
        return True

    @property
    def cwd(self) -> str:
        return str(self.session.options.cwd)

    def slot(self, server: Server) -> Slot:
        """A place among those that connect at once."""
        return Slot(self._slots[server.remote], self.limits.connect_wait_s)

    async def engine(self) -> None:
        """Wait until the package is imported; the import runs in a thread, beside the servers' own start."""
        from kernel_mcp.engine import load

        if self._engine is None:
            self._engine = asyncio.get_running_loop().create_task(asyncio.to_thread(load))
        await asyncio.shield(self._engine)

    def log(self, link: Link, text: str) -> None:
        self.session.debug(f"mcp {link.server.name}: {text}")

    def environment(self, server: Server) -> dict[str, str]:
        """What a server's process gets on top of ours."""
        extra = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": self.session.id, "CLAUDE_PROJECT_DIR": self.session.project_root}
        if server.data:
            with suppress(OSError):  # the server sees that it is missing, if it needs it
                Path(server.data).mkdir(parents=True, exist_ok=True, mode=0o700)
        return extra | server.places

    def mode(self, server: Server) -> str:
        """How the protocol's revision is agreed upon (MCP contract, section 10)."""
        wanted = os.environ.get("MCP_PROTOCOL_NEGOTIATION", "")
        if wanted in ("auto", "legacy"):
            return wanted
        return "auto" if server.kind == "http" else "legacy"

    async def open_client(self, link: Link, stack: AsyncExitStack) -> Any:
        """A connected client on the stack."""
        from kernel_mcp.connect import open_client

        return await open_client(self, link, stack)

    def is_modern(self, client: Any) -> bool:
        """Whether the connection speaks a revision without sessions."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return client.protocol_version in MODERN_PROTOCOL_VERSIONS

    def listens(self, client: Any) -> bool:
        """Whether change notices come on a stream that we open."""
        has = client.server_capabilities
        return self.is_modern(client) and any(
            getattr(getattr(has, kind, None), "list_changed", False) for kind in ("tools", "prompts", "resources"))

    async def listen(self, link: Link, client: Any) -> None:
        """Keep the stream of change notices open. Short-lived ones are opened again three times, others five times an hour."""
        short = 0
        reopened: list[float] = []
        while True:
            began = anyio.current_time()
            try:
                async with client.listen(tools_list_changed=True, prompts_list_changed=True,
                                         resources_list_changed=True) as events:
                    async for event in events:
                        name = type(event).__name__.lower()
                        link.note_change("tools" if "tool" in name else "prompts" if "prompt" in name else "resources")
            except Exception as error:
                self.log(link, f"the stream of change notices ended: {type(error).__name__}: {error}")
            now = anyio.current_time()
            if now - began < 10:
                short += 1
                if short > 3:
                    return
                await anyio.sleep(min(2.0 ** short, 10))
                continue
            reopened = [t for t in reopened if now - t < 3600] + [now]
            if len(reopened) > 5:
                await anyio.sleep(6 * 3600)

    def roots(self) -> list[tuple[str, str]]:
        """The launch directory and the additional ones, as (URI, name)."""
        folders = [Path(self.cwd), *(Path(d) for d in self.session.options.add_dirs), *self.added]
        return [(folder.absolute().as_uri(), folder.name) for folder in dict.fromkeys(folders)]


class Slot:
    """A place among those that connect at once; given up after a while, so that silent servers hold up nobody."""

    def __init__(self, places: anyio.Semaphore, longest_s: float) -> None:
        self._places = places
        self._longest_s = longest_s
        self._held = False

    async def __aenter__(self) -> None:
        await self._places.acquire()
        self._held = True
        self._timer = asyncio.get_running_loop().call_later(self._longest_s, self._release)

    async def __aexit__(self, *error: object) -> None:
        self._timer.cancel()
        self._release()

    def _release(self) -> None:
        if self._held:
            self._held = False
            self._places.release()
