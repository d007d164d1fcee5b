"""Search over everything that was said, called and found in a session: a scan of its lines, no index."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from kernel_inspector.details import texts
from kernel_inspector.lane import Lane
from kernel_inspector.model import SessionModel
from kernel_inspector.rows import Row
from kernel_inspector.source import object_of

MOST = 300
AROUND = 60
STATES = {"failed": "error", "refused": "denied", "running": "running", "lost": "lost"}
_FILTER = re.compile(r"(?:is|by|tool):\S+")
_FILTER_IN_TEXT = re.compile(r"(?:^|(?<=\s))(?:is|by|tool):\S+")
_BLANK = re.compile(r"\s+")
SECONDS = 5.0
"""A search that takes longer ends with what it has."""


def search(model: SessionModel, query: str, most: int = MOST) -> dict[str, Any]:
    """``{"hits": [{"lane", "row", "kind", "title", "text", "from", "to"}], "cut": bool}`` in the order of lanes and rows.

    Words such as ``is:failed``, ``by:person`` and ``tool:bash`` choose rows (``is:`` with a state, a kind of row, or ``break``);
    the rest is looked for as it stands. Upper and lower case are the same. ``text`` is what stands around the first place in the
    row; the hit is ``from`` to ``to``.
    """
    filters = [(k, v) for k, v in (w.split(":", 1) for w in query.lower().split() if _FILTER.fullmatch(w))]
    wanted = _FILTER_IN_TEXT.sub("", query.lower()).strip() if filters else query.lower()
    hits: list[dict[str, Any]] = []
    if not wanted.strip() and not filters:
        return {"hits": hits, "cut": False}
    raw = json.dumps(wanted, ensure_ascii=False)[1:-1]
    until = time.monotonic() + SECONDS
    for lane in model.lanes.values():
        broken = {r.row for r in lane.requests if r.broke}
        for row in range(len(lane.behind)):
            if not all(_fits(lane.rows[row], row in broken, k, v) for k, v in filters):
                continue
            found = _in_row(model, lane, row, wanted, raw) if wanted else {"text": lane.rows[row].text, "from": 0, "to": 0}
            if found is not None:
                hits.append({"lane": lane.id, "row": row, "kind": lane.rows[row].kind, "title": lane.rows[row].title, **found})
            if len(hits) >= most or (row % 64 == 0 and time.monotonic() > until):
                return {"hits": hits, "cut": True}
    return {"hits": hits, "cut": False}


def _fits(row: Row, broken: bool, key: str, value: str) -> bool:
    if key == "tool":
        return row.kind == "tool" and row.title.lower() == value
    if key == "by":
        return row.by.lower() == value
    if value in STATES:
        return row.state == STATES[value] and (value != "failed" or row.kind == "tool")
    return broken if value == "break" else row.kind == value


def _in_row(model: SessionModel, lane: Lane, number: int, wanted: str, raw: str) -> dict[str, Any] | None:
    row, behind = lane.rows[number], lane.behind[number]
    found = _around(f"{row.title} {row.text}" if row.kind == "tool" else row.text, wanted)
    if found is not None:
        return found
    for place, block in behind.places:
        line = model.sources[lane.id].at(place)
        if b"\\u" not in line and raw not in line.decode("utf-8", "replace").lower():
            continue  # without parsing it; a character that is written as a number may be any
        entry = object_of(line) or {}
        for text in texts(entry, block):
            found = _around(text, wanted)
            if found is not None:
                return found
    return None


def _around(text: str, wanted: str) -> dict[str, Any] | None:
    """The surroundings of the first place; ``None`` where there is none."""
    at = text.lower().find(wanted)
    if at < 0:
        return None
    begin = max(0, at - AROUND)
    before, hit, behind = (_BLANK.sub(" ", part) for part in (
        text[begin:at], text[at:at + len(wanted)][:200], text[at + len(wanted):at + len(wanted) + 2 * AROUND]))
    before = f"{'…' if begin else ''}{before}"
    return {"text": before + hit + behind, "from": len(before), "to": len(before) + len(hit)}
