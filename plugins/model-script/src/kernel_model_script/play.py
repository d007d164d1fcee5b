"""From a turn of a script to the events that a real provider would have streamed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from kernel import Block, History, StreamEvent, text_of
from kernel_model_script.script import TEMPLATE, Turn, When

WORDS = re.compile(r"\S*\s*(?:\S+\s*)?")
"""A piece of text: up to two words with the space behind them."""
INPUT_PIECE = 24
REMINDER = "<system-reminder>"


def said(blocks: list[Block]) -> str:
    """What a person said in a message: its text without what the host added."""
    return text_of([b for b in blocks if b.get("type") == "text" and not str(b.get("text", "")).startswith(REMINDER)])


def first_prompt(history: History) -> str:
    return next((text for role, blocks in history.messages if role == "user" and (text := said(blocks))), "")


def last_prompt(history: History) -> str:
    return next((text for role, blocks in reversed(history.messages) if role == "user" and (text := said(blocks))), "")


def last_result(history: History) -> str:
    """The text of the last tool result."""
    for role, blocks in reversed(history.messages):
        for block in reversed(blocks) if role == "user" else ():
            if block.get("type") == "tool_result":
                content = block.get("content", "")
                return text_of(content) if isinstance(content, str | list) else ""
    return ""


def fits(when: When, history: History) -> bool:
    return ((when.contains is None or when.contains in last_prompt(history))
            and (when.first_contains is None or when.first_contains in first_prompt(history)))


def fill(value: Any, history: History) -> Any:
    """The value with its templates replaced."""
    if isinstance(value, str):
        if "{{" not in value:
            return value
        return TEMPLATE.sub(lambda found: (last_result if found[1] == "last_result" else last_prompt)(history), value)
    if isinstance(value, dict):
        return {k: fill(v, history) for k, v in value.items()}
    return [fill(v, history) for v in value] if isinstance(value, list) else value


def blocks_of(turn: Turn, history: History, prefix: str) -> list[Block]:
    """The content blocks of a turn. A ``raw_input`` stays beside ``input`` until it is streamed.

    :param prefix: begins the ids of calls that have none of their own.
    """
    if turn.blocks is not None:
        blocks: list[Block] = fill(turn.blocks, history)
        return blocks
    blocks = []
    if turn.thinking is not None:
        blocks.append({"type": "thinking", "thinking": fill(turn.thinking, history), "signature": turn.signature})
    if turn.text is not None:
        blocks.append({"type": "text", "text": fill(turn.text, history)})
    for number, call in enumerate(turn.calls, 1):
        block: Block = {"type": "tool_use", "id": call.id or f"{prefix}_{number}", "name": call.tool,
                        "input": fill(call.input, history)}
        if call.raw_input is not None:
            block["raw_input"] = fill(call.raw_input, history)
        blocks.append(block)
    return blocks


def events_of(turn: Turn, blocks: list[Block], *, id: str, model: str, prompt_tokens: int) -> Iterator[StreamEvent]:
    """The whole stream of an answer, text and input in pieces."""
    calls = any(b.get("type") == "tool_use" for b in blocks)
    produced = sum(len(json.dumps(b, ensure_ascii=False)) for b in blocks) // 4 + 1
    usage = {"input_tokens": prompt_tokens, "output_tokens": produced, "cache_creation_input_tokens": 0,
             "cache_read_input_tokens": 0, **turn.usage}
    yield {"type": "message_start", "message": {
        "id": id, "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {**usage, "output_tokens": min(1, usage["output_tokens"])}}}
    for index, block in enumerate(blocks):
        start, deltas = _parts(block)
        yield {"type": "content_block_start", "index": index, "content_block": start}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = turn.stop_reason or ("stop_sequence" if turn.stop_sequence else "tool_use" if calls else "end_turn")
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": turn.stop_sequence},
           "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _parts(block: Block) -> tuple[Block, list[dict[str, Any]]]:
    """How a block starts, and the deltas that complete it. A block of another type starts complete."""
    kind = block.get("type")
    if kind == "text":
        return {**block, "text": ""}, [{"type": "text_delta", "text": p} for p in pieces(str(block.get("text", "")))]
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(str(block.get("thinking", "")))]
        return ({**block, "thinking": "", "signature": ""},
                [*deltas, {"type": "signature_delta", "signature": block.get("signature", "")}])
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        start = {k: v for k, v in block.items() if k != "raw_input"}
        raw = str(block["raw_input"]) if "raw_input" in block else json.dumps(block.get("input") or {}, ensure_ascii=False)
        cuts = range(0, len(raw), INPUT_PIECE)
        return {**start, "input": {}}, [{"type": "input_json_delta", "partial_json": raw[c:c + INPUT_PIECE]} for c in cuts]
    return block, []


def pieces(text: str) -> list[str]:
    return [piece for piece in WORDS.findall(text) if piece]
