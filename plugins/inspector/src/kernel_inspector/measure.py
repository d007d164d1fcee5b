"""What a request consists of, in characters and hashes; the texts themselves are not kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgspec

if TYPE_CHECKING:
    from kernel import History, ModelRequest, Session

IMAGE = 6_000
"""Characters that stand for an image or a page: about 1,500 tokens."""
PARTS = ("user", "context", "assistant", "thinking", "calls", "results")
"""What a history consists of. ``context``: what the harness added for the model."""


class Meter:
    """Measures the requests of one session. A request costs what is new in it, since a history only grows."""

    def __init__(self) -> None:
        self._history: History | None = None
        self._count = 0
        self._sizes: dict[str, int] = {}
        self._system: Any = None
        self._tools: Any = None
        self._set: dict[str, Any] = {}

    def history(self, request: ModelRequest) -> dict[str, Any]:
        """``{"sizes": part -> characters, "messages", "same"}``; ``same``: messages that stood in the request before, too."""
        history, before = request.history, self._count
        messages = history.messages
        if history is not self._history:
            old = self._history.messages[:before] if self._history is not None else []
            before = next((n for n, (a, b) in enumerate(zip(old, messages, strict=False)) if a != b),
                          min(len(old), len(messages)))
            self._history, self._count, self._sizes = history, 0, dict.fromkeys(PARTS, 0)
        add_sizes(self._sizes, messages[self._count:])
        self._count = len(messages)
        return {"sizes": dict(self._sizes), "messages": self._count, "same": before}

    def fixed(self, session: Session, request: ModelRequest) -> tuple[dict[str, Any], bool]:
        """What stands before the history, part by part, and whether it is new."""
        now = (request.model, request.thinking, request.effort)
        if request.system is self._system and request.tools is self._tools and now == self._set.get("now"):
            return self._set, False
        told = [s for s in session.sections if s.layer != "instructions"]
        system = [{"layer": s.layer, "name": s.name, "source": s.source, **_size(s.text)} for s in told]
        if not system and request.system:
            system = [{"layer": "rules", "name": "prompt", "source": "", **_size(str(b.get("text")))} for b in request.system]
        owner = session.harness.tools.owner
        tools = [{"name": str(t.get("name")), "source": owner(str(t.get("name"))) or "", **_size(msgspec.json.encode(t))}
                 for t in request.tools]
        self._system, self._tools = request.system, request.tools
        found = {"system": system, "tools": tools, "now": now}
        known = self._set.get("id")
        self._set = {"id": _hash(msgspec.json.encode(found)), **found}
        return self._set, self._set["id"] != known


def add_sizes(sizes: dict[str, int], messages: Any) -> None:
    """Count the blocks of messages ``(role, blocks)`` by what they are. Never raises for what stands in a block."""
    for role, blocks in messages:
        for block in blocks:
            part, size = size_of(role, block)
            sizes[part] = sizes.get(part, 0) + size


def size_of(role: str, block: dict[str, Any]) -> tuple[str, int]:
    """Which part a block belongs to, and its characters."""
    kind = block.get("type")
    if kind == "text":
        text = str(block.get("text", ""))
        if role == "user":
            return ("context" if text.startswith("<system-reminder>") else "user"), len(text)
        return "assistant", len(text)
    if kind in ("thinking", "redacted_thinking"):
        return "thinking", len(str(block.get("thinking") or block.get("data") or ""))
    if kind == "tool_use":
        return "calls", len(str(block.get("input"))) + len(str(block.get("name")))
    if kind == "tool_result":
        content = block.get("content")
        if isinstance(content, list):
            return "results", sum(size_of("tool", b)[1] for b in content if isinstance(b, dict))
        return "results", len(str(content or ""))
    if kind in ("image", "document"):
        return "user", IMAGE
    return ("user" if role == "user" else "assistant"), len(str(block))


def _size(text: str | bytes) -> dict[str, Any]:
    return {"chars": len(text), "hash": _hash(text if isinstance(text, bytes) else text.encode("utf-8", "replace"))}


def _hash(data: bytes) -> str:
    """Tells whether a part is another one than before; together with its length that is enough."""
    return f"{crc32(data):08x}"
