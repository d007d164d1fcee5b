"""What a list shows of a conversation, kept up with every append (sessions contract, section 8).

The names are those that the public SDK's fold uses, so that it can go on with what stands here, and the other way round.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

LAST_WINS = {"customTitle": "custom_title", "aiTitle": "ai_title", "lastPrompt": "last_prompt", "summary": "summary_hint",
             "gitBranch": "git_branch"}
LONGEST = 200
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>")
_NOT_TYPED = re.compile(r"<[a-z][\w-]*>|\[Request interrupted by user")


def fold(before: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The summary with these entries added."""
    data = dict(before)
    for entry in entries:
        data.setdefault("is_sidechain", entry.get("isSidechain") is True)
        if "created_at" not in data and (created := _epoch_ms(entry.get("timestamp"))) is not None:
            data["created_at"] = created
        cwd = entry.get("cwd")
        if "cwd" not in data and isinstance(cwd, str) and cwd:
            data["cwd"] = cwd
        if not data.get("first_prompt_locked"):
            _first_prompt(data, entry)
        for field, name in LAST_WINS.items():
            if isinstance(entry.get(field), str):
                data[name] = entry[field]
        if entry.get("type") == "tag":
            data["tag"] = entry.get("tag")
            if not isinstance(data["tag"], str) or not data["tag"]:
                del data["tag"]
    return data


def _first_prompt(data: dict[str, Any], entry: dict[str, Any]) -> None:
    message = entry.get("message")
    if entry.get("type") != "user" or entry.get("isMeta") or entry.get("isCompactSummary") or not isinstance(message, dict):
        return
    content = message.get("content")
    blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    if any(b.get("type") == "tool_result" for b in blocks):
        return
    texts = [content] if isinstance(content, str) else [b["text"] for b in blocks if isinstance(b.get("text"), str)]
    for text in (t.replace("\n", " ").strip() for t in texts):
        if command := _COMMAND.search(text):
            data.setdefault("command_fallback", command[1])
        elif text and not _NOT_TYPED.match(text):
            data["first_prompt"] = text if len(text) <= LONGEST else f"{text[:LONGEST].rstrip()}\u2026"
            data["first_prompt_locked"] = True
            return


def _epoch_ms(stamp: Any) -> int | None:
    try:
        return int(datetime.fromisoformat(stamp).timestamp() * 1000)
    except (TypeError, ValueError, OverflowError):
        return None
