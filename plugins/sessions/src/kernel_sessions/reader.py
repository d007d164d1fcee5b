"""Reading a transcript file: lines, facts about the session, and what is damaged (sessions contract, section 2).

Reading never changes a file and never fails for what stands in it: a line that cannot be used is counted, named and
skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from sys import intern
from typing import Any

import msgspec
from msgspec import Struct, field

CHAIN_TYPES = frozenset({"user", "assistant", "system", "attachment", "progress"})
WINDOW = 64 * 1024
"""Bytes at the beginning and at the end of a file that a light reader looks at."""

FACTS = {"permission-mode": "permissionMode", "custom-title": "customTitle", "ai-title": "aiTitle", "tag": "tag",
         "last-prompt": "lastPrompt", "summary": "summary", "deferred-tool": "deferredTool",
         "agent-setting": "agentSetting"}
"""Metadata entries that say one thing about the session: type -> field. The last one in the file counts."""

REPEATED = ("sessionId", "cwd", "version", "gitBranch", "userType", "entrypoint")
"""Fields whose few values stand in every line: each value is kept once."""
MAX_NAMED = 5
"""Damaged lines that are named one by one."""

_decode = msgspec.json.Decoder().decode


class Line(Struct):
    """A chain entry and the number of its line, counted from 1."""

    number: int
    entry: dict[str, Any]

    @property
    def uuid(self) -> str:
        return str(self.entry["uuid"])

    @property
    def is_sidechain(self) -> bool:
        return bool(self.entry.get("isSidechain"))


class Fact(Struct):
    """A value, the byte offset of the line that says it, and whether it still has to be written."""

    value: str
    offset: int
    dirty: bool = False


class Damage(Struct):
    """A line that cannot be used: its number and why. ``salvaged``: what the chain needs of it was kept."""

    number: int
    reason: str
    salvaged: bool = False


class Journal(Struct, kw_only=True):
    """Everything that one file holds. ``torn``: it does not end with a newline."""

    path: Path
    size: int = 0
    lines: list[Line] = field(default_factory=list)
    facts: dict[str, Fact] = field(default_factory=dict)
    replacements: list[Any] = field(default_factory=list)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    queued: list[int] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    torn: bool = False

    def fact(self, *kinds: str) -> str | None:
        """The value of the first of these kinds that has one."""
        return next((f.value for k in kinds if (f := self.facts.get(k)) and f.value), None)

    def problems(self) -> list[str]:
        """What a person should know about the file, one sentence per damaged line."""
        said = [f"transcript {self.path}, line {d.number}: {d.reason}; the line is left out, its bytes stay in the file"
                for d in self.damages[:MAX_NAMED]]
        more = len(self.damages) - MAX_NAMED
        return [*said, f"transcript {self.path}: {more} more damaged lines are left out"] if more > 0 else said


def read(path: Path) -> Journal:
    """Read a whole transcript.

    :raises OSError: the file cannot be read.
    """
    with path.open("rb", buffering=WINDOW) as file:
        return _parsed(path, file)


def parse(path: Path, data: bytes) -> Journal:
    """The same for bytes that are at hand."""
    return _parsed(path, BytesIO(data))


def _parsed(path: Path, lines: Iterable[bytes]) -> Journal:
    """The journal of lines as a file gives them; only the last one may lack its line end."""
    journal = Journal(path=path)
    torn: tuple[bytes, Damage] | None = None
    for number, whole in enumerate(lines, 1):
        begin = journal.size
        journal.size += len(whole)
        journal.torn = not whole.endswith(b"\n")
        raw = whole[:-1] if not journal.torn else whole
        if not raw or raw.isspace():
            continue
        if torn and raw.startswith(torn[0]):
            journal.damages.remove(torn[1])  # a write that was cut off and then repeated whole: nothing is missing
        torn = None
        entry = decode(raw)
        if entry is None:
            damage = Damage(number, _reason(raw, last=journal.torn))
            entry = salvage(raw)
            damage.salvaged = entry is not None
            journal.damages.append(damage)
            torn = (raw, damage)
        if entry is not None:
            _sort(journal, number, begin, entry)
    return journal


def collect(path: Path, entries: Iterable[Any]) -> Journal:
    """The journal of entries that were kept elsewhere; places count in entries instead of bytes."""
    journal = Journal(path=path)
    for number, entry in enumerate(entries, 1):
        journal.size = number
        if isinstance(entry, dict):
            _sort(journal, number, number - 1, entry)
        else:
            journal.damages.append(Damage(number, "is not a JSON object"))
    return journal


def decode(raw: bytes) -> dict[str, Any] | None:
    """One line as an object; ``None`` if it is none. Text that is not UTF-8 is read with replacement characters."""
    try:
        entry = _decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        try:  # lone surrogates, bytes that are no UTF-8, NaN: rare, and the slower reader takes them
            entry = json.loads(raw.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None
    return entry if isinstance(entry, dict) else None


def salvage(raw: bytes) -> dict[str, Any] | None:
    """The whole entry that a careless writer glued to a torn one, if the line ends with one.

    An unescaped ``{"`` cannot come from a text inside the torn entry, so what parses from there to the end of the line
    and carries a session's id is an entry of its own.
    """
    start = 0
    for _ in range(64):
        start = raw.find(b'{"', start + 1)
        if start < 0:
            return None
        entry = decode(raw[start:])
        if entry is not None and isinstance(entry.get("type"), str) and isinstance(entry.get("sessionId"), str):
            return entry
    return None


def facts_in(data: bytes, base: int = 0) -> dict[str, Fact]:
    """Facts in a piece of a file; lines that are cut at its ends are passed over.

    :param base: the offset of the piece in the file.
    """
    facts: dict[str, Fact] = {}
    offset = base
    for raw in data.split(b"\n"):
        begin, offset = offset, offset + len(raw) + 1
        if len(raw) > WINDOW or not any(b'"%b":"' % name.encode() in raw for name in FACTS.values()):
            continue
        entry = decode(raw) or salvage(raw)
        if entry is not None and _kind(entry) not in CHAIN_TYPES:
            _fact(facts, begin, entry)
    return facts


class Ends(Struct):
    """The beginning and the end of a file, as listings read them. ``rest`` is empty where the beginning is all of it."""

    size: int
    head: bytes
    rest: bytes = b""

    def facts(self) -> dict[str, Fact]:
        return {**facts_in(self.head), **facts_in(self.rest, self.size - len(self.rest))}


def ends(path: Path) -> Ends:
    """:raises OSError: the file cannot be read."""
    with path.open("rb") as file:
        head = file.read(WINDOW)
        size = file.seek(0, 2)
        if size <= WINDOW:
            return Ends(size, head)
        file.seek(size - WINDOW)
        return Ends(size, head, file.read(WINDOW))


def light_facts(path: Path) -> dict[str, Fact]:
    """Facts from the beginning and the end of a file. Empty if it cannot be read."""
    try:
        return ends(path).facts()
    except OSError:
        return {}


def _sort(journal: Journal, number: int, begin: int, entry: dict[str, Any]) -> None:
    kind = _kind(entry)
    if kind in CHAIN_TYPES:
        uuid = entry.get("uuid")
        if isinstance(uuid, str) and uuid and uuid.isascii():
            _link(journal, number, entry)
        else:
            journal.damages.append(Damage(number, f"the {kind} entry has no uuid"))
    elif not kind and "uuid" in entry and "lastPrompt" not in entry:
        journal.damages.append(Damage(number, "the entry has no type"))
    elif kind == "file-history-snapshot":
        journal.snapshots.append(entry)
    elif kind == "content-replacement":
        if isinstance(entry.get("replacements"), list):
            journal.replacements += entry["replacements"]
    elif kind == "queue-operation":
        journal.queued.append(number)
    else:
        _fact(journal.facts, begin, entry)


def _kind(entry: dict[str, Any]) -> str:
    kind = entry.get("type")
    return kind if isinstance(kind, str) else ""


def _link(journal: Journal, number: int, entry: dict[str, Any]) -> None:
    """An entry of a chain. A message that is none is named, and what is left of its entry links those around it."""
    message = entry.get("message")
    if entry["type"] in ("user", "assistant") and not (
            isinstance(message, dict) and isinstance(message.get("content"), str | list)):
        linked = isinstance(entry.get("parentUuid"), str)
        journal.damages.append(Damage(number, f"the {entry['type']} entry holds no message", salvaged=linked))
        if not linked:
            return
        entry = {**entry, "type": "progress"}
    for name in REPEATED:
        if type(value := entry.get(name)) is str:
            entry[name] = intern(value)
    journal.lines.append(Line(number, entry))


def _fact(facts: dict[str, Fact], begin: int, entry: dict[str, Any]) -> None:
    kind = "last-prompt" if isinstance(entry.get("lastPrompt"), str) else str(entry.get("type"))
    value = entry.get(FACTS.get(kind, ""))
    if isinstance(value, str) and (value or kind == "tag"):  # an empty tag clears; nothing else can be cleared
        facts[kind] = Fact(value, begin)


def _reason(raw: bytes, *, last: bool) -> str:
    if not raw.strip(b"\0"):
        return f"{len(raw)} zero bytes instead of an entry"
    if last:
        return "the last entry is incomplete (the write was cut off)"
    return "is not a JSON object"
