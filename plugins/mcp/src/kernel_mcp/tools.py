"""The tools of a server as the kernel's own (MCP contract, sections 3 to 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import Tool, ToolContext, ToolError, ToolResult
from kernel_mcp import limits as lim
from kernel_mcp.names import full_name
from kernel_mcp.schemas import cut, encodable, for_check, for_model

if TYPE_CHECKING:
    from kernel_mcp.link import Link

SEARCH = "ToolSearch"


class McpTool(Tool):
    """One tool of one server.

    ``input_schema`` is what we check before a call (types of the first level, required keys); the model is sent the
    server's own schema by ``definition``. ``defer``: the schema may stay away until ``ToolSearch`` brings it.
    """

    max_result_chars = 10_000_000  # cut here, with the hints of section 5, and not again by the kernel

    def __init__(self, link: Link, listed: Any, name: str) -> None:
        meta = listed.meta or {}
        schema, told = for_model(listed.input_schema)
        description = " ".join(filter(None, (cut(listed.description or listed.title or ""), told)))
        hints = listed.annotations
        for attribute, value in {
                "name": name, "description": description, "input_schema": for_check(schema),
                "permission": "user" if meta.get("anthropic/requiresUserInteraction") is True else "ask"}.items():
            setattr(self, attribute, value)
        self.link = link
        self.server_name: str = link.server.name
        self.tool_name: str = listed.name
        self.schema = schema
        self.output_schema_declared = link.lists.output_schemas.get(listed.name, listed.output_schema)
        self.read_only = bool(hints and hints.read_only_hint)
        self.destructive = bool(hints and hints.destructive_hint)
        self.open_world = bool(hints and hints.open_world_hint)
        self.requires_user_interaction = self.permission == "user"
        self.always_load = link.server.always_load or meta.get("anthropic/alwaysLoad") is True
        self.search_hint = str(meta.get("anthropic/searchHint") or "")[:500]
        self.result_chars = _chars(meta.get("anthropic/maxResultSizeChars"))

    @property
    def defer(self) -> bool:
        return not self.always_load

    def definition(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "input_schema": self.schema}

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return self.read_only

    def is_destructive(self, input: dict[str, Any]) -> bool:
        return self.destructive

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        if self.name in context.session.toolbox.deferred:
            raise ToolError("invalid_arguments", f"The schema of {self.name} has not been loaded, so this call was not sent. "
                            f"Load it with {SEARCH} (query \"select:{self.name}\"), then call it again.")

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        from kernel_mcp.background import run
        from kernel_mcp.calls import call_tool
        from kernel_mcp.results import tool_result

        def progress(done: float, total: float | None, message: str | None) -> None:
            facts = {"progress": done, "total": total, "message": message}
            context.progress(**{k: v for k, v in facts.items() if v is not None})

        async def work() -> ToolResult:
            result = await call_tool(self.link, self.tool_name, input, progress=progress, read_only=self.read_only)
            limits = self.link.host.limits
            return tool_result(context.session, context.call_id, self.server_name, result, warn=limits.warn_chars,
                               limit=self.result_chars or limits.result_chars, output_schema=self.output_schema_declared)

        return await run(context, self.link, work)


def _chars(value: Any) -> int | None:
    fits = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return min(value, lim.RESULT_CHARS_CAP) if fits else None


def tools_of(link: Link, *, prefix: bool = True) -> list[McpTool]:
    """The tools that can be used, by name; what cannot is logged, and of two with one name the second is left out."""
    made: dict[str, McpTool] = {}
    for listed in link.lists.tools:
        name = full_name(link.server.name, listed.name, prefix=prefix)
        if name in made:
            link.host.session.notice(f"MCP server {link.server.name!r}: the tools {made[name].tool_name!r} and {listed.name!r} "
                                     f"would both be called {name}; the second is left out")
            continue
        try:
            tool = McpTool(link, listed, name)
            if not encodable(tool.schema):
                raise ValueError("it cannot be sent")
        except (ValueError, RecursionError) as error:
            link.host.log(link, f"the tool {listed.name!r} is left out: its input schema is of no use: {error}")
            continue
        made[name] = tool
    return [made[name] for name in sorted(made)]
