"""Pictures of a fleet as SVG, with a title for each mark and a text that says the same."""

from __future__ import annotations

import html
import math
from collections.abc import Callable

from kernel_fleet.journal import Record

STATUSES = ("done", "failed", "rejected", "timeout", "crashed", "again", "stopped", "unfinished", "waiting")
WIDTH = 1000
LEFT = 70


def span(ms: float) -> str:
    """A length of time for people."""
    seconds = ms / 1000
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def lanes(records: list[Record]) -> str:
    """A bar for each attempt, a row for each worker. Times between two runs of the fleet are left out."""
    bars = [(over.seat, begun.at, over.at, over.status, record.task.id) for record in records
            for begun in record.begun for over in record.over if over.attempt == begun.attempt]
    if not bars:
        return "<p>Nothing has run yet.</p>"
    place = _without_pauses(bars)
    end = max(place(bar[2]) for bar in bars) or 1e-9
    seats = sorted({bar[0] for bar in bars})
    height = 22 * len(seats) + 26
    out = [_svg(height, f"{len(bars)} attempts on {len(seats)} workers in {span(end * 1000)}")]
    for seat, begun, over, status, task in bars:
        x = LEFT + place(begun) / end * (WIDTH - LEFT - 10)
        width = max(0.7, (place(over) - place(begun)) / end * (WIDTH - LEFT - 10) - 0.3)
        out.append(_bar(f'class="{html.escape(status)}"', x, 22 * seats.index(seat) + 3, width, 16,
                        f"{task}: {status}, {span((over - begun) * 1000)}"))
    out += [_text(0, 22 * n + 15, f"worker {seat}") for n, seat in enumerate(seats)]
    out += [_text(LEFT + share * (WIDTH - LEFT - 10), height - 6, span(end * share * 1000), anchor)
            for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))]
    return "".join([*out, "</svg>"])


def _without_pauses(bars: list[tuple[int, float, float, str, str]]) -> Callable[[float], float]:
    """Point in time -> seconds in which something ran, up to then."""
    pieces: list[list[float]] = []
    for begun, over in sorted((bar[1], bar[2]) for bar in bars):
        if pieces and begun <= pieces[-1][1] + 5:
            pieces[-1][1] = max(pieces[-1][1], over)
        else:
            pieces.append([begun, over])

    def place(at: float) -> float:
        return sum(min(at, over) - begun for begun, over in pieces if at > begun)

    return place


def durations(records: list[Record]) -> str:
    """How many tasks took how long, in steps of equal ratio."""
    times = sorted(r.over[-1].run_ms for r in records if r.final and r.over[-1].run_ms > 0)
    if not times:
        return "<p>No task has finished yet.</p>"
    low, high = math.log(times[0]), math.log(max(times[-1], times[0] * 1.01))
    steps = min(24, max(1, len(times)))
    heaps = [0] * steps
    for ms in times:
        heaps[min(steps - 1, int((math.log(ms) - low) / (high - low) * steps))] += 1
    wide, most = (WIDTH - 10) / steps, max(heaps)
    middle = times[len(times) // 2]
    out = [_svg(150, f"half of the tasks took up to {span(middle)}, the longest {span(times[-1])}")]
    for n, heap in enumerate(heaps):
        tall = heap / most * 110
        begin, over = (math.exp(low + (high - low) * k / steps) for k in (n, n + 1))
        out.append(_bar('fill="var(--mark)"', n * wide + 1, 120 - tall, wide - 2, tall,
                        f"{heap} tasks: {span(begin)} to {span(over)}"))
    out += [_text(0, 138, span(times[0])), _text(WIDTH - 10, 138, span(times[-1]), "end"),
            _text(WIDTH / 2, 138, f"half took up to {span(middle)}", "middle")]
    return "".join([*out, "</svg>"])


def _svg(height: int, told: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(told)}">'


def _bar(look: str, x: float, y: float, width: float, height: float, title: str) -> str:
    return (f'<rect {look} x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{html.escape(title)}</title></rect>")


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{html.escape(text)}</text>'
