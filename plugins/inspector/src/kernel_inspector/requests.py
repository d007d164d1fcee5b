"""The requests of a lane: what each consisted of, and what broke the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel import ModelInfo, Usage
from kernel_inspector.rows import Request, count, number, objects, short

CACHE_MS = 300_000
"""How long a provider keeps a prompt, unless it is asked for longer."""
LEAST = 1_024
"""Tokens below which nothing is cached."""
WAITING = 50
"""Requests whose answer has not been read yet."""


Facts = Callable[[str], ModelInfo | None]
"""What is known of a model today, by the name in the transcript; for requests that were not recorded."""


class Requests:
    """An answer of the transcript and the line of the record about it come in either order; the message's id joins them."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.found: list[Request] = []
        self._parts: dict[str, dict[str, Any]] = {}
        self._waiting: list[dict[str, Any]] = []
        self._unrecorded: dict[str, int] = {}
        self._last: dict[str, Any] = {}
        self._compacted = False

    def begins(self, record: dict[str, Any]) -> None:
        """What requests from now on begin with."""
        self._parts[str(record.get("id"))] = record

    def before(self, request: Request) -> list[tuple[str, str, str, int]]:
        """What stands before a request's history: layer, name, who brought it, and its share of the tokens; the largest first."""
        fixed = self._parts.get(request.begins) or {}
        found = [(kind, part) for kind in ("system", "tools") for part in objects(fixed.get(kind))]
        chars = {kind: sum(count(p.get("chars")) for k, p in found if k == kind) for kind in ("system", "tools")}
        return sorted(((str(part.get("layer") or "tool"), str(part.get("name")), str(part.get("source") or ""),
                        request.parts.get(kind, 0) * count(part.get("chars")) // max(1, chars[kind])) for kind, part in found),
                      key=lambda row: -row[3])

    def answer(self, ident: str, message: dict[str, Any], made: Request, sizes: dict[str, int], *, compacted: bool) -> Request:
        """An answer was read.

        :param made: with what the lane knows; ``ms`` is its estimate.
        :param sizes: characters of the history by part, for a request that was not recorded.
        :param compacted: there was a compaction since the request before.
        """
        usage = message.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        made.model = short(message.get("model"), 100)
        made.read, made.written = count(usage.get("cache_read_input_tokens")), count(usage.get("cache_creation_input_tokens"))
        made.fresh, made.out = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
        before = self.found[-1] if self.found else None
        self.found.append(made)
        self._compacted = compacted
        record = next((r for r in self._waiting if r.get("message") == ident), None) if ident else None
        if record is not None:
            self._waiting.remove(record)
            self._measured(made, before, record)
        else:
            made.estimated = True
            self._priced(made)
            _share(made, dict(sizes), {})
            _judge(made, before, "compaction" if compacted else "")
            self._unrecorded[ident] = len(self.found) - 1
        return made

    def record(self, record: dict[str, Any]) -> float:
        """A request that was answered was recorded.

        :returns: by how many milliseconds the time spent is other than it was said to be.
        """
        index = self._unrecorded.pop(str(record.get("message")), None)
        if index is None:
            self._waiting.append(record)
            del self._waiting[:-WAITING]
            return 0.0
        made = self.found[index]  # it was written while its answer was being read
        estimate = made.ms or 0.0
        self._measured(made, self.found[index - 1] if index else None, record)
        return (made.ms or 0.0) - estimate

    def _priced(self, made: Request) -> None:
        info = self._facts(made.model)
        if info is not None:
            made.window = info.context_window
            if info.prices is not None:
                made.usd = Usage(input_tokens=made.fresh, output_tokens=made.out, cache_read_input_tokens=made.read,
                                 cache_creation_input_tokens=made.written).cost(info.prices)

    def _measured(self, made: Request, before: Request | None, record: dict[str, Any]) -> None:
        made.ms, made.ttft, made.usd = number(record.get("ms")), number(record.get("ttft")), number(record.get("usd"))
        made.window, made.estimated, made.begins = count(record.get("window")), False, str(record.get("parts") or "")
        sizes = record.get("sizes")
        fixed = self._parts.get(str(record.get("parts"))) or {}
        _share(made, {str(k): count(v) for k, v in sizes.items()} if isinstance(sizes, dict) else {}, {
            name: sum(count(p.get("chars")) for p in objects(fixed.get(name))) for name in ("system", "tools")})
        _judge(made, before, self._changed(self._last, record))
        self._last = record

    def _changed(self, before: dict[str, Any], now: dict[str, Any]) -> str:
        """What of a request is other than it was in the one before."""
        if before.get("parts") != now.get("parts"):
            old_set, new_set = (self._parts.get(str(r.get("parts"))) or {} for r in (before, now))
            for name in ("system", "tools"):
                old, new = ({str(p.get("name")): p.get("hash") for p in objects(s.get(name))} for s in (old_set, new_set))
                changed = sorted(k for k in old.keys() | new.keys() if old.get(k) != new.get(k))
                if changed or list(old) != list(new):
                    return f"{name}: {short(', '.join(changed) or 'order', 120)}"
            return "thinking or effort"
        if count(now.get("same")) < count(before.get("messages")):
            return "compaction" if self._compacted else f"history from message {count(now.get('same')) + 1}"
        return "tool choice" if before.get("choice") != now.get("choice") else ""


def _share(made: Request, sizes: dict[str, int], fixed: dict[str, int]) -> None:
    """The measured tokens, shared out by characters. Where the fixed parts are not known they are what is left."""
    sizes = {**{k: v for k, v in fixed.items() if v}, **{k: v for k, v in sizes.items() if v}}
    left = made.tokens - sum(sizes.values()) // 4
    if not fixed and left > 0:
        sizes["fixed"] = left * 4
    total = sum(sizes.values())
    scale = made.tokens / total if made.tokens and total else 0.25
    made.parts = {k: round(v * scale) for k, v in sizes.items()}


def _judge(made: Request, before: Request | None, changed: str) -> None:
    """Whether what the request before left in the cache was not found again, and why."""
    made.broke, made.lost = "", 0
    if before is None or before.read + before.written < LEAST:
        return
    expected = before.read + before.written
    if made.read < expected * 0.9:
        made.lost = expected - made.read
        made.broke = "model" if before.model != made.model else changed or (
            "time" if made.at - before.at > CACHE_MS else "unknown")
