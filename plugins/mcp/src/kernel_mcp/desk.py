"""The commands' stand-in for a session: enough to connect to a server outside of a conversation."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kernel import Harness, Options
from kernel_mcp.sources import Gathered, gather

if TYPE_CHECKING:
    from kernel_mcp.auth import Login
    from kernel_mcp.entries import Server
    from kernel_mcp.link import Link


class Desk:
    """What a command works on: the settings of a folder, the servers that a run there would have."""

    def __init__(self, cwd: Path) -> None:
        self.options = Options(cwd=cwd, print_mode=False)
        self.harness = Harness(self.options)
        self.settings = self.harness.settings
        self.id = "00000000-0000-4000-8000-000000000000"
        self.project_root = str(cwd)
        self.plugin_state: dict[str, Any] = {}
        self.state = SimpleNamespace(cwd=str(cwd), permission_mode="default")

    def notice(self, text: str, **_: Any) -> None:
        print(text, file=sys.stderr)

    def debug(self, text: str) -> None:
        """A command keeps no log."""

    def make(self, kind: Any, **fields: Any) -> Any:
        return kind, fields

    async def fire(self, event: Any) -> Any:
        """No hooks outside of a session."""
        from kernel import Merged

        return Merged()

    def gathered(self) -> Gathered:
        return gather(self.options, self.settings, list(self.harness.plugins.ready))


async def connected(desk: Desk, servers: list[Server], *, seconds: float, login: Login | None = None) -> list[Link]:
    """The servers' links once each is settled or the time is over; all are closed again."""
    import asyncio

    import anyio
    import msgspec

    from kernel_mcp.host import Host
    from kernel_mcp.link import Link

    host = Host(desk, login=login)  # type: ignore[arg-type]  # what a host asks of a session, a desk has
    host.limits = msgspec.structs.replace(host.limits, start_s=min(host.limits.start_s, seconds))
    links = [Link(server, host, lambda link: None) for server in servers]
    for link in links:
        link.start()
    with anyio.move_on_after(seconds + 1):
        for link in links:
            await link.settled.wait()
    for link in links:
        if link.status == "pending":
            link.error = f"it was not ready within {seconds:g} seconds"
        link.facts = {"status": "failed" if link.status == "pending" else link.status, "error": link.error,
                      "tools": [t.name for t in link.lists.tools], "version": (link.server_info or {}).get("version")}
    await asyncio.gather(*(link.stop() for link in links), return_exceptions=True)
    return links
