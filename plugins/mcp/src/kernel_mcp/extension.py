"""The bridge in the life of a session: connect before the tools are fixed, follow changes, close at the end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from kernel import Extension

if TYPE_CHECKING:
    from kernel import Block, Harness, Session
    from kernel_mcp.bridge import Bridge, View

STATE = "mcp"
VIEWS = "mcp.views"
AGENT_SERVERS = "mcp.servers"
"""Where whoever opens a subagent's session puts the ``mcpServers`` of its definition, before the session starts: names, which
share the connections of the parent, and objects ``{name: entry}``, whose servers live as long as the agent. Trust was judged
then. In the conversation itself: those of its main agent, before its first prompt."""


class McpExtension(Extension):
    name = "mcp"

    def check(self, harness: Harness) -> None:
        """What the command line says of servers; the files are read with it, so that nothing is judged apart from them."""
        options = harness.options
        if options.extra.get("mcp_config") or options.extra.get("strict_mcp_config"):
            from kernel_mcp.sources import gather

            gather(options, harness.settings, list(harness.plugins.ready))

    async def open(self, session: Session) -> None:
        parent = session.parent
        if parent is not None and STATE in parent.plugin_state:
            session.plugin_state[STATE] = parent.plugin_state[STATE]
            _show(session, parent.plugin_state[STATE])
        if parent is not None:
            if session.plugin_state.get(AGENT_SERVERS):
                await _open_inline(session, session.plugin_state[AGENT_SERVERS])
            return
        from kernel_mcp.sources import gather

        found = gather(session.options, session.settings, list(session.plugins.ready))
        for text in found.warnings:
            session.notice(text)
        if found.servers or found.disabled or found.errors:
            await _open(session, found)

    async def before_prompt(self, session: Session) -> None:
        if session.parent is None and (entries := session.plugin_state.pop(AGENT_SERVERS, None)):
            await _open_inline(session, entries)
        bridge: Bridge | None = session.plugin_state.get(STATE)
        if bridge is not None and bridge.host.session is session:
            await bridge.retry()

    async def before_request(self, session: Session) -> None:
        for view in session.plugin_state.get(VIEWS, ()):
            view.sync()

    async def after_compaction(self, session: Session) -> list[Block]:
        from kernel import reminder

        return [reminder(text) for view in session.plugin_state.get(VIEWS, ()) for text in view.again()]

    async def close(self, session: Session) -> None:
        views: list[View] = session.plugin_state.pop(VIEWS, [])
        session.plugin_state.pop(STATE, None)
        for view in views:
            view.detach()
            if view.bridge.host.session is session:
                from kernel_mcp.background import stop_all

                if session.parent is None:
                    await stop_all(session)
                await view.bridge.close()


async def _open(session: Session, found: Any) -> None:
    from kernel_mcp.bridge import Bridge
    from kernel_mcp.host import Host
    from kernel_mcp.waiting import McpReport

    bridge = Bridge(Host(session), found)
    session.plugin_state[STATE] = bridge
    session.commands["mcp"] = McpReport(bridge)  # no file of a project stands in front of it
    asker = str(session.options.extra.get("permission_prompt_tool") or "")
    if asker.startswith("mcp__") and session.asker is None:
        from kernel_mcp.prompt_tool import PromptTool

        session.asker = PromptTool(session, asker)
    bridge.start()
    await _wait(session, bridge, bool(asker.startswith("mcp__")))
    _show(session, bridge)


async def _open_inline(session: Session, entries: list[Any]) -> None:
    """The servers that an agent's definition brings along."""
    from kernel_mcp.bridge import Bridge
    from kernel_mcp.host import Host
    from kernel_mcp.sources import inline

    found = inline(entries, session.options, session.settings)
    for text in found.warnings:
        session.notice(text)
    if found.servers:
        bridge = Bridge(Host(session), found)
        bridge.start()
        await bridge.wait(bridge.host.limits.start_s)
        _show(session, bridge)


def _show(session: Session, bridge: Bridge) -> None:
    from kernel_mcp.bridge import View

    view = View(bridge, session)
    session.plugin_state.setdefault(VIEWS, []).append(view)
    view.sync()


async def _wait(session: Session, bridge: Bridge, needed: bool) -> None:
    """How long the first prompt waits for servers (MCP contract, section 2)."""
    limits = bridge.host.limits
    always = {n for n, link in bridge.links.items() if link.server.always_load}
    if session.options.print_mode:
        given = needed or bool(session.options.extra.get("mcp_config"))
        await bridge.wait(limits.start_s if given else limits.connect_wait_s)
    elif os.environ.get("MCP_CONNECTION_NONBLOCKING") == "0":
        await bridge.wait(limits.connect_wait_s)
    elif always:
        await bridge.wait(limits.connect_wait_s, always)
