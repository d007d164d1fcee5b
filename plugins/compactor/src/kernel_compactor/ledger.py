"""The ledger of the prompt cache: what each request kept of the last one's prefix, and what broke it (context contract, 10.2).

A history that only grew keeps every byte of its prefix, so the work of a request is that of its new messages.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kernel import Extension, ModelRequest, Session


class Part(Struct, frozen=True):
    """One piece of a prefix, in request order. ``name``: ``tool Read``, ``system 1``, ``message 12``."""

    name: str
    digest: bytes
    size: int


class Prefix(Struct):
    """The last prefix of one conversation. ``size``: bytes of all parts."""

    model: str
    tools: Any
    system: Any
    history: Any
    parts: list[Part] = field(default_factory=list)
    head: int = 0
    """How many parts are tools and system."""
    size: int = 0


class Line(Struct, kw_only=True, omit_defaults=True):
    """One request. ``share``: bytes of the last prefix that stand at the front of this one, from 0 to 1.

    ``broke``: the first part that is not as it was; ``why``: what is known of the cause.
    """

    request: int
    model: str
    size: int
    kept: int = 0
    share: float = 1.0
    broke: str | None = None
    why: str | None = None


class Book:
    """The ledger of one context.

    :param sink: a file that gets a line for every request; ``None``: it is kept in memory alone.
    """

    def __init__(self, sink: Path | None = None) -> None:
        self._last: Prefix | None = None
        self.lines: list[Line] = []
        self._sink = sink

    def note(self, request: ModelRequest) -> Line:
        """Compare a request with the one before it."""
        last = self._last
        if (last is not None and last.tools is request.tools and last.system is request.system
                and last.history is request.history and last.model == request.model):
            line = self._grown(last, request)
        else:
            head, known = _same(last, request)
            head = head or _head(request)
            parts = [*head, *known, *_body(request.history.messages, len(known))]
            now = Prefix(request.model, request.tools, request.system, request.history, parts, len(head), _size(parts))
            line = self._line(last, now)
            self._last = now
        self.lines.append(line)
        if self._sink is not None:
            _write(self._sink, line)
        return line

    def _grown(self, last: Prefix, request: ModelRequest) -> Line:
        """Nothing but messages behind the last prefix: the work is that of the new ones."""
        new = _body(request.history.messages, len(last.parts) - last.head)
        line = Line(request=len(self.lines) + 1, model=last.model, size=last.size + _size(new), kept=last.size)
        last.parts += new
        last.size = line.size
        return line

    def _line(self, last: Prefix | None, now: Prefix) -> Line:
        line = Line(request=len(self.lines) + 1, model=now.model, size=now.size)
        if last is None:
            return line
        if last.model != now.model:
            line.share, line.broke, line.why = 0.0, "model", f"{last.model} became {now.model}"
            return line
        for place, part in enumerate(last.parts):
            if place >= len(now.parts) or now.parts[place].digest != part.digest:
                line.broke = part.name
                line.why = _why(last, now, place)
                break
            line.kept += part.size
        line.share = round(line.kept / last.size, 4) if last.size else 1.0
        return line


def _same(last: Prefix | None, request: ModelRequest) -> tuple[list[Part], list[Part]]:
    """Of the last prefix the parts that need not be looked at again: head and body."""
    if last is None:
        return [], []
    same = last.tools is request.tools and last.system is request.system
    return last.parts[:last.head] if same else [], last.parts[last.head:] if last.history is request.history else []


def _size(parts: list[Part]) -> int:
    return sum(part.size for part in parts)


def _why(last: Prefix, now: Prefix, place: int) -> str:
    if place < last.head or place < now.head:
        names = {p.name for p in last.parts[:last.head]}, {p.name for p in now.parts[:now.head]}
        gone, new = sorted(names[0] - names[1]), sorted(names[1] - names[0])
        told = [f"gone: {', '.join(gone[:5])}"] if gone else []
        told += [f"new: {', '.join(new[:5])}"] if new else []
        return "; ".join(told) or f"{last.parts[place].name} changed"
    return "the history was rewritten (compaction, cleared results, rewind)"


def _head(request: ModelRequest) -> list[Part]:
    return [*(_part(f"tool {tool.get('name')}", tool) for tool in request.tools),
            *(_part(f"system {number}", block) for number, block in enumerate(request.system, 1))]


def _body(messages: list[Any], known: int) -> list[Part]:
    return [_part(f"message {number}", [role, blocks]) for number, (role, blocks) in enumerate(messages[known:], known + 1)]


def _part(name: str, value: Any) -> Part:
    raw = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str).encode("utf-8", "surrogatepass")
    return Part(name, hashlib.blake2b(raw, digest_size=16).digest(), len(raw))


def _write(path: Path, line: Line) -> None:
    data = msgspec.json.encode(line) + b"\n"
    try:
        try:
            file = path.open("ab")
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = path.open("ab")
        with file:
            file.write(data)
    except OSError:
        pass  # a record that cannot be kept is no reason to stop


STATE = "compactor.ledger"
FILE = "ledger.jsonl"


def book(session: Session) -> Book:
    """The ledger of the conversation that is on; after ``/clear`` a new one."""
    found: tuple[str, Book] | None = session.plugin_state.get(STATE)
    if found is None or found[0] != session.id:
        kept = session.transcript.path if session.transcript.kept else ""
        found = session.plugin_state[STATE] = (session.id, Book(Path(kept).with_suffix("") / FILE if kept else None))
    return found[1]


class Ledger(Extension):
    """Looks at every request of a conversation before it is sent; changes nothing."""

    name = "ledger"

    async def before_request(self, session: Session) -> None:
        line = book(session).note(session.request())
        if line.broke:
            session.debug(f"plugin compactor: {line.share:.0%} of the last prefix is kept; {line.broke}: {line.why}")
