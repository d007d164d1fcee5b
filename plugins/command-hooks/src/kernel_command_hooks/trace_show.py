"""``kernel hooks trace SESSION``: what hooks did in a session, and how long each plugin took."""

from __future__ import annotations

from collections.abc import Iterator
from glob import escape
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from kernel import UsageError, config_dir
from kernel_command_hooks.trace import FILE, SETTING, how_it_ended

COLUMNS = ("median", "p95", "max", "total")


def find(session: str) -> Path:
    """The trace of a session: by its id, the beginning of one, or the path of the transcript or of the trace.

    :raises UsageError: there is none, or there are several.
    """
    given = Path(session).expanduser()
    for path in (given, given.parent / given.stem / FILE) if given.name else ():
        if path.name == FILE and path.is_file():
            return path
    found = sorted((config_dir() / "projects").glob(f"*/{escape(session)}*/{FILE}")) if "/" not in session and session else []
    if not found:
        raise UsageError(f"the hooks of the session {session!r} were not traced",
                         hint=f"set {SETTING} to true in settings, or run with --debug")
    if len(found) > 1:
        raise UsageError(f"several traced sessions begin with {session!r}", hint=", ".join(p.parent.name for p in found))
    return found[0]


def read(path: Path) -> dict[str, Any]:
    """All lines of a trace, and figures per plugin and per handler. Lines that are no JSON are counted, not shown."""
    firings: list[dict[str, Any]] = []
    damaged = 0
    for line in path.read_bytes().splitlines():
        try:
            firings.append(msgspec.json.decode(line, type=dict[str, Any]))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            damaged += 1
    plugins: dict[str, list[float]] = {}
    handlers: dict[str, list[float]] = {}
    for firing in firings:
        for name, ms in firing.get("plugins", {}).items():
            plugins.setdefault(name, []).append(ms)
        for row in _handlers(firing):
            handlers.setdefault(f"{firing['event']} {row['label']}", []).append(row["ms"])
    return {"path": str(path), "firings": firings, "damaged_lines": damaged, "plugins": _figures(plugins),
            "handlers": _figures(handlers)}


def _handlers(firing: dict[str, Any]) -> list[dict[str, Any]]:
    return [*firing.get("handlers", []), *([firing["background"]] if "background" in firing else [])]


def _figures(times: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Milliseconds. ``p95`` is the smallest value that 95 of 100 runs did not exceed."""
    return {name: {"runs": len(ms), "total": round(sum(ms), 3), "median": round(median(ms), 3),
                   "p95": sorted(ms)[max(0, -(-len(ms) * 95 // 100) - 1)], "max": max(ms)}
            for name, ms in sorted(times.items(), key=lambda item: -sum(item[1]))}


def as_text(report: dict[str, Any]) -> str:
    lines = [line for firing in report["firings"] for line in _firing(firing)]
    for title, name in (("plugin", "plugins"), ("handler", "handlers")):
        if report[name]:
            lines += ["", f"{title:<50} {'runs':>6}" + "".join(f" {column + ' ms':>10}" for column in COLUMNS)]
            lines += [f"{who[:50]:<50} {figures['runs']:>6}" + "".join(f" {figures[column]:>10.2f}" for column in COLUMNS)
                      for who, figures in report[name].items()]
    if report["damaged_lines"]:
        lines.append(f"{report['damaged_lines']} damaged lines were left out")
    return "\n".join(lines)


def _firing(firing: dict[str, Any]) -> Iterator[str]:
    """A firing in which something was done or said; the others are in the figures alone."""
    if not (firing.keys() & {"handlers", "answers", "errors", "background"}):
        return
    took = max(firing.get("plugins", {}).values(), default=0.0)
    call = f" {firing['tool_use_id']}" if "tool_use_id" in firing else ""
    agent = f" (agent {firing['agent_id']})" if "agent_id" in firing else ""
    yield f"{firing['at']} {firing['name']}{call}{agent}" + (f" {took:.1f} ms" if "plugins" in firing else " in the background")
    for row in _handlers(firing):
        yield f"  ran {row['label']}: {how_it_ended(row)}, {row['ms']:.1f} ms"
    for row in firing.get("answers", ()):
        yield f"  {row['source']} says {msgspec.json.encode(row['answer']).decode()}"
    for row in firing.get("errors", ()):
        yield f"  plugin {row['plugin']} failed: {row['error']}"
    if firing.get("merged"):
        yield f"  together: {msgspec.json.encode(firing['merged']).decode()}"
