"""A conversation for people and for other programs."""

from __future__ import annotations

import json
from typing import Any

from kernel_sessions.chain import Chain, is_prompt
from kernel_sessions.find import Loaded

LONGEST = 2_000
"""Characters of a tool's result that a person is shown."""


def conversation(loaded: Loaded) -> dict[str, Any]:
    """The active conversation, what compactions closed included, as JSON."""
    entries = _entries(loaded)
    return {"session": loaded.session_id, "title": loaded.journal.fact("custom-title", "ai-title"),
            "tag": loaded.journal.fact("tag"), "cwd": next((e["cwd"] for e in entries if "cwd" in e), None),
            "messages": [{"type": e["type"], "uuid": e["uuid"], "timestamp": e.get("timestamp"),
                          "content": e["message"]["content"],
                          **({"model": e["message"]["model"]} if "model" in e["message"] else {}),
                          **({"meta": True} if e.get("isMeta") else {}),
                          **({"summary": True} if e.get("isCompactSummary") else {})} for e in entries]}


def as_json(loaded: Loaded) -> str:
    return json.dumps(conversation(loaded), indent=1, ensure_ascii=False)


def as_lines(loaded: Loaded) -> str:
    """The entries as they are recorded, without branches, progress and damaged lines."""
    return "\n".join(json.dumps(e, ensure_ascii=False, separators=(",", ":")) for e in _entries(loaded, messages=False))


def as_text(loaded: Loaded) -> str:
    parts = []
    for entry in _entries(loaded):
        if entry.get("isMeta"):
            continue
        who = "summary" if entry.get("isCompactSummary") else "you" if is_prompt(entry) else entry["type"]
        text = _shown(entry, LONGEST)
        if text:
            parts.append(f"[{who}] {text}")
    return "\n\n".join(parts)


def as_markdown(loaded: Loaded) -> str:
    """One heading for each prompt and each answer; calls and results as fenced blocks."""
    title = loaded.journal.fact("custom-title", "ai-title") or f"Session {loaded.session_id}"
    parts = [f"# {title}"]
    before = ""
    for entry in _entries(loaded):
        if entry.get("isMeta"):
            continue
        head = "## Summary" if entry.get("isCompactSummary") else "## Prompt" if is_prompt(entry) else "## Answer"
        if head != before and (entry["type"] == "assistant" or head != "## Answer"):
            parts.append(head)
            before = head
        parts += _markdown(entry["message"]["content"])
    return "\n\n".join(parts) + "\n"


def _entries(loaded: Loaded, *, messages: bool = True) -> list[dict[str, Any]]:
    stretches = [*loaded.graph.before_compaction(loaded.chain), loaded.chain.lines]
    if messages:
        return [entry for lines in stretches for entry in Chain(lines, None).messages()]
    return [line.entry for lines in stretches for line in lines if line.entry["type"] != "progress"]


def _shown(entry: dict[str, Any], longest: int) -> str:
    content = entry["message"]["content"]
    return content if isinstance(content, str) else "\n".join(_block(b, longest) for b in content if isinstance(b, dict)).strip()


def _block(block: dict[str, Any], longest: int) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "tool_use":
        return f"{block.get('name')} {json.dumps(block.get('input'), ensure_ascii=False)}"
    if kind == "tool_result":
        text = _result(block)
        return text if len(text) <= longest else f"{text[:longest]}\n... ({len(text):,} characters in all)"
    return "" if kind in ("thinking", "redacted_thinking") else f"({kind})"


def _result(block: dict[str, Any]) -> str:
    content = block.get("content")
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(b.get("text") or f"({b.get('type')})") for b in blocks if isinstance(b, dict))


def _markdown(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = []
    for block in content:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            parts.append(str(block.get("text", "")))
        elif kind == "tool_use":
            parts.append(_fenced(json.dumps(block.get("input"), indent=1, ensure_ascii=False), f"json  {block.get('name')}"))
        elif kind == "tool_result":
            parts.append(_fenced(_result(block), "text  result" + (" (error)" if block.get("is_error") else "")))
    return parts


def _fenced(text: str, info: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{info}\n{text}\n{fence}"
