"""The request's body, put together from bytes: what does not change is encoded once.

Cache marks (context contract, section 10): the end of the first system block, which all sessions share; the end of the
system prompt, which covers the tools too; the end of the conversation. Never more than four in a request, with those
that somebody else set.
"""

from __future__ import annotations

import os
from operator import is_
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from kernel import Block, History, ModelError, ModelRequest, env_switch
from kernel_model_anthropic import models

MAX_MARKS = 4
KEPT = 16
"""System prompts and tool lists whose bytes are kept: one of each per conversation that is under way."""
OURS = frozenset({"model", "max_tokens", "messages", "stream"})
"""Fields that ``extra`` and ``CLAUDE_CODE_EXTRA_BODY`` cannot replace."""


def encode(value: Any) -> bytes:
    """Compact JSON; lone surrogates, which the API refuses, become question marks."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        import json

        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class Encoded:
    """The bytes of lists that are the same objects from request to request. A list that was changed is encoded anew."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], tuple[list[Any], list[Any], bytes]] = {}

    def get(self, items: list[dict[str, Any]], marks: dict[int, Block]) -> bytes:
        """The JSON array of the list, with extra fields merged into some items."""
        key = (id(items), repr(marks) if marks else "")
        found = self._kept.get(key)
        if found and found[0] is items and len(found[1]) == len(items) and all(map(is_, found[1], items)):
            return found[2]
        encoded = encode([{**item, **marks[n]} if n in marks else item for n, item in enumerate(items)])
        self._kept.pop(key, None)
        while len(self._kept) >= KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (items, list(items), encoded)
        return encoded


class Bodies:
    """Builds bodies for one provider."""

    def __init__(self) -> None:
        self._encoded = Encoded()
        self._given: WeakKeyDictionary[History, tuple[int, int]] = WeakKeyDictionary()

    def build(self, request: ModelRequest) -> bytes:
        """The JSON body.

        :raises ModelError: ``CLAUDE_CODE_EXTRA_BODY`` is no JSON object.
        """
        fields = _fields(request)
        mark = _mark(request.model)
        free = MAX_MARKS - self._marks_in_history(request.history) - _count(request.system) - _count(request.tools)
        in_messages, in_system, in_tools = _places(request, mark, free)
        parts = [encode(fields)[:-1]]
        if request.tools and "tools" not in fields:
            parts += [b',"tools":', self._encoded.get(request.tools, in_tools)]
        if request.system and "system" not in fields:
            parts += [b',"system":', self._encoded.get(request.system, in_system)]
        parts += [b',"messages":', request.history.encode(in_messages), b"}"]
        return b"".join(parts)

    def _marks_in_history(self, history: History) -> int:
        """Marks that people or programs set in the conversation. Only messages that are new are looked at."""
        seen, marks = self._given.get(history, (0, 0))
        if seen < len(history.messages):
            marks += sum(_count(blocks) for _, blocks in history.messages[seen:])
            self._given[history] = (len(history.messages), marks)
        return marks


def _fields(request: ModelRequest) -> dict[str, Any]:
    """Everything but tools, system and messages; small, so it is encoded each time."""
    fields: dict[str, Any] = {"model": models.split(request.model)[0], "max_tokens": request.max_tokens, "stream": True}
    thinking = models.thinking_for(request.model, request.thinking, request.max_tokens)
    if thinking is not None:
        fields["thinking"] = thinking
    if request.tool_choice is not None and request.tools:
        fields["tool_choice"] = request.tool_choice
    for more in (request.extra, _extra_body()):
        fields.update({k: v for k, v in more.items() if k not in OURS})
    if request.effort:
        given = fields.get("output_config")
        fields["output_config"] = {"effort": request.effort, **(given if isinstance(given, dict) else {})}
    return fields


def _extra_body() -> dict[str, Any]:
    raw = os.environ.get("CLAUDE_CODE_EXTRA_BODY", "").strip()
    if not raw:
        return {}
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError):
        value = None
    if not isinstance(value, dict):
        raise ModelError("CLAUDE_CODE_EXTRA_BODY is no JSON object", kind="invalid_request_error",
                         context="plugin model-anthropic", hint='for example {"metadata": {"user_id": "me"}}')
    return value


# -- cache marks ----------------------------------------------------------------------------------------------------------
def _mark(model: str) -> Block | None:
    """The mark to set, or ``None`` where caching is off."""
    family = next((f for f in models.FAMILIES if f in model.lower()), None)
    if env_switch("DISABLE_PROMPT_CACHING") or (family and env_switch(f"DISABLE_PROMPT_CACHING_{family.upper()}")):
        return None
    if env_switch("ENABLE_PROMPT_CACHING_1H") and not env_switch("FORCE_PROMPT_CACHING_5M"):
        return {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    return {"cache_control": {"type": "ephemeral"}}


def _places(request: ModelRequest, mark: Block | None,
            free: int) -> tuple[Block | None, dict[int, Block], dict[int, Block]]:
    """Where marks go: the conversation's end first, then the ends of the system prompt; the tools where it is empty."""
    if mark is None or free <= 0:
        return None, {}, {}
    if not request.system:
        last = len(request.tools) - 1
        return mark, {}, {last: mark} if free > 1 and last >= 0 and "cache_control" not in request.tools[last] else {}
    wanted = dict.fromkeys((len(request.system) - 1, 0))
    places = [n for n in wanted if "cache_control" not in request.system[n] and _can_carry(request.system[n])]
    return mark, dict.fromkeys(places[: free - 1], mark), {}


def _can_carry(block: Block) -> bool:
    return block.get("type") != "text" or bool(str(block.get("text", "")).strip())


def _count(blocks: list[dict[str, Any]]) -> int:
    """Marks in the blocks and in the content of tool results."""
    found = 0
    for block in blocks:
        found += "cache_control" in block
        content = block.get("content")
        if isinstance(content, list):
            found += sum("cache_control" in inner for inner in content if isinstance(inner, dict))
    return found
