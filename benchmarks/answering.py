"""A model that answers at once, and a tool that finds what it is given: for measures of what the harness itself does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from kernel import ModelInfo, Tool, ToolContext, ToolResult
from kernel.testing import text

WINDOW = 60_000


class Answering:
    """A model that answers without looking at more than the size of what it is asked; ``next_turn`` gives its blocks."""

    name = "anthropic"

    def __init__(self, window: int = WINDOW) -> None:
        self.window = window
        self.count = self.summaries = 0
        self.last: Any = None

    def resolve(self, model: str) -> ModelInfo | None:
        return ModelInfo(id=model, context_window=self.window)

    def next_turn(self) -> list[dict[str, Any]]:
        return [text("done")]

    def looks_at(self, request: Any) -> None:
        """A request of the conversation, before it is answered."""

    async def stream(self, request: Any) -> AsyncIterator[dict[str, Any]]:
        if "Sum up this conversation" in str(request.history.messages[-1][1][-1].get("text", ""))[:80]:
            self.summaries += 1
            blocks = [text("<summary>Work was done.</summary>")]
        else:
            self.looks_at(request)
            blocks = self.next_turn()
        self.count += 1
        yield {"type": "message_start", "message": {"id": f"msg_{self.count}", "model": request.model,
                                                    "usage": {"input_tokens": self.size(request), "output_tokens": 1}}}
        for index, block in enumerate(blocks):
            raw = json.dumps(block["input"]) if block["type"] == "tool_use" else block["text"]
            first = {**block, "input": {}, "id": f"call_{self.count}_{index}"} if block["type"] == "tool_use" else text("")
            delta = {"type": "input_json_delta", "partial_json": raw} if block["type"] == "tool_use" else {
                "type": "text_delta", "text": raw}
            yield {"type": "content_block_start", "index": index, "content_block": first}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        reason = "tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn"
        yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}}
        yield {"type": "message_stop"}

    def size(self, request: Any) -> int:
        return 10

    async def aclose(self) -> None:
        pass


class Found(Tool):
    """Gives back a text of a length, with a fact in its middle where there is one."""

    name = "Found"
    description = "Finds something."
    input_schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    permission = "free"
    max_result_chars = 50_000

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content=self._texts[input["n"]] if self._texts else f"result {input['n']}")
