"""Fill the registry behind successful calls of tools that find something."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from kernel import Middleware, Tool, ToolContext, ToolResult, ToolRunner
from kernel_evidence.book import EXCERPT_CHARS, Evidence, SourceType, Trust, book, hash_of, lines_of, turn_of

MOST = 20
"""Pieces of evidence that one call may bring."""


class Find(NamedTuple):
    """What a tool found: of which kind, where, which text."""

    source_type: SourceType
    uri: str
    locator: dict[str, Any]
    text: str
    trust: Trust
    content_hash: str = ""


class Collect(Middleware):
    name = "evidence"

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        result = await next(tool, input, context)
        if result.status not in ("success", "partial") or tool.internal:
            return result
        try:
            finds = list(_finds(tool, input, result, context))[:MOST]
        except Exception as error:  # a tool's output of an unknown shape is no evidence, and no fault of the call
            context.session.debug(f"plugin evidence: {tool.name}: {type(error).__name__}: {error}")
            return result
        if not finds:
            return result
        session = context.session
        kept = book(session)
        ids = []
        for find in finds:
            trust = find.trust if session.parent is None else "secondary" if find.trust == "primary" else find.trust
            made = Evidence(
                evidence_id=kept.new_id(),
                turn_id=turn_of(session),
                source_type=find.source_type,
                uri=find.uri,
                locator=find.locator,
                content_hash=find.content_hash or hash_of(find.text),
                excerpt=find.text[:EXCERPT_CHARS],
                retrieved_at=session.clock.timestamp(),
                tool_call_id=context.call_id,
                trust=trust,
            )
            kept.add(made)
            ids.append(made.evidence_id)
        told = msgspec.structs.replace(result, evidence_ids=(*result.evidence_ids, *ids))
        if session.settings.own("kernel.evidence.tags") is not True:
            return told
        tag = f"[{']['.join(ids)}]"
        content = told.content
        more = f"{content}\n{tag}" if isinstance(content, str) else [*content, {"type": "text", "text": tag}]
        return msgspec.structs.replace(told, content=more)


def _finds(tool: Tool, input: dict[str, Any], result: ToolResult, context: ToolContext) -> Iterator[Find]:
    special = _KINDS.get(tool.name)
    if special is not None:
        yield from special(input, result, context)
    elif tool.name.startswith("mcp__"):
        yield Find("mcp_tool", tool.name, {}, _text(result), "untrusted")


def _read(input: dict[str, Any], result: ToolResult, context: ToolContext) -> Iterator[Find]:
    file = result.structured["file"]
    if result.structured.get("type") == "text" and file.get("content"):
        start = int(file.get("startLine", 1))
        lines = {"start_line": start, "end_line": start + int(file.get("numLines", 1)) - 1}
        path = str(file["filePath"])
        try:  # what is shown of a very long line is cut; the hash is that of the whole
            whole = lines_of(Path(path), lines["start_line"], lines["end_line"])
        except OSError:
            whole = None
        hashed = "" if whole is None else hash_of(whole)
        yield Find("file", _short(path, context), lines, str(file["content"]), "primary", hashed)


def _grep(input: dict[str, Any], result: ToolResult, context: ToolContext) -> Iterator[Find]:
    if result.structured.get("mode") == "content":
        yield Find(
            "search_match",
            str(input.get("path") or "."),
            {"pattern": str(input.get("pattern"))},
            str(result.structured["content"]),
            "primary",
        )


def _bash(input: dict[str, Any], result: ToolResult, context: ToolContext) -> Iterator[Find]:
    text = _text(result)
    if text.strip():
        yield Find("command", str(input.get("command"))[:500], {}, text, "primary")


def _fetch(input: dict[str, Any], result: ToolResult, context: ToolContext) -> Iterator[Find]:
    yield Find("web_page", str(input.get("url")), {}, _text(result), "secondary")


def _search(input: dict[str, Any], result: ToolResult, context: ToolContext) -> Iterator[Find]:
    for entry in result.structured["results"]:
        for hit in entry.get("content", ()) if isinstance(entry, dict) else ():
            if isinstance(hit, dict) and hit.get("url"):
                yield Find(
                    "web_search",
                    str(hit["url"]),
                    {"query": str(input.get("query"))},
                    str(hit.get("title") or hit["url"]),
                    "secondary",
                )


def _resource(input: dict[str, Any], result: ToolResult, context: ToolContext) -> Iterator[Find]:
    yield Find("mcp_resource", str(input.get("uri")), {"server": str(input.get("server"))}, _text(result), "untrusted")


def _agent(input: dict[str, Any], result: ToolResult, context: ToolContext) -> Iterator[Find]:
    if isinstance(result.structured, dict) and result.structured.get("status") == "completed":
        yield Find(
            "subagent", str(result.structured.get("agentId") or input.get("subagent_type")), {}, _text(result), "secondary"
        )


_KINDS: dict[str, Callable[[dict[str, Any], ToolResult, ToolContext], Iterator[Find]]] = {
    "Read": _read,
    "Grep": _grep,
    "Bash": _bash,
    "WebFetch": _fetch,
    "WebSearch": _search,
    "ReadMcpResourceTool": _resource,
    "Agent": _agent,
}


def _text(result: ToolResult) -> str:
    if isinstance(result.content, str):
        return result.content
    return "\n".join(str(b.get("text", "")) for b in result.content if b.get("type") == "text")


def _short(path: str, context: ToolContext) -> str:
    root = os.path.join(context.session.root.project_root, "")  # of a subagent elsewhere the whole path is kept
    return path.removeprefix(root)
