"""``--permission-prompt-tool mcp__server__tool``: a server's tool answers permission questions (headless contract, section 6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel import PermissionCall, Session, Verdict

NEEDS_PERSON = "MCP tool requires user interaction; not supported via --permission-prompt-tool"


class PromptTool:
    """The session's asker. What cannot be read is a denial."""

    def __init__(self, session: Session, name: str) -> None:
        self._session = session
        self._name = name

    async def __call__(self, call: PermissionCall, verdict: Verdict, tool_use_id: str) -> dict[str, Any]:
        from kernel_mcp.calls import call_tool
        from kernel_mcp.tools import McpTool

        tool = self._session.toolbox.by_name.get(self._name)
        if not isinstance(tool, McpTool):
            known = sorted(n for n, t in self._session.toolbox.by_name.items() if isinstance(t, McpTool))
            return deny(f"Error: MCP tool {self._name} (passed via --permission-prompt-tool) not found. Available MCP tools: "
                        f"{', '.join(known) or 'none'}")
        result = await call_tool(tool.link, tool.tool_name, {
            "tool_name": call.tool.name, "input": call.input, "tool_use_id": tool_use_id})
        text = next((block.text for block in result.content if block.type == "text"), "")
        answer = read(text) if not result.is_error else deny(f"the permission tool failed: {text[:500]}")
        if answer["behavior"] == "allow" and getattr(call.tool, "requires_user_interaction", False):
            return deny(NEEDS_PERSON)
        return answer


def read(text: str) -> dict[str, Any]:
    """The answer in a text block: ``{"behavior": "allow", "updatedInput"?}`` or ``{"behavior": "deny", "message"}``."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or answer.get("behavior") not in ("allow", "deny"):
        return deny("the answer of the permission tool cannot be read")
    if answer["behavior"] == "deny":
        return deny(str(answer.get("message") or "the permission tool refused"))
    given = answer.get("updatedInput")
    return {"behavior": "allow", "updatedInput": given} if isinstance(given, dict) else {"behavior": "allow"}


def deny(message: str) -> dict[str, Any]:
    return {"behavior": "deny", "message": message}
