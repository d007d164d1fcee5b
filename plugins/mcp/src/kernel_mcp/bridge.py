"""All connections of one session: who is connected, which tools that brings, what is told about it.

``session.plugin_state["mcp"]`` holds the bridge, for hooks (``mcp_tool`` handlers) and front ends.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio

from kernel import env_switch
from kernel_mcp.deferral import Deferral
from kernel_mcp.link import Link
from kernel_mcp.names import full_name, normalise
from kernel_mcp.tools import McpTool, tools_of

if TYPE_CHECKING:
    from kernel import Session
    from kernel_mcp.host import Host
    from kernel_mcp.sources import Gathered


class Bridge:
    """The connections of one session, shared by the sessions of its subagents."""

    def __init__(self, host: Host, gathered: Gathered) -> None:
        self.host = host
        self.links: dict[str, Link] = {n: Link(s, host, self._changed) for n, s in sorted(gathered.servers.items())}
        self.off = dict(gathered.disabled)
        self.errors = gathered.errors
        self.views: list[View] = []

    # -- life ------------------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Begin to connect to every server, side by side."""
        for link in self.links.values():
            link.start()

    async def wait(self, seconds: float, names: set[str] | None = None) -> None:
        """Until no server is pending, or the time is over."""
        with anyio.move_on_after(seconds):
            for link in list(self.links.values()):
                if names is None or link.server.name in names:
                    await link.settled.wait()

    async def ready(self, session: Session) -> None:
        """Wait a while for servers that still connect, and show a session what they brought. The import is not counted."""
        if any(not link.settled.is_set() for link in self.links.values()):
            await self.host.engine()
        await self.wait(self.host.limits.connect_wait_s)
        self.show(session)

    def show(self, session: Session) -> None:
        """Bring what one session sees in line with what is connected."""
        for view in self.views:
            if view.session is session:
                view.sync()

    async def retry(self) -> None:
        """Servers of the program that runs us whose handshake failed are tried again with each prompt (SDK contract, 7.6)."""
        again = {n for n, link in self.links.items() if link.server.kind == "sdk" and link.status == "failed" and not link.worked}
        for name in again:
            self.links[name].start()
        if again:
            await self.wait(self.host.limits.connect_wait_s, again)

    async def root_added(self, folder: str) -> None:
        """Another working directory: servers of the older revision are told; the newer one has no such notice."""
        import warnings
        from pathlib import Path

        self.host.added.append(Path(folder))

        for link in self.links.values():
            if link.status == "connected" and not self.host.is_modern(link.client):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the package warns that a later revision drops the notice
                    await link.client.send_roots_list_changed()

    async def close(self) -> None:
        await asyncio.gather(*(link.stop() for link in self.links.values()), return_exceptions=True)

    def _changed(self, link: Link) -> None:
        for view in self.views:
            view.changed(link)

    # -- for others --------------------------------------------------------------------------------------------------------
    async def call(self, server: str, tool: str, input: dict[str, Any]) -> tuple[str, bool]:
        """The text of a tool's result, and whether the tool says that it is an error. Starts no connection.

        :raises Exception: the server is not connected, or the call failed.
        """
        from kernel_mcp.calls import call_tool

        link = self.links.get(server)
        if link is None or link.status != "connected":
            raise ConnectionError(f"the MCP server {server!r} is not connected")
        result = await call_tool(link, tool, input)
        return "\n".join(block.text for block in result.content if block.type == "text"), bool(result.is_error)

    def status(self) -> list[dict[str, Any]]:
        """Name and status of every server, for the init message."""
        found = {name: link.status for name, link in self.links.items()} | dict.fromkeys(self.off, "disabled")
        return [{"name": name, "status": found[name]} for name in sorted(found)]

    def report(self) -> list[dict[str, Any]]:
        """The same with everything that a client may ask (SDK contract, 4.5). Secrets are masked."""
        told = []
        for name, link in self.links.items():
            entry: dict[str, Any] = {"name": name, "status": link.status, "config": link.server.shown(),
                                     "scope": link.server.scope}
            if link.status == "connected":
                if link.server_info:
                    entry["serverInfo"] = link.server_info
                entry["tools"] = [_shown(t) for t in link.lists.tools]
            elif link.error:
                entry["error"] = link.error
            told.append(entry)
        for name, (server, reason) in self.off.items():
            told.append({"name": name, "status": "disabled", "config": server.shown(), "scope": server.scope, "error": reason})
        return sorted(told, key=lambda e: str(e["name"]))

    async def reconnect(self, name: str) -> None:
        """Connect a server anew and wait for it.

        :raises KeyError: there is no such server.
        :raises ConnectionError: it does not connect.
        """
        link = self.links[name]
        await link.reconnect()
        if link.status != "connected":
            raise ConnectionError(link.error or link.status)

    async def toggle(self, name: str, enabled: bool) -> None:
        """Switch a server on or off for this session.

        :raises KeyError: there is no such server.
        """
        if enabled:
            if name in self.off:
                server, _ = self.off.pop(name)
                self.links[name] = Link(server, self.host, self._changed)
            link = self.links[name]
            if link.status != "connected":
                await link.reconnect()
        else:
            await self.links[name].stop()

    def undecided(self) -> list[str]:
        """Servers of the project's own file that a person has neither approved nor rejected."""
        from kernel_mcp.sources import PENDING_APPROVAL

        return sorted(name for name, (_, reason) in self.off.items() if reason == PENDING_APPROVAL)

    async def decide(self, name: str, approved: bool) -> None:
        """A person's answer about such a server: kept in the project's local settings, and acted upon.

        :raises KeyError: nothing was asked about it.
        """
        from pathlib import Path

        from kernel_mcp.sources import REJECTED
        from kernel_mcp.store import change

        server, _ = self.off[name]
        key = "enabledMcpjsonServers" if approved else "disabledMcpjsonServers"

        def keep(data: dict[str, Any]) -> None:
            before = data.get(key)
            data[key] = [*(n for n in before or () if n != name), name] if isinstance(before, list | None) else [name]

        change(Path(self.host.cwd) / ".claude" / "settings.local.json", keep)
        if approved:
            await self.toggle(name, True)
        else:
            self.off[name] = (server, REJECTED)

    async def set_servers(self, entries: dict[str, Any]) -> dict[str, Any]:
        """Replace the servers that came with the run by others, as a configuration names them.

        Returns ``added``, ``removed`` (names) and ``errors`` (name -> why it is not there).
        """
        from kernel_mcp.sources import given

        servers, errors = given(entries, self.host.session.settings)
        mine = {n for n, link in self.links.items() if link.server.scope == "run"}
        removed = sorted(mine - servers.keys())
        added = sorted(servers.keys() - self.links.keys())
        for name in removed:
            await self.links[name].stop()
            self._changed(self.links.pop(name))
        for name in added:
            self.links[name] = Link(servers[name], self.host, self._changed)
            self.links[name].start()
        await self.wait(self.host.limits.start_s, set(added))
        errors |= {n: self.links[n].error for n in added if self.links[n].status != "connected"}
        return {"added": added, "removed": removed, "errors": errors}


