"""The bridge in the life of a session: connect before the tools are fixed, follow changes, close at the end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kernel import Extension

if TYPE_CHECKING:
    from kernel import Block, Session
    from kernel_mcp.bridge import Bridge, View

VIEW = "mcp.view"


class McpExtension(Extension):
    name = "mcp"

    async def open(self, session: Session) -> None:
        from kernel_mcp.bridge import STATE, Bridge, View

        parent = getattr(session, "parent", None)
        if parent is not None and STATE in parent.plugin_state:
            bridge: Bridge = parent.plugin_state[STATE]
            session.plugin_state[STATE] = bridge
            session.plugin_state[VIEW] = view = View(bridge, session)
            view.sync()
            return
        from kernel_mcp.sources import gather

        found = gather(session.options, session.settings, list(session.plugins.ready))
        for text in found.warnings:
            session.notice(text)
        if not found.servers and not found.disabled and not found.errors:
            return
        from kernel_mcp.host import Host

        bridge = Bridge(Host(session), found)
        session.plugin_state[STATE] = bridge
        session.plugin_state[VIEW] = View(bridge, session)
        bridge.start()
        await _wait(session, bridge)
        session.plugin_state[VIEW].sync()

    async def before_request(self, session: Session) -> None:
        view: View | None = session.plugin_state.get(VIEW)
        if view is not None:
            view.sync()

    async def after_compaction(self, session: Session) -> list[Block]:
        from kernel import reminder

        view: View | None = session.plugin_state.get(VIEW)
        return [reminder(text) for text in view.again()] if view is not None else []

    async def close(self, session: Session) -> None:
        from kernel_mcp.bridge import STATE

        view: View | None = session.plugin_state.pop(VIEW, None)
        if view is not None:
            view.detach()
            bridge = session.plugin_state.pop(STATE)
            if bridge.host.session is session:
                await bridge.close()


async def _wait(session: Session, bridge: Bridge) -> None:
    """How long the first prompt waits for servers (MCP contract, section 2)."""
    limits = bridge.host.limits
    always = {n for n, link in bridge.links.items() if link.server.always_load}
    asker = str(session.options.extra.get("permission_prompt_tool") or "")
    if session.options.print_mode:
        given = bool(session.options.extra.get("mcp_config")) or asker.startswith("mcp__")
        await bridge.wait(limits.start_s if given else limits.connect_wait_s)
    elif os.environ.get("MCP_CONNECTION_NONBLOCKING") == "0":
        await bridge.wait(limits.connect_wait_s)
    elif always:
        await bridge.wait(limits.connect_wait_s, always)


