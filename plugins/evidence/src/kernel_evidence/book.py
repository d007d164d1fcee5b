"""The registry of evidence (context contract, section 11): what a tool found, where, when, and how far it is to be trusted."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from kernel import Session

STATE = "evidence"
MOST_BYTES = 10 * 1024 * 1024
FILE = "evidence.jsonl"
_ID = re.compile(r"\bev_(\d{1,9})\b")
EXCERPT_CHARS = 2_000
SourceType = Literal[
    "file", "search_match", "command", "web_page", "web_search", "mcp_resource", "mcp_tool", "subagent", "memory", "user"
]
Trust = Literal["primary", "secondary", "untrusted"]


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One find. ``content_hash`` is that of the exact bytes that ``locator`` names, before anything was cut."""

    evidence_id: str
    turn_id: str
    source_type: SourceType
    uri: str
    content_hash: str
    excerpt: str
    retrieved_at: str
    tool_call_id: str
    trust: Trust
    locator: dict[str, Any] = field(default_factory=dict)

    @property
    def moment(self) -> datetime:
        return datetime.fromisoformat(self.retrieved_at)


class TurnRecord(Struct):
    """What outlives a turn, one line each."""

    turn_id: str
    items: list[dict[str, Any]]
    cited: list[str] = field(default_factory=list)


class Book(Struct):
    """All evidence of a session by id. Ids are never used again; what belongs to which run stands in ``turn_id``.

    ``whole``: ids that still have their excerpt; only those of the run that is on need one.
    """

    items: dict[str, Evidence] = field(default_factory=dict)
    next: int = 1
    cited: list[str] = field(default_factory=list)
    session: str = ""
    whole: list[str] = field(default_factory=list)

    def new_id(self) -> str:
        made = f"ev_{self.next}"
        self.next += 1
        return made

    def add(self, made: Evidence) -> None:
        self.items[made.evidence_id] = made
        self.whole.append(made.evidence_id)

    def slim(self) -> None:
        """A new run: of earlier ones only what they found is kept, without its text."""
        for id in self.whole:
            self.items[id] = msgspec.structs.replace(self.items[id], excerpt="")
        self.whole.clear()

    def of(self, turn: str | None) -> list[Evidence]:
        return [e for e in self.items.values() if e.turn_id == turn]


def hash_of(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def lines_of(path: Path, start: int, end: int) -> str | None:
    """Lines of a file, whole, without the end of the last; ``None``: it is too large to look at again and again.

    :raises OSError: it cannot be read.
    """
    if path.stat().st_size > MOST_BYTES:
        return None
    with path.open(encoding="utf-8-sig", errors="replace") as file:  # no further than to the last of them
        taken = list(islice(file, max(start - 1, 0), max(end, 0)))
    text = "".join(taken)
    return text.removesuffix("\n") if len(taken) > end - start else text


def book(session: Session) -> Book:
    """The registry: one for the conversation and its subagents; after ``/clear`` a new one."""
    root = session.root
    found: Book | None = root.plugin_state.get(STATE)
    if found is None or found.session != root.id:
        found = root.plugin_state[STATE] = _restored(root)
    return found


def _restored(session: Session) -> Book:
    """What a resumed conversation found before, without its texts: an id that the model may remember is never used again."""
    made = Book(session=session.id)
    path = record_path(session)
    try:
        lines = path.read_text("utf-8", "replace").splitlines() if path else []
    except OSError:
        lines = []
    for line in lines:
        try:
            turn = msgspec.json.decode(line, type=TurnRecord)
            found = [
                msgspec.convert({"excerpt": "", "tool_call_id": "", "turn_id": turn.turn_id, **item}, Evidence)
                for item in turn.items
            ]
        except (msgspec.DecodeError, RecursionError):  # a damaged line
            continue
        made.cited += [id for id in turn.cited if id not in made.cited]
        made.items |= {item.evidence_id: item for item in found}
    numbers = [int(n) for texts in (made.items, _told(session)) for text in texts for n in _ID.findall(text)]
    made.next = max(numbers, default=0) + 1
    return made


def _told(session: Session) -> list[str]:
    return [
        msgspec.json.encode(block).decode()
        for _, blocks in session.history.messages
        for block in blocks
        if block.get("type") in ("text", "tool_result")
    ]


def record_path(session: Session) -> Path | None:
    """Where the records of the conversation's turns lie; ``None``: nothing is kept."""
    kept = session.transcript
    return Path(kept.path).with_suffix("") / FILE if kept.kept and kept.path else None


def turn_of(session: Session) -> str:
    return str(session.root.prompt_id or "")
