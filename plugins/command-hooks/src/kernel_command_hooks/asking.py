"""Requests beside the conversation: which model a hook asks, its whole answer, and that it is paid for."""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import Any

import msgspec

from kernel import Block, ModelError, ModelInfo, ModelRequest, Response, Session, StreamEvent, Usage, UsageError

FAST_MODEL = "haiku"
"""The alias that providers know their fast model by."""


def choose_model(session: Session, wanted: str | None) -> ModelInfo:
    """The model that the handler names, else a fast one, else the session's.

    :raises ValueError: the session's provider does not serve the one that is named.
    """
    for name in filter(None, (wanted, os.environ.get("ANTHROPIC_SMALL_FAST_MODEL"), FAST_MODEL)):
        try:
            info = session.provider.resolve(name)
        except UsageError as error:
            if wanted:
                raise ValueError(f"model: {error}") from None
            continue
        if info is not None:
            return info
        if wanted:
            raise ValueError(f"model: the provider {session.provider.name!r} does not serve {wanted!r}")
    return session.model_info


async def ask(session: Session, request: ModelRequest, info: ModelInfo) -> Response:
    """One answer, without retries: a hook has little time, and its failure is announced.

    :raises ModelError: the request failed, or the answer did not come to its end.
    """
    began = session.clock.monotonic()
    parts = _Parts()
    try:
        async with aclosing(session.call_model(request)) as events:  # type: ignore[type-var]
            async for event in events:
                parts.take(event)
    finally:
        session.api_seconds += session.clock.monotonic() - began
    if parts.stop_reason is None:
        raise ModelError("the answer ended early", kind="connection_error")
    response = Response(id=parts.id, model=info.id, blocks=parts.blocks(), stop_reason=parts.stop_reason, usage=parts.usage)
    _pay(session, info, response.usage)
    return response


class _Parts:
    """An answer that is being streamed: text, thinking and calls by their index."""

    def __init__(self) -> None:
        self.id = ""
        self.usage = Usage()
        self.stop_reason: str | None = None
        self._blocks: dict[int, Block] = {}
        self._inputs: dict[int, list[str]] = {}

    def take(self, event: StreamEvent) -> None:
        kind, index = event.get("type"), event.get("index", 0)
        if kind == "message_start":
            self.id = str(event["message"].get("id", ""))
            self.usage.take(event["message"].get("usage"))
        elif kind == "content_block_start":
            self._blocks[index] = dict(event["content_block"])
        elif kind == "content_block_delta" and index in self._blocks:
            self._delta(index, event["delta"])
        elif kind == "message_delta":
            self.stop_reason = event["delta"].get("stop_reason") or self.stop_reason
            self.usage.take(event.get("usage"))

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self._blocks[index]
        for name, value in delta.items():
            if name == "partial_json":
                self._inputs.setdefault(index, []).append(str(value))
            elif name != "type" and isinstance(value, str):
                block[name] = str(block.get(name) or "") + value

    def blocks(self) -> list[Block]:
        """:raises ValueError: the input of a call is no JSON object."""
        for index, pieces in self._inputs.items():
            raw = "".join(pieces).strip() or "{}"
            try:
                self._blocks[index]["input"] = msgspec.json.decode(raw, type=dict[str, Any])
            except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
                raise ValueError(f"the input of a call is no JSON object ({error})") from None
        return [self._blocks[index] for index in sorted(self._blocks)]


def _pay(session: Session, info: ModelInfo, usage: Usage) -> None:
    """Cost and tokens count for the session, not for the turn's own usage (loop contract, section 12)."""
    cost = usage.cost(info.prices)
    session.cost_usd += cost
    numbers = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens,
               "cacheReadInputTokens": usage.cache_read_input_tokens,
               "cacheCreationInputTokens": usage.cache_creation_input_tokens, "costUSD": cost}
    mine = session.model_usage.setdefault(info.id, {**dict.fromkeys(numbers, 0), "webSearchRequests": 0,
                                                    "contextWindow": info.context_window, "maxOutputTokens": info.max_output})
    for name, number in numbers.items():
        mine[name] += number
