"""Resources of servers: the tools that list and read them, and ``@server:uri`` in prompts (tools contract, section 15)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import Tool, ToolContext, ToolError, ToolResult

if TYPE_CHECKING:
    from kernel import Session
    from kernel_mcp.bridge import Bridge
    from kernel_mcp.link import Link

_MENTION = re.compile(r"(?<![\w@])@([A-Za-z0-9_:.-]+?):([a-z][a-z0-9+.-]*://\S+)")
MOST_MENTIONS = 10


class _ResourceTool(Tool):
    permission = "free"
    max_result_chars = 10_000_000  # cut here

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def links(self, server: str | None) -> list[Link]:
        """The connected servers that have resources; the one that is named.

        :raises ToolError: there is none of that name, or it has no resources.
        """
        found = {n: link for n, link in self.bridge.links.items() if able(link)}
        if server is None:
            return list(found.values())
        if server not in found:
            raise ToolError("not_found", f"No connected MCP server {server!r} has resources. Servers with resources: "
                            f"{', '.join(found) or 'none'}.")
        return [found[server]]

    def result(self, context: ToolContext, value: Any, server: str) -> ToolResult:
        from kernel_mcp.results import fit

        text = msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
        limits = self.bridge.host.limits
        text, path = fit(context.session, context.call_id, server, text, limits.result_chars, limits.warn_chars)
        return ToolResult(content=text, structured=value, truncated=path is not None, spill_path=path)


def able(link: Link) -> bool:
    return link.status == "connected" and getattr(link.client.server_capabilities, "resources", None) is not None


class ListMcpResourcesTool(_ResourceTool):
    name = "ListMcpResourcesTool"
    aliases = ("ListMcpResources",)
    description = "Lists the resources that connected MCP servers offer."
    input_schema = {
        "type": "object",
        "properties": {"server": {"type": "string", "description": "Only the resources of that server."}},
        "additionalProperties": False,
    }

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        listed = [{**_facts(r), "server": link.server.name}
                  for link in self.links(input.get("server")) for r in link.lists.resources]
        return self.result(context, listed, input.get("server") or "all servers")


class ReadMcpResourceTool(_ResourceTool):
    name = "ReadMcpResourceTool"
    aliases = ("ReadMcpResource",)
    description = "Reads one resource of an MCP server. Content that is no text is saved to a file."
    input_schema = {
        "type": "object",
        "properties": {"server": {"type": "string", "description": "The server's name."},
                       "uri": {"type": "string", "description": "The resource's address."}},
        "required": ["server", "uri"], "additionalProperties": False,
    }

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        link = self.links(input["server"])[0]
        contents = await read(link, input["uri"])
        parts = [_part(context.session, f"{context.call_id}-{n}", c) for n, c in enumerate(contents)]
        return self.result(context, {"contents": parts}, input["server"])


class ReadMcpResourceDirTool(_ResourceTool):
    name = "ReadMcpResourceDirTool"
    description = "Lists what lies in a folder among the resources of an MCP server."
    input_schema = {
        "type": "object",
        "properties": {"server": {"type": "string"}, "uri": {"type": "string", "description": "The folder's address."}},
        "required": ["server", "uri"], "additionalProperties": False,
    }

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        link = self.links(input["server"])[0]
        folder = input["uri"].rstrip("/") + "/"
        inside: dict[str, dict[str, Any]] = {}
        for resource in link.lists.resources:
            address = str(resource.uri)
            rest = address.removeprefix(folder)
            if rest == address or not rest:
                continue
            name, slash, _ = rest.partition("/")
            inside.setdefault(folder + name, {"uri": folder + name, "name": name, "mimeType": "inode/directory"} if slash
                              else _facts(resource))
        if not inside:
            raise ToolError("not_found", f"Nothing lies in {input['uri']!r} of the MCP server {input['server']!r}.")
        return self.result(context, {"resources": list(inside.values())}, input["server"])


TOOLS: tuple[type[_ResourceTool], ...] = (ListMcpResourcesTool, ReadMcpResourceTool, ReadMcpResourceDirTool)


async def read(link: Link, uri: str) -> list[Any]:
    """The parts of one resource.

    :raises ToolError: it cannot be read.
    """
    from kernel_mcp.calls import request

    async def send(client: Any, alive: Any) -> Any:
        return await client.read_resource(uri)

    result = await request(link, send, read_only=True)
    return list(result.contents)


def _facts(resource: Any) -> dict[str, Any]:
    facts = {"uri": str(resource.uri), "name": resource.name, "mimeType": resource.mime_type, "description": resource.description}
    return {k: v for k, v in facts.items() if v is not None}


def _part(session: Session, name: str, contents: Any) -> dict[str, Any]:
    from kernel_mcp.results import save

    part: dict[str, Any] = {"uri": str(contents.uri)}
    if contents.mime_type:
        part["mimeType"] = contents.mime_type
    if getattr(contents, "text", None) is not None:
        return {**part, "text": contents.text}
    try:
        return {**part, "blobSavedTo": save(session, name, contents.blob, contents.mime_type)}
    except (ValueError, OSError) as error:
        return {**part, "error": f"the content could not be saved: {error}"}


async def mentioned(bridge: Bridge, session: Session, prompt: str) -> None:
    """Add the content of every ``@server:uri`` of a prompt; one that cannot be read is said."""
    from kernel_mcp.results import contents_text, fit

    limits = bridge.host.limits
    for number, (server, uri) in enumerate(list(dict.fromkeys(_MENTION.findall(prompt)))[:MOST_MENTIONS]):
        link = bridge.links.get(server)
        if link is None:
            continue
        uri = uri.rstrip(".,;:!?)\"'")
        try:
            parts = await read(link, uri)
        except ToolError as error:
            session.notice(f"@{server}:{uri} is not added: {error}")
            continue
        name = f"mention-{session.clock.new_id()}-{number}"
        text = "\n".join(contents_text(session, f"{name}-{n}", c) for n, c in enumerate(parts))
        text, _ = fit(session, name, server, text, limits.result_chars, limits.warn_chars)
        session.add_context(f"Content of the resource {uri} of the MCP server {server}:\n{text}")
