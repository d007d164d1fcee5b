"""What the page is made of: rows of a lane, and the requests that they came from."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from kernel_inspector.source import Place

PREVIEW = 200
"""Characters of a row."""
NAMED = ("command", "file_path", "notebook_path", "pattern", "path", "url", "query", "skill", "description", "prompt", "name")
"""Fields of an input that say best what a call is about, best first."""
_BLANK = re.compile(r"\s+")
_TAGS = re.compile(r"</?(?:command-[a-z]+|local-command-[a-z]+|system-reminder)>")


class Row(Struct, omit_defaults=True):
    """One line of the timeline.

    ``kind``: ``turn``, ``text``, ``thinking``, ``tool``, ``context``, ``compaction``, ``summary``, ``note``, ``hooks``,
    ``retry``. ``state``: ``ok``, ``error``, ``denied``, ``running``, ``lost``. ``by``: who decided. ``lane``: the subagent
    that it started.
    ``aside``: it belongs to a branch that was left. Times in milliseconds.
    """

    kind: str
    at: int
    turn: int
    title: str = ""
    text: str = ""
    state: str = ""
    ms: float | None = None
    by: str = ""
    hooks: int = 0
    request: int | None = None
    lane: str = ""
    aside: bool = False
    tools: int = 0
    errors: int = 0
    out: int = 0
    usd: float | None = None


class Behind(Struct):
    """What a row was made of: lines of the transcript with the block in each, and lines of the record."""

    places: list[tuple[Place, int]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    uuid: str = ""


class Request(Struct, omit_defaults=True):
    """One request of a lane.

    ``read``, ``written``, ``fresh``: tokens from the cache, into it, past it; ``parts``: the same tokens by what they are,
    estimated. ``begins``: the name of what stands before the history. ``broke``: what broke the cache; ``lost``: tokens that were
    therefore paid for again.
    """

    at: int
    turn: int
    row: int
    model: str = ""
    read: int = 0
    written: int = 0
    fresh: int = 0
    out: int = 0
    ms: float | None = None
    ttft: float | None = None
    usd: float | None = None
    window: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    begins: str = ""
    estimated: bool = False
    broke: str = ""
    lost: int = 0

    @property
    def tokens(self) -> int:
        return self.read + self.written + self.fresh


def short(value: Any, limit: int = PREVIEW) -> str:
    """The beginning of a text on one line."""
    text = value if isinstance(value, str) else "" if value is None else str(value)
    return _BLANK.sub(" ", _TAGS.sub(" ", text[: limit * 4])).strip()[:limit]


def about(input: Any) -> str:
    """What a call is about, in one line."""
    if not isinstance(input, dict):
        return short(input)
    for name in NAMED:
        value = input.get(name)
        if isinstance(value, str) and value.strip():
            more = next((input[k] for k in ("path", "glob", "prompt") if k != name and isinstance(input.get(k), str)), "")
            return short(f"{value}  {more}" if name in ("pattern", "description") and more else value)
    return short(", ".join(f"{k}: {str(v)[:80]}" for k, v in list(input.items())[:6]))


def stamp(value: Any) -> int:
    """Milliseconds since the epoch of an ISO time; 0 for anything else."""
    if not isinstance(value, str):
        return 0
    try:
        return int(datetime.fromisoformat(value).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return 0


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


def count(value: Any) -> int:
    """A number of tokens as somebody wrote it down; 0 for anything that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def number(value: Any) -> float | None:
    """A measured time or price; ``None`` for anything else."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53 else None
