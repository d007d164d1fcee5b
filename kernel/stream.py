"""Assemble one answer from the stream's events (loop contract, section 4).

A block counts when it is complete, a tool call only when its input parses. Nothing is repaired in silence.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kernel.messages import Block, scrub
from kernel.models import Response, StreamEvent, Usage

_SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_CALLS = _SERVER_CALLS | {"tool_use"}
_APPENDED = {"text_delta": "text", "thinking_delta": "thinking"}


class Assembler:
    """Takes events in the order in which they come; blocks are addressed by index."""

    def __init__(self) -> None:
        self.id = ""
        self.model = ""
        self.usage = Usage()
        self.stop_reason: str | None = None
        self.stop_sequence: str | None = None
        self.stop_details: dict[str, Any] | None = None
        self.finished = False
        self.complete: dict[int, Block] = {}
        self.bad_inputs: dict[str, str] = {}
        self._open: dict[int, tuple[Block, dict[str, list[str]]]] = {}

    def take(self, event: StreamEvent) -> None:
        """One event. Unknown events and deltas are ignored; ``error`` events are the provider's business."""
        kind = event.get("type")
        if kind == "content_block_delta":
            self._delta(event)
        elif kind == "content_block_start":
            block, index = event.get("content_block"), event.get("index", 0)
            if isinstance(block, dict) and isinstance(index, int):
                self._open[index] = (dict(block), {})
        elif kind == "content_block_stop":
            self._stop(event.get("index", 0))
        elif kind == "message_start":
            message = _object(event.get("message"))
            self.id, self.model = str(message.get("id", "")), str(message.get("model", ""))
            self.usage.take(message.get("usage"))
        elif kind == "message_delta":
            delta = _object(event.get("delta"))
            self.stop_reason = delta.get("stop_reason", self.stop_reason)
            self.stop_sequence = delta.get("stop_sequence", self.stop_sequence)
            self.stop_details = delta.get("stop_details", self.stop_details)
            self.usage.take(event.get("usage"))
        elif kind == "message_stop":
            self.finished = True

    def _delta(self, event: StreamEvent) -> None:
        index, delta = event.get("index", 0), event.get("delta")
        found = self._open.get(index) if isinstance(index, int) else None
        if found is None or not isinstance(delta, dict):
            return
        block, parts = found
        kind = delta.get("type", "")
        if kind == "input_json_delta":
            parts.setdefault("input", []).append(str(delta.get("partial_json") or ""))
        elif kind in _APPENDED:
            name = _APPENDED[kind]
            parts.setdefault(name, []).append(str(delta.get(name) or ""))
        elif kind == "signature_delta":
            block["signature"] = delta.get("signature", "")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        else:  # another field of an unknown block: append text, keep the rest as it is
            for name, value in delta.items():
                if name != "type":
                    block[name] = block[name] + value if isinstance(value, str) and isinstance(block.get(name), str) else value

    def _stop(self, index: Any) -> None:
        found = self._open.pop(index, None) if isinstance(index, int) else None
        if found is None:
            return
        block, parts = found
        for name in ("text", "thinking"):
            if name in parts:
                block[name] = str(block.get(name) or "") + "".join(parts[name])
        if block.get("type") in _CALLS:
            self._input(block, "".join(parts.get("input", [])))
        self.complete[index] = block

    def _input(self, block: Block, raw: str) -> None:
        if not raw.strip():
            block["input"] = block.get("input") or {}
            return
        problem = ""
        try:
            value = msgspec.json.decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            value, problem = {}, f"the input is not valid JSON ({error}): {raw[:200]}"
        except UnicodeError:
            value, problem = {}, "the input holds text that is not Unicode"
        if not problem and not isinstance(value, dict):
            value, problem = {}, f"the input must be a JSON object, found {type(value).__name__}"
        block["input"] = value
        if problem:
            self.bad_inputs[str(block.get("id"))] = problem

    @property
    def begun(self) -> set[str]:
        """Types of the blocks that have started, complete or not."""
        blocks = [*self.complete.values(), *(b for b, _ in self._open.values())]
        return {str(b.get("type")) for b in blocks}

    def response(self, *, broken: bool = False, keep_open_text: bool = False) -> Response:
        """The answer as far as it came.

        :param broken: the stream ended early; open blocks are dropped.
        :param keep_open_text: an interrupt keeps the text that was already shown (loop contract, 9.4).
        """
        blocks = [self.complete[i] for i in sorted(self.complete)]
        if broken:  # a server tool whose result did not come any more would be refused (5.2, row 8)
            answered = [b.get("tool_use_id") for b in blocks]
            blocks = [b for b in blocks if b.get("type") not in _SERVER_CALLS or b.get("id") in answered]
        if keep_open_text:
            for block, parts in self._open.values():
                text = "".join(parts.get("text", []))
                if block.get("type") == "text" and text.strip():
                    blocks.append({"type": "text", "text": text})
        cut_call = any(b.get("type") == "tool_use" for b, _ in self._open.values())
        if self.stop_reason in ("max_tokens", "model_context_window_exceeded") and blocks and not cut_call:
            # A call at the very end of a cut answer is not whole, even if its JSON happens to parse (3.2).
            if blocks[-1].get("type") == "tool_use":
                blocks.pop()
                cut_call = True
        return Response(id=self.id, model=self.model, blocks=[scrub(b) if not _plain(b) else b for b in blocks],
                        stop_reason=self.stop_reason, usage=self.usage, stop_sequence=self.stop_sequence,
                        stop_details=self.stop_details, bad_inputs=dict(self.bad_inputs),
                        incomplete=broken, cut_call=cut_call)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _plain(block: Block) -> bool:
    """Whether the block can be encoded as it is; blocks with lone surrogates are scrubbed once, here."""
    try:
        msgspec.json.encode(block)
    except UnicodeEncodeError:
        return False
    return True
