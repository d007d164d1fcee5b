"""What the page asks for, as JSON values. Every answer is bounded, however long the session is."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import msgspec

from kernel_inspector.lane import Lane
from kernel_inspector.model import SessionModel
from kernel_inspector.rows import Request, Row

MOST_ROWS = 500
MOST_COLUMNS = 240
MOST_SPANS = 1_500


def summary(model: SessionModel) -> dict[str, Any]:
    """The head of the page: what the session is, what it came to, its lanes."""
    main = model.main
    lanes = list(model.lanes.values())
    requests = [r for lane in lanes for r in lane.requests]
    rows = [r for lane in lanes for r in lane.rows]
    tools = [r for r in rows if r.kind == "tool"]
    agents = sum(r.ms or 0 for r in tools if r.lane)  # what an agent did is counted in its own lane
    known = next((w for r in reversed(main.requests) if (w := r.window)), 0)
    return {
        "id": model.id, "title": model.title, "version": model.version, "path": str(model.path), "cwd": model.cwd,
        "branch": model.branch, "running": model.running, "gone": model.gone, "recorded": model.recorded,
        "model": main.requests[-1].model if main.requests else "", "mode": main.facts.get("permission-mode", ""),
        "began": next((r.at for r in main.rows if r.at), 0), "ended": max((r.at for r in rows), default=0), "window": known,
        "fault": model.fault, "damaged": sum(s.damaged for s in model.sources.values()),
        "totals": {
            "turns": len(main.turns), "requests": len(requests), "tools": len(tools),
            "errors": sum(r.state == "error" for r in tools), "denied": sum(r.state == "denied" for r in tools),
            "retries": sum(r.kind == "retry" for r in rows), "breaks": sum(bool(r.broke) for r in requests),
            "read": sum(r.read for r in requests), "written": sum(r.written for r in requests),
            "fresh": sum(r.fresh for r in requests), "out": sum(r.out for r in requests), "usd": spent(model),
            "asked": sum(r.by == "person" for r in tools),
            "estimated": any(r.estimated for r in requests),
            "ms": {name: round(sum(lane.ms[name] for lane in lanes) - (agents if name == "tools" else 0)) for name in main.ms}},
        "lanes": [lane_summary(lane) for lane in lanes]}


def spent(model: SessionModel) -> float | None:
    """US dollars: what the record says of each turn, which counts agents and side requests; else what the requests would cost."""
    main = model.main
    paid = {n: usd for n, row in enumerate(main.turns) if (usd := main.rows[row].usd) is not None}
    rest = [r.usd for r in main.requests if r.turn not in paid]
    if not paid:
        rest += [r.usd for lane in model.lanes.values() if lane.id for r in lane.requests]
    known = [*paid.values(), *(usd for usd in rest if usd is not None)]
    return sum(known) if known else None


def lane_summary(lane: Lane) -> dict[str, Any]:
    return {"id": lane.id, "kind": lane.kind, "title": lane.title, "rows": len(lane.rows), "turns": len(lane.turns),
            "requests": len(lane.requests), "began": next((r.at for r in lane.rows if r.at), 0),
            "ended": lane.rows[-1].at if lane.rows else 0, "context": lane.requests[-1].tokens if lane.requests else 0}


def rows(lane: Lane, first: int, many: int) -> dict[str, Any]:
    first = max(0, min(first, len(lane.rows)))
    return {"first": first, "total": len(lane.rows), "rows": lane.rows[first:first + max(0, min(many, MOST_ROWS))]}


def turns(lane: Lane) -> dict[str, Any]:
    """The rows that turns begin with."""
    return {"turns": lane.turns}


def requests(lane: Lane, columns: int = MOST_COLUMNS) -> dict[str, Any]:
    """Requests as columns. Where there are more than columns, several share one: the largest, with the breaks of all."""
    columns = max(1, min(columns, MOST_COLUMNS))
    many = len(lane.requests)
    step = max(1, -(-many // columns))
    found = []
    for first in range(0, many, step):
        group = lane.requests[first:first + step]
        largest = max(group, key=lambda r: r.tokens)
        broken = next((r for r in group if r.broke), None)
        number = first + group.index(broken or largest)
        found.append({**msgspec.to_builtins(largest), "first": first, "number": number, "many": len(group),
                      "broke": broken.broke if broken else "", "lost": sum(r.lost for r in group),
                      "row": (broken or largest).row})
    return {"total": many, "columns": found}


def spans(model: SessionModel, lane: Lane, turn: int) -> dict[str, Any]:
    """What ran when in a turn: requests, hooks, waiting, tools, and the lanes of the agents that it started."""
    if not 0 <= turn < max(1, len(lane.turns)):
        return {"turn": turn, "began": 0, "ended": 0, "spans": [], "cut": False}
    first = lane.turns[turn] if lane.turns else 0
    last = lane.turns[turn + 1] if turn + 1 < len(lane.turns) else len(lane.rows)
    found = _spans_of(lane, first, last)
    wanted = [row.lane for row in lane.rows[first:last] if row.lane]
    for id in wanted:
        agent = model.lanes.get(id)
        if agent is not None and len(found) < MOST_SPANS:
            found += _spans_of(agent, 0, len(agent.rows))
            wanted += [row.lane for row in agent.rows if row.lane and row.lane not in wanted]
    times = [s["start"] for s in found] + [s["start"] + s["ms"] for s in found]
    return {"turn": turn, "began": min(times, default=0), "ended": max(times, default=0), "spans": found[:MOST_SPANS],
            "cut": len(found) > MOST_SPANS}


def _spans_of(lane: Lane, first: int, last: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def add(kind: str, row: int, start: float, ms: float, title: str, state: str = "") -> None:
        found.append({"lane": lane.id, "kind": kind, "row": row, "start": round(start), "ms": round(ms, 1), "title": title,
                      "state": state})

    at = bisect_right([r.row for r in lane.requests], first - 1)
    for request in lane.requests[at:]:
        if request.row >= last:
            break
        if request.at and request.ms is not None:
            add("model", request.row, request.at - request.ms, request.ms, request.model)
    for number in range(first, last):
        row, behind = lane.rows[number], lane.behind[number]
        if row.kind == "tool":
            waited, ended = 0.0, 0
            for record in behind.records:
                when, ms = record.get("at"), record.get("ms")
                if not isinstance(when, int) or not isinstance(ms, int | float):
                    continue
                if record["kind"] == "tool":
                    ended = when
                elif record["kind"] == "approval":
                    waited = ms
                    add("waiting", number, when - ms, ms, f"{row.title}: a person is asked")
                elif record["kind"] == "hooks" and ms >= 0.1:
                    add("hooks", number, when - ms, ms, f"{record.get('event')}, {row.title}")
            if ended or row.ms is not None:
                ms = row.ms or 0.0
                add("tool", number, (ended - ms) if ended else row.at + waited, ms, f"{row.title} {row.text}"[:120], row.state)
        elif row.kind in ("hooks", "retry") and row.ms is not None:
            add("hooks" if row.kind == "hooks" else "model", number, row.at - row.ms, row.ms, row.title, row.state)
    return found


def wire(value: Row | Request) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(value)
    return found
