"""How full the window is, in tokens (context contract, sections 8.1 and 9).

The basis is what the last answer reported; what was added since is estimated. The work does not grow with the history.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from kernel import Block, Session, Settings, env_switch

RESERVE = 20_000
"""The most that is kept free for the answer."""
BUFFER = 13_000
WARNING = 20_000
"""So many tokens before a compaction the person is told."""
IMAGE = 1_600
LEAST = 100_000
"""Tokens; no smaller window can be asked for by a setting."""
MILLION = 1_000_000


def estimate(blocks: Iterable[Block]) -> int:
    """Tokens of content blocks: a quarter of the characters of text, half of those of JSON."""
    return sum(_of(block) for block in blocks)


def _of(block: Block) -> int:
    kind = block.get("type")
    if kind == "text":
        return len(str(block.get("text", ""))) // 4
    if kind == "tool_result":
        content = block.get("content")
        return len(content) // 4 if isinstance(content, str) else estimate(b for b in content or () if isinstance(b, dict))
    if kind == "image":
        return IMAGE
    if kind == "document":
        return len(json.dumps(block, default=str)) // 12
    if kind in ("thinking", "redacted_thinking"):
        return len(str(block.get("thinking") or block.get("data") or "")) // 4
    return len(json.dumps(block, default=str)) // 2


def fixed(session: Session) -> dict[str, int]:
    """Tokens that every request holds whatever was said: the system prompt and the tools."""
    tools = session.toolbox.definitions
    kept = session.plugin_state.get("compactor.fixed")
    if kept is None or kept[0] is not tools or kept[1] is not session.system:
        kept = (tools, session.system, {"system prompt": estimate(session.system), "tools": len(json.dumps(tools)) // 2})
        session.plugin_state["compactor.fixed"] = kept
    parts: dict[str, int] = kept[2]
    return parts


def used(session: Session) -> int:
    """Tokens that the next request would hold."""
    messages = session.history.messages
    if session.measured is None:
        return sum(fixed(session).values()) + sum(estimate(blocks) for _, blocks in messages)
    usage, known = session.measured
    return usage.prompt_tokens + usage.output_tokens + sum(estimate(blocks) for _, blocks in messages[known:])


def window(session: Session) -> int:
    """The window that counts: the model's, or the lower one that was asked for."""
    whole = session.model_info.context_window
    if env_switch("CLAUDE_CODE_DISABLE_1M_CONTEXT"):
        whole = min(whole, 200_000)
    given = _number(os.environ.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", ""))
    if given:
        return min(whole, given)
    flag = session.options.extra.get("autocompact")
    asked = _number(flag if flag is not None else session.settings.get("autoCompactWindow"))
    return min(whole, asked) if asked >= LEAST else whole


def _number(value: Any) -> int:
    """A positive whole number, also as text; 0 where it is none."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0


def problems(settings: Settings, flag: Any) -> list[str]:
    """Settings that say nothing usable; they do not count."""
    wrong = [f"{where}: {value!r} does not count; it is 'auto' or a number of tokens, {LEAST:,} to {MILLION:,}"
             for where, value in (("--autocompact", flag), ("settings, autoCompactWindow", settings.get("autoCompactWindow")))
             if value not in (None, "auto") and _number(value) < LEAST]
    on = settings.get("autoCompactEnabled")
    if on is not None and not isinstance(on, bool):
        wrong.append(f"settings, autoCompactEnabled: {on!r} does not count; it is true or false")
    return wrong


def effective(session: Session) -> int:
    """The window without the room for an answer."""
    return window(session) - min(session.request().max_tokens, RESERVE)


def trigger(session: Session) -> int:
    """Where an automatic compaction begins."""
    point = effective(session) - BUFFER
    percent = _number(os.environ.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", ""))
    if 0 < percent <= 100:
        point = min(point, window(session) * percent // 100)
    return max(point, 1)


def is_off() -> bool:
    """No compaction at all, not even a manual one."""
    return os.environ.get("DISABLE_COMPACT", "") not in ("", "0", "false")


def is_automatic(session: Session) -> bool:
    """Whether compaction happens by itself."""
    off = os.environ.get("DISABLE_AUTO_COMPACT", "") not in ("", "0", "false")
    return not is_off() and not off and session.settings.get("autoCompactEnabled") is not False
