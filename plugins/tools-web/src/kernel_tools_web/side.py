"""Requests to the model beside the conversation: no history, no tools of ours, their own small limits."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any

from msgspec import Struct

from kernel import Block, ModelError, ModelInfo, ModelRequest, Session, StreamEvent, ToolError, Usage

TRIES = 3
WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
_LIMITED = ("rate_limit_error", "overloaded_error")
_PASSING = (*_LIMITED, "connection_error", "timeout_error", "api_error")


class Answer(Struct):
    """Whole blocks of an answer, and how it ended."""

    blocks: list[Block]
    stop_reason: str | None

    @property
    def text(self) -> str:
        return "".join(str(b.get("text", "")) for b in self.blocks if b.get("type") == "text").strip()


async def ask(session: Session, models: list[ModelInfo], request: ModelRequest, what: str) -> Answer:
    """The answer of the first model that exists.

    :param models: tried in turn where the server does not know one.
    :param what: what the answer was wanted for; begins the error's text.
    :raises ToolError: ``rate_limited`` or ``model_failed``. Nothing that the API said is passed on, since the model could
        take it for what it asked for.
    """
    import msgspec

    for number, info in enumerate(models):
        wanted = msgspec.structs.replace(request, model=info.id, max_tokens=min(request.max_tokens, info.max_output))
        try:
            return await _retried(session, info, wanted)
        except ModelError as error:
            if number + 1 < len(models) and (error.status == 404 or error.kind == "not_found_error"):
                continue
            session.debug(f"plugin tools-web: side request to {info.id} failed: {error.kind} {error.status}: {error.message}")
            limited = error.status in (429, 529) or error.kind in _LIMITED
            how = f"{error.kind}, status {error.status}" if error.status else error.kind
            raise ToolError("rate_limited" if limited else "model_failed",
                            f"{what}: the model did not answer ({how}). Try again later.", retryable=True) from error
    raise AssertionError("at least one model is given")


async def _retried(session: Session, info: ModelInfo, request: ModelRequest) -> Answer:
    attempt = 0
    while True:
        began = session.clock.monotonic()
        try:
            return await _once(session, info, request)
        except ModelError as error:
            attempt += 1
            wait = max(WAIT_S * 2 ** (attempt - 1), error.retry_after or 0.0)
            if attempt >= TRIES or wait > LONGEST_WAIT_S or not _is_passing(error):
                raise
        finally:
            session.api_seconds += session.clock.monotonic() - began
        await session.clock.sleep(wait)


def _is_passing(error: ModelError) -> bool:
    if error.should_retry is not None:
        return error.should_retry
    if error.status is not None:
        return error.status in (408, 409, 429) or error.status >= 500
    return error.kind in _PASSING


async def _once(session: Session, info: ModelInfo, request: ModelRequest) -> Answer:
    usage, blocks, stop_reason = Usage(), _Blocks(), None
    try:
        async with aclosing(session.call_model(request)) as events:  # type: ignore[type-var]
            async for event in events:
                blocks.take(event)
                if event.get("type") == "message_start":
                    usage.take(_object(event.get("message")).get("usage"))
                elif event.get("type") == "message_delta":
                    usage.take(event.get("usage"))
                    stop_reason = _object(event.get("delta")).get("stop_reason", stop_reason)
    finally:
        spend(session, info, usage)
    if stop_reason is None:
        raise ModelError("the answer ended early", kind="connection_error")
    return Answer(blocks.whole, stop_reason)


def spend(session: Session, info: ModelInfo, usage: Usage) -> None:
    """Count the tokens of a side request under its own model (headless contract, ``modelUsage``)."""
    if not usage.prompt_tokens and not usage.output_tokens:
        return
    cost = usage.cost(info.prices)
    session.cost_usd += cost
    mine = session.model_usage.setdefault(info.id, {
        "inputTokens": 0, "outputTokens": 0, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0, "webSearchRequests": 0,
        "costUSD": 0.0, "contextWindow": info.context_window, "maxOutputTokens": info.max_output})
    for name, amount in (("inputTokens", usage.input_tokens), ("outputTokens", usage.output_tokens),
                         ("cacheReadInputTokens", usage.cache_read_input_tokens),
                         ("cacheCreationInputTokens", usage.cache_creation_input_tokens),
                         ("webSearchRequests", usage.server_tool_use.get("web_search_requests", 0)), ("costUSD", cost)):
        mine[name] += amount


class _Blocks:
    """Text, server tools and their results out of the stream; other blocks are kept as they began."""

    def __init__(self) -> None:
        self.whole: list[Block] = []
        self._open: dict[Any, tuple[Block, list[str]]] = {}

    def take(self, event: StreamEvent) -> None:
        kind, index = event.get("type"), event.get("index", 0)
        if kind == "content_block_start" and isinstance(event.get("content_block"), dict):
            self._open[index] = (dict(event["content_block"]), [])
        elif kind == "content_block_delta" and index in self._open:
            delta = _object(event.get("delta"))
            self._open[index][1].append(str(delta.get("text") or delta.get("partial_json") or ""))
        elif kind == "content_block_stop" and index in self._open:
            block, parts = self._open.pop(index)
            joined = "".join(parts)
            if block.get("type") == "text":
                block["text"] = str(block.get("text") or "") + joined
            elif joined:
                block["input"] = _parsed(joined)
            self.whole.append(block)


def _parsed(text: str) -> dict[str, Any]:
    try:
        return _object(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def small_model(session: Session) -> list[ModelInfo]:
    """The setting ``kernel.web.model``, else the provider's small model, then the session's own."""
    given = session.settings.get("kernel.web.model")
    name = given if isinstance(given, str) and given else "haiku" if session.provider.name == "anthropic" else ""
    found = session.provider.resolve(name) if name else None
    return [found, session.model_info] if found is not None and found.id != session.model_info.id else [session.model_info]
