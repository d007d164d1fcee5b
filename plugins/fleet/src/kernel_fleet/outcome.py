"""What a run left behind: its messages as JSON lines, read back. The file is the truth, also where the run was killed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

TRANSIENT = ("rate_limit", "overloaded", "server_error", "unknown")
"""Classes of a failed request that may go well later. ``unknown`` without a status is a broken connection."""


class Outcome(Struct, kw_only=True, omit_defaults=True):
    """``answered``: the model had answered, so the session can be resumed. ``result``: there is a result message."""

    answered: bool = False
    result: bool = False
    ok: bool = False
    transient: bool = False
    subtype: str = ""
    terminal_reason: str = ""
    text: str = ""
    turns: int = 0
    tool_calls: int = 0
    refused: int = 0
    run_ms: int = 0
    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    session: str = ""
    structured: Any = None


def read(path: Path) -> Outcome:
    """The messages of one run. A torn last line counts for nothing; the last result counts."""
    out = Outcome()
    kind = ""
    try:
        file = path.open("rb")
    except OSError:
        return out
    with file:
        for line in file:
            message = _object(line)
            if message.get("type") == "assistant" and not message.get("parent_tool_use_id"):
                kind = str(message.get("error") or "")
                out.answered = out.answered or not kind
                out.session = str(message.get("session_id", ""))
                out.tool_calls += sum(1 for block in _content(message) if block.get("type") == "tool_use")
            elif message.get("type") == "result":
                _take(out, message, kind)
    return out


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _content(message: dict[str, Any]) -> list[dict[str, Any]]:
    inner = message.get("message")
    content = inner.get("content") if isinstance(inner, dict) else None
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _take(out: Outcome, message: dict[str, Any], kind: str) -> None:
    given = message.get("usage")
    usage: dict[str, Any] = given if isinstance(given, dict) else {}
    errors = message.get("errors")
    out.result = True
    out.subtype = str(message.get("subtype", ""))
    out.terminal_reason = str(message.get("terminal_reason", ""))
    out.ok = out.subtype == "success" and message.get("is_error") is False
    out.text = str(message["result"]) if isinstance(message.get("result"), str) else "; ".join(map(str, errors or ()))
    status = message.get("api_error_status")
    out.transient = out.terminal_reason == "api_error" and kind in TRANSIENT and (kind != "unknown" or status is None)
    out.turns += _number(message.get("num_turns"), int)
    out.run_ms += _number(message.get("duration_ms"), int)
    out.cost_usd = _number(message.get("total_cost_usd"), float)  # of the whole process
    out.refused = len(message.get("permission_denials") or ())
    out.input_tokens += sum(_number(usage.get(f"{name}input_tokens"), int) for name in ("", "cache_creation_", "cache_read_"))
    out.output_tokens += _number(usage.get("output_tokens"), int)
    out.session = str(message.get("session_id", "")) or out.session
    out.structured = message.get("structured_output")


def _number(value: Any, kind: type) -> Any:
    return kind(value) if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) else kind(0)
