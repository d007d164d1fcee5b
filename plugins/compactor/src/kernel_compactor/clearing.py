"""The second stage: old tool results give way to a line that says where they are (context contract, sections 7 and 8.2)."""

from __future__ import annotations

import os
import re
from typing import Any

from msgspec import Struct

from kernel import Block, Session
from kernel_compactor.counting import estimate

KEPT_BATCHES = 3
"""Batches at the end whose results are never cleared."""
SMALL = 1_000
"""Characters; what is shorter stays, since the line in its place would save nothing."""
MARK = "[Cleared to make room: the result of "


class Cleared(Struct):
    """A shorter history. ``saved`` is in tokens; ``files`` are where whole results lie now."""

    messages: list[Any]
    saved: int
    results: int
    files: list[str]


def clear(session: Session, wanted: int) -> Cleared | None:
    """Clear old results, oldest first, until about ``wanted`` tokens are saved; ``None`` where that cannot be reached.

    A block keeps its place and its id, so every call keeps its result.
    """
    messages = session.history.messages
    batches = [n for n, (role, blocks) in enumerate(messages)
               if role == "user" and any(b.get("type") == "tool_result" for b in blocks)]
    names = {b.get("id"): str(b.get("name")) for _, blocks in messages for b in blocks if b.get("type") == "tool_use"}
    old = set(batches[:-KEPT_BATCHES])
    large = [(n, m) for n in sorted(old) for m, block in enumerate(messages[n][1]) if _is_large(block)]
    if sum(estimate([messages[n][1][m]]) for n, m in large) < wanted:
        return None
    changed: dict[int, list[Block]] = {}
    done = Cleared(messages=[], saved=0, results=0, files=[])
    for n, m in large:
        if done.saved >= wanted:
            break
        blocks = changed.setdefault(n, list(messages[n][1]))
        text, file = _stub(session, blocks[m], names.get(blocks[m].get("tool_use_id"), "a tool"))
        done.saved += estimate([blocks[m]]) - len(text) // 4
        blocks[m] = {**blocks[m], "content": text}
        done.results += 1
        done.files += [file] if file else []
    done.messages = [(role, changed.get(n, blocks)) for n, (role, blocks) in enumerate(messages)]
    return done


def _is_large(block: Block) -> bool:
    if block.get("type") != "tool_result":
        return False
    content = block.get("content")
    if isinstance(content, str):
        return len(content) > SMALL and not content.startswith(MARK)
    return estimate([block]) * 4 > SMALL


def _spilled(text: str, call: str) -> str | None:
    """The file that holds the whole of a result which was cut when it was made. A path that a tool made up is none."""
    name = re.sub(r"[^\w-]", "-", call)[:100]
    found = re.search(rf"\(output cut: \d+ characters in all; the whole output is in (/[^\n]+/{re.escape(name)}\.txt)\)", text)
    return found[1] if found and os.path.isfile(found[1]) else None


def _stub(session: Session, block: Block, tool: str) -> tuple[str, str | None]:
    content = block.get("content")
    text = content if isinstance(content, str) else "\n".join(
        str(b.get("text") or f"({b.get('type')})") for b in content or () if isinstance(b, dict))
    path = _spilled(text, str(block.get("tool_use_id")))
    where = f"is in {path}"
    if path is None:
        path, where = session.kept(f"cleared-{block.get('tool_use_id')}", text)
    return f"{MARK}{tool}, {len(text):,} characters; the whole {where}]", path
