"""``get_context_usage``: what fills the window (SDK contract, 4.6). Parts are estimates; the total is measured where known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel import Block, Session

BUFFER = 33_000
"""Tokens below the window at which a compaction begins, as the plugin ``compactor`` has it without settings of its own."""


def usage(session: Session) -> dict[str, Any]:
    memory = _tokens("".join(s.text for s in session.sections if s.layer == "instructions"))
    system = sum(_tokens(str(block.get("text", ""))) for block in session.system)
    tools = [{"name": str(d.get("name")), "tokens": _tokens(json.dumps(d, default=str), 2)} for d in session.toolbox.definitions]
    mcp = [{"name": t["name"], "serverName": str(t["name"]).split("__")[1], "tokens": t["tokens"], "isLoaded": True}
           for t in tools if str(t["name"]).count("__") > 1 and str(t["name"]).startswith("mcp__")]
    built_in = [t for t in tools if t["name"] not in {m["name"] for m in mcp}]
    parts = {"system": system, "tools": _sum(built_in), "mcp": _sum(mcp), "memory": memory}
    kinds = _by_kind(session)
    estimated = sum(parts.values()) + max(sum(kinds.values()) - memory, 0)  # the files stand in the first message
    measured = session.measured[0] if session.measured else None
    total = measured.prompt_tokens + measured.output_tokens if measured else estimated
    parts = {name: tokens * total // max(estimated, 1) for name, tokens in parts.items()}  # shares of what was measured
    window = session.model_info.context_window
    on = session.settings.get("autoCompactEnabled") is not False and session.harness.compactor is not None
    rows = [("System prompt", parts["system"], "promptBorder"), ("System tools", parts["tools"], "inactive"),
            ("MCP tools", parts["mcp"], "cyan"), ("Memory files", parts["memory"], "claude"),
            ("Messages", max(total - sum(parts.values()), 0), "purple"), ("Free space", max(window - total, 0), "subtle")]
    told = {
        "categories": [{"name": name, "tokens": tokens, "color": color} for name, tokens, color in rows
                       if tokens or name in ("System prompt", "Messages", "Free space")],
        "totalTokens": total, "maxTokens": window, "rawMaxTokens": window, "percentage": round(100 * total / window, 1),
        "model": session.model_info.id, "isAutoCompactEnabled": on, "memoryFiles": _memory_files(session), "mcpTools": mcp,
        "agents": [], "gridRows": [], "systemTools": built_in,
        "deferredBuiltinTools": [{"name": n, "tokens": 0} for n in session.toolbox.deferred if not n.startswith("mcp__")],
        "systemPromptSections": [{"name": s.name, "tokens": _tokens(s.text)} for s in session.sections
                                 if s.layer != "instructions"],
        "messageBreakdown": kinds, "apiUsage": _api(session)}
    if on:
        told["autoCompactThreshold"] = max(window - BUFFER, 1)
    return told


def _tokens(text: str, per_token: int = 4) -> int:
    return -(-len(text) // per_token)


def _sum(entries: list[dict[str, Any]]) -> int:
    return sum(int(entry["tokens"]) for entry in entries)


def _by_kind(session: Session) -> dict[str, int]:
    kinds = {"userMessageTokens": 0, "assistantMessageTokens": 0, "toolCallTokens": 0, "toolResultTokens": 0}
    for role, blocks in session.history.messages:
        for block in blocks:
            kinds[_kind(role, block)] += _tokens(json.dumps(block, default=str) if block.get("type") != "text"
                                                 else str(block.get("text", "")))
    return kinds


def _kind(role: str, block: Block) -> str:
    kind = block.get("type")
    if kind == "tool_result":
        return "toolResultTokens"
    if kind == "tool_use":
        return "toolCallTokens"
    return "userMessageTokens" if role == "user" else "assistantMessageTokens"


def _memory_files(session: Session) -> list[dict[str, Any]]:
    """The files of the plugin ``memory``, where it is there."""
    found = []
    for file in getattr(session.plugin_state.get("memory"), "first", None) or ():
        path, text = getattr(file, "path", None), getattr(file, "text", "")
        if path:
            found.append({"path": str(path), "type": str(getattr(file, "kind", "") or "Project"),
                          "tokens": _tokens(str(text))})
    return found


def _api(session: Session) -> dict[str, int] | None:
    if session.measured is None:
        return None
    used = session.measured[0]
    return {name: getattr(used, name) for name in (
        "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")}
