"""What happens, a line each, for a person who looks on."""

from __future__ import annotations

import json
from typing import Any, TextIO

from kernel import AssistantMessage, Output, SystemMessage, UserMessage

WIDTH = 110


class Printer:
    """Takes the messages of a run in order."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._names: dict[str, str] = {}

    def line(self, text: str) -> None:
        print(text, file=self._out, flush=True)

    def take(self, message: Output) -> None:
        if isinstance(message, AssistantMessage):
            for block in message.message["content"]:
                self._block(block)
        elif isinstance(message, UserMessage):
            for block in message.message["content"]:
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    self._result(block)
        elif isinstance(message, SystemMessage) and message.subtype == "informational":
            self.line(f"! {message.data.get('content', '')}")

    def _block(self, block: dict[str, Any]) -> None:
        if block.get("type") == "text":
            self.line(block["text"])
        elif block.get("type") == "tool_use":
            self._names[block["id"]] = block["name"]
            self.line(_cut(f"  * {block['name']} {json.dumps(block['input'], ensure_ascii=False)}"))

    def _result(self, block: dict[str, Any]) -> None:
        content = block.get("content", "")
        text = content if isinstance(content, str) else " ".join(str(b.get("text", "")) for b in content)
        first, *more = text.strip().splitlines() or [""]
        mark = "refused or failed: " if block.get("is_error") else ""
        rest = f"  (+{len(more)} lines)" if more else ""
        self.line(_cut(f"    {self._names.get(block['tool_use_id'], '?')} -> {mark}{first}", WIDTH - len(rest)) + rest)


def _cut(text: str, width: int = WIDTH) -> str:
    return text if len(text) <= width else text[:width - 1] + "…"
