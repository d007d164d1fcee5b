"""The registry of evidence (context contract, section 11): what a tool found, where, when, and how far it is to be trusted."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from kernel import Session

STATE = "evidence"
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
        return datetime.fromisoformat(self.retrieved_at.replace("Z", "+00:00"))


class Book(Struct):
    """All evidence of a session by id. Ids are never used again; what belongs to which run stands in ``turn_id``."""

    items: dict[str, Evidence] = field(default_factory=dict)
    next: int = 1
    cited: list[str] = field(default_factory=list)

    def new_id(self) -> str:
        made = f"ev_{self.next}"
        self.next += 1
        return made

    def of(self, turn: str | None) -> list[Evidence]:
        return [e for e in self.items.values() if e.turn_id == turn]


def book(session: Session) -> Book:
    """The registry: one for the conversation and its subagents."""
    found: Book = session.root.plugin_state.setdefault(STATE, Book())
    return found


def turn_of(session: Session) -> str:
    return str(session.root.prompt_id or "")
