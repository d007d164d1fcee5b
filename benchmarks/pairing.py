"""The rules that the API holds a history to, checked from outside (loop contract, section 5.2)."""

from __future__ import annotations

from typing import Any


def faults(messages: list[dict[str, Any]]) -> list[str]:
    """What the API would refuse about the messages of a request; empty where nothing."""
    found: list[str] = []
    if not messages:
        return ["no message"]
    if messages[0]["role"] != "user":
        found.append("the first message is not the user's")
    if messages[-1]["role"] != "user":
        found.append("the last message is the assistant's")
    seen: set[str] = set()
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        blocks = _blocks(message["content"])
        if not blocks:
            found.append(f"message {number} is empty")
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if results != open_calls:
            found.append(f"message {number} answers {results}, called were {open_calls}")
        if any(b["type"] != "tool_result" for b in blocks[: len(results)]):
            found.append(f"message {number} has something before its results")
        open_calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
        found += [f"the call {c} stands there twice" for c in open_calls if c in seen]
        if len(set(open_calls)) != len(open_calls):
            found.append(f"message {number} has a call id twice")
        seen.update(open_calls)
        if message["role"] == "user" and open_calls:
            found.append(f"message {number} of the user calls")
        if message["role"] == "assistant" and results:
            found.append(f"message {number} of the assistant answers")
        found += [f"message {number} has a blank text" for b in blocks if b["type"] == "text" and not b["text"].strip()]
        if number and messages[number - 1]["role"] == message["role"]:
            found.append(f"messages {number - 1} and {number} have one role")
    if open_calls:
        found.append(f"{open_calls} are open at the end")
    return found


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