def _shown(listed: Any) -> dict[str, Any]:
    hints = listed.annotations
    facts = {"readOnly": hints.read_only_hint, "destructive": hints.destructive_hint,
             "openWorld": hints.open_world_hint} if hints else {}
    shown = {"name": listed.name, "description": listed.description,
             "annotations": {k: v for k, v in facts.items() if v is not None}}
    return {k: v for k, v in shown.items() if v}


class View:
    """What one session sees of the bridge: its tools, its commands, what its model is told."""

    def __init__(self, bridge: Bridge, session: Session) -> None:
        self.bridge = bridge
        self.session = session
        self.deferral = Deferral(session)
        self._tools: dict[str, dict[str, McpTool]] = {}
        self._dirty: set[str] = set(bridge.links)
        self._told_failures: set[str] = set()
        self._told_instructions: set[str] = set()
        self._commands: dict[str, list[str]] = {}
        self._no_prefix = env_switch("CLAUDE_AGENT_SDK_MCP_NO_PREFIX") is True
        bridge.views.append(self)
        self._facts()
        if bridge.errors:
            session.init_facts["mcp_server_errors"] = bridge.errors

    def changed(self, link: Link) -> None:
        """Noted at once, applied before the next request, so that a request and its tools stay together."""
        self._dirty.add(link.server.name)
        self._facts()

    def _facts(self) -> None:
        self.session.init_facts["mcp_servers"] = self.bridge.status()

    def detach(self) -> None:
        if self in self.bridge.views:
            self.bridge.views.remove(self)

    def sync(self) -> None:
        """Bring the session's tools, commands and context in line with what is connected."""
        if not self._dirty:
            return
        dirty, self._dirty = self._dirty, set()
        fresh: list[McpTool] = []
        for name in sorted(dirty):
            link = self.bridge.links.get(name)
            if link is not None and link.status == "pending" and name in self._tools:
                continue  # it may come back: its tools wait for it
            now = self._wanted(link)
            before = self._tools.get(name, {})
            changed = [t for n, t in now.items() if n not in before or before[n].definition() != t.definition()]
            self.session.toolbox.withdraw([n for n in before if n not in now or now[n] in changed])
            for n, tool in now.items():
                if tool not in changed:  # the same to the model: only what stands behind it is new
                    before[n].__dict__.update(tool.__dict__)
                    now[n] = before[n]
            self._tools[name] = now
            fresh += [t for t in changed if t.name not in self.session.toolbox.by_name]  # a fork has its parent's already
            self._commands_of(name, link)
        self.deferral.offer(sorted(fresh, key=lambda t: t.name), [t for tools in self._tools.values() for t in tools.values()])
        self._resources()
        self._tell(dirty)

    def _wanted(self, link: Link | None) -> dict[str, McpTool]:
        if link is None or link.status != "connected":
            return {}
        prefix = not (self._no_prefix and link.server.kind == "sdk")
        return {t.name: t for t in tools_of(link, prefix=prefix)}

    def _resources(self) -> None:
        from kernel_mcp.resources import TOOLS, able
        from kernel_mcp.waiting import WaitForMcpServers

        if any(able(link) for link in self.bridge.links.values()):
            self.session.toolbox.offer([t(self.bridge) for t in TOOLS if t.name not in self.session.toolbox.by_name])
        pending = any(link.status == "pending" for link in self.bridge.links.values())
        offered = WaitForMcpServers.name in self.session.toolbox.by_name
        if pending and not offered and not self.deferral.active:
            self.session.toolbox.offer([WaitForMcpServers(self.bridge)])
        elif offered and not pending:
            self.session.toolbox.withdraw([WaitForMcpServers.name])

    def _commands_of(self, name: str, link: Link | None) -> None:
        from kernel_mcp.prompts import PromptCommand

        for old in self._commands.pop(name, ()):
            self.session.commands.pop(old, None)
        if link is None or link.status != "connected":
            return
        mine = self._commands.setdefault(name, [])
        for prompt in link.lists.prompts:
            command = PromptCommand(link, prompt, full_name(name, prompt.name))
            if command.name not in self.session.commands:
                self.session.commands[command.name] = command
                mine.append(command.name)

    def _tell(self, names: set[str]) -> None:
        """Instructions of servers that came, and which servers failed and why."""
        for name in sorted(names):
            link = self.bridge.links.get(name)
            if link is None:
                continue
            if link.status == "connected" and link.instructions and name not in self._told_instructions:
                self._told_instructions.add(name)
                self.session.add_context(instructions_text(link))
            if link.status in ("failed", "needs-auth") and name not in self._told_failures:
                self._told_failures.add(name)
                self.session.notice(f"MCP server {name!r}: {link.error or link.status}")
                if self.deferral.active or link.status == "needs-auth":
                    self.session.add_context(f"The MCP server {normalise(name)} is not available ({link.status}): {link.error}. "
                                             "Its tools cannot be used in this session; say so if they are needed.")

    def again(self) -> list[str]:
        """What the model is told anew when a summary replaced the history."""
        texts = [instructions_text(link) for name, link in self.bridge.links.items()
                 if name in self._told_instructions and link.status == "connected"]
        return [*texts, *self.deferral.again()]


def instructions_text(link: Link) -> str:
    from kernel_mcp.schemas import cut

    return f"# Instructions of the MCP server {normalise(link.server.name)}\n{cut(link.instructions)}"
