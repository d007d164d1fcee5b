"""``WaitForMcpServers``: offered while servers connect and tool search is off (MCP contract, 8.6); and ``/mcp``, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import Expansion, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from kernel import Session
    from kernel_mcp.bridge import Bridge

LONGEST_S = 60.0


class WaitForMcpServers(Tool):
    name = "WaitForMcpServers"
    description = "Waits until MCP servers that still connect are ready, and says how each of them is."
    permission = "free"
    polling = True
    input_schema = {
        "type": "object",
        "properties": {
            "servers": {"type": "array", "items": {"type": "string"}, "description": "Only these; all of them by default."},
            "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_S, "description": "Seconds at most (30)."},
        },
        "additionalProperties": False,
    }

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        names = set(input["servers"]) if input.get("servers") else None
        await self._bridge.wait(float(input.get("timeout") or 30.0), names)
        self._bridge.show(context.session)
        told = [entry for entry in self._bridge.status() if names is None or entry["name"] in names]
        unknown = sorted((names or set()) - {entry["name"] for entry in told})
        lines = [f"{entry['name']}: {entry['status']}" for entry in told]
        lines += [f"{name}: there is no such server" for name in unknown]
        return ToolResult(content="\n".join(lines) or "There are no MCP servers.", structured={"servers": told})


class McpReport:
    """``/mcp``: the servers of this session, as text."""

    name = "mcp"
    description = "Shows the MCP servers of this session."
    argument_hint = ""
    kind = ""
    source: str | None = None

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    async def expand(self, session: Session, args: str) -> Expansion:
        lines = []
        for entry in self._bridge.report():
            tools = f", {len(entry['tools'])} tools" if entry["status"] == "connected" else ""
            error = f": {entry['error']}" if entry.get("error") else ""
            lines.append(f"{entry['name']} ({entry['scope']}): {entry['status']}{tools}{error}")
        return Expansion(text="\n".join(lines) or "No MCP servers are configured.")
