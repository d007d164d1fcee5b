"""The measures of observability contract, section 8, computed from what was played. Pure: a recorded run gives the same again."""

from __future__ import annotations

import re
from collections import defaultdict
from statistics import median
from typing import Any

from msgspec import Struct, field

from kernel_evals.calls import Call, asked, calls, requests, results
from kernel_evals.play import Played

INVALID = ("invalid_arguments", "unknown_tool")
HISTOGRAMS = ("kernel.run.turns", "kernel.run.tool_calls", "kernel.run.duration", "kernel.request.ttft",
              "kernel.request.duration", "kernel.tool.duration", "kernel.structured.attempts",
              "kernel.hook.duration", "kernel.loop.overhead")
"""Their points are measured one by one; all others are counted. Milliseconds, but for turns, calls and attempts."""
TOKENS = {"input": "input_tokens", "output": "output_tokens", "cacheRead": "cache_read_input_tokens",
          "cacheCreation": "cache_creation_input_tokens"}
GAUGES = ("kernel.cache.read_ratio",)
_CITED = re.compile(r"\[(ev_\d+)\]")
_WORD = re.compile(r"\w{3,}")


class Point(Struct, kw_only=True):
    name: str
    value: float = 1.0
    attributes: dict[str, Any] = field(default_factory=dict)


def points(played: Played, probes: list[str]) -> list[Point]:
    """:param probes: facts that must survive a compaction."""
    found = calls(played)
    return [*_runs(played, found), *_tools(found), *_decisions(played), *_requests(played), *_compactions(played, probes),
            *_citations(played), *_structured(found), *_hooks(played)]


def number(value: Any) -> float:
    """0 where it is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _runs(played: Played, found: list[Call]) -> list[Point]:
    made = []
    for turn, result in enumerate(results(played)):
        duration = number(result.get("duration_ms"))
        made += [Point(name="kernel.run.count", attributes={"outcome": result.get("subtype"),
                                                            "terminal_reason": result.get("terminal_reason")}),
                 Point(name="kernel.run.turns", value=number(result.get("num_turns"))),
                 Point(name="kernel.run.tool_calls", value=float(sum(call.turn == turn for call in found))),
                 Point(name="kernel.run.duration", value=duration)]
    whole = sum(p.value for p in made if p.name == "kernel.run.duration")
    steps = [line for line in played.trace if line.get("kind") in ("request", "call") and not line.get("agent")]
    busy = sum(number(line.get("ms")) for line in steps)
    return [*made, Point(name="kernel.loop.overhead", value=max(0.0, whole - busy))] if made else made


def _tools(found: list[Call]) -> list[Point]:
    made = []
    invalid: set[tuple[str | None, str]] = set()
    seen: dict[tuple[Any, ...], int] = defaultdict(int)
    for place, call in enumerate(found):
        told = {"tool": call.tool, "status": call.status, "error_code": call.code}
        made.append(Point(name="kernel.tool.call.count", attributes=told))
        intent = (call.agent, call.tool)
        wrong = call.code in INVALID
        if intent not in invalid:  # the call behind an invalid one belongs to the same intent
            made.append(Point(name="kernel.tool.first_try", attributes={"tool": call.tool, "ok": not wrong}))
        invalid.add(intent) if wrong else invalid.discard(intent)
        if call.run is not None:
            made.append(Point(name="kernel.tool.duration", value=number(call.run.get("ms")), attributes={"tool": call.tool}))
        if call.status == "empty":
            later = any(c.tool == call.tool and c.turn == call.turn and c.input != call.input and c.status == "success"
                        for c in found[place + 1:])
            made.append(Point(name="kernel.tool.empty", attributes={"tool": call.tool, "recovered": later}))
        same = (call.turn, call.tool, repr(call.input), call.told)
        seen[same] += 1
        if seen[same] > 1:
            made.append(Point(name="kernel.tool.repeat", attributes={"tool": call.tool,
                                                                     "action": "blocked" if call.run is None else "noted"}))
    return made


def _decisions(played: Played) -> list[Point]:
    return [Point(name="kernel.tool.decision", attributes={
        "tool": line.get("tool"), "decision": "accept" if line.get("behavior") == "allow" else "reject",
        "source": line.get("source")})
        for line in played.trace if line.get("kind") == "decision"]


def _requests(played: Played) -> list[Point]:
    made = []
    for line in (line for line in played.trace if line.get("kind") == "request" and not line.get("error")):
        source = {"query_source": "subagent" if line.get("agent") else "main"}
        usage = {k: float(v) for k, v in (line.get("usage") or {}).items() if isinstance(v, int | float)}
        made.append(Point(name="kernel.request.duration", value=number(line.get("ms")), attributes=source))
        if line.get("ttft_ms") is not None:
            made.append(Point(name="kernel.request.ttft", value=float(line["ttft_ms"]), attributes=source))
        tokens = {kind: usage.get(key, 0.0) for kind, key in TOKENS.items()}
        made += [Point(name="claude_code.token.usage", value=n, attributes={"type": kind, **source})
                 for kind, n in tokens.items()]
        prompt = sum(n for kind, n in tokens.items() if kind != "output")
        if prompt:
            made.append(Point(name="kernel.cache.read_ratio", value=tokens["cacheRead"] / prompt, attributes=source))
    last = results(played)[-1:]
    return [*made, *(Point(name="claude_code.cost.usage", value=number(r.get("total_cost_usd"))) for r in last)]


def _compactions(played: Played, probes: list[str]) -> list[Point]:
    events = [line for line in played.trace if line.get("kind") == "event"]
    began = [line for line in events if line.get("event") == "PreCompact"]
    done = sum(line.get("event") == "PostCompact" for line in events)
    made = [Point(name="kernel.compaction.count", attributes={"trigger": line.get("trigger"), "success": number < done})
            for number, line in enumerate(began)]
    behind = [asked(r) for r in requests(played) if r.get("compacted")]
    return made + [Point(name="kernel.compaction.probe", attributes={"ok": all(fact in text for text in behind)})
                   for fact in probes if behind]


def _citations(played: Played) -> list[Point]:
    texts = {id: str(line.get("text", "")) for line in played.trace for id in line.get("evidence") or ()}
    made = []
    for result in results(played):
        said = f"{result.get('result') or ''}\n{result.get('structured_output') or ''}"
        for sentence in re.split(r"(?<=[.!?])\s|\n", said):
            for id in _CITED.findall(sentence):
                words = {w.lower() for w in _WORD.findall(_CITED.sub("", sentence))}
                held = {w.lower() for w in _WORD.findall(texts.get(id, ""))}
                supports = id in texts and len(words & held) >= len(words) / 2
                made.append(Point(name="kernel.citation.count", attributes={"exists": id in texts, "supports": supports}))
    return made


def _structured(found: list[Call]) -> list[Point]:
    tried = [call for call in found if call.tool == "StructuredOutput"]
    made = [Point(name="kernel.structured.attempt", attributes={"validator": "answer", "ok": not call.error}) for call in tried]
    return [*made, Point(name="kernel.structured.attempts", value=float(len(tried)))] if tried else made


def _hooks(played: Played) -> list[Point]:
    return [Point(name="kernel.hook.duration", value=float(ms), attributes={"event": line.get("event"), "plugin": plugin})
            for line in played.trace if line.get("kind") == "event" for plugin, ms, _ in line.get("plugins") or ()]


def summary(every: list[Point]) -> list[dict[str, Any]]:
    """A row for each metric and its attributes: the sum of what is counted; number, median and largest of what is measured."""
    heaps: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in every:
        heaps[point.name, repr(sorted(point.attributes.items(), key=lambda item: item[0]))].append(point)
    rows = []
    for (name, _), heap in sorted(heaps.items()):
        values = [p.value for p in heap]
        row: dict[str, Any] = {"metric": name, **{k: v for k, v in heap[0].attributes.items() if v is not None}}
        rows.append(row | ({"n": len(values), "median": round(median(values), 3), "max": round(max(values), 3)}
                           if name in HISTOGRAMS + GAUGES else {"sum": round(sum(values), 6)}))
    return rows


def rates(every: list[Point]) -> dict[str, float | None]:
    """The shares that section 8 names; ``None`` where there is nothing to share."""
    def share(name: str, part: dict[str, Any], among: dict[str, Any] | None = None) -> float | None:
        of = [p for p in every if p.name == name and all(p.attributes.get(k) == v for k, v in (among or {}).items())]
        good = sum(p.value for p in of if all(p.attributes.get(k) == v for k, v in part.items()))
        whole = sum(p.value for p in of)
        return round(good / whole, 4) if whole else None

    invalid = [share("kernel.tool.call.count", {"error_code": code}) for code in INVALID]
    repeats = sum(p.name == "kernel.tool.repeat" for p in every)
    made = sum(p.name == "kernel.tool.call.count" for p in every)
    return {
        "task completion rate": share("kernel.run.count", {"outcome": "success"}),
        "invalid tool-call ratio": None if invalid[0] is None else round(sum(v or 0.0 for v in invalid), 4),
        "arguments right at first try": share("kernel.tool.first_try", {"ok": True}),
        "recovery after empty results": share("kernel.tool.empty", {"recovered": True}),
        "repeat rate": round(repeats / made, 4) if made else None,
        "permission block rate": share("kernel.tool.decision", {"decision": "reject"}),
        "right recovery after compaction": share("kernel.compaction.probe", {"ok": True}),
        "citations that exist": share("kernel.citation.count", {"exists": True}),
        "citations that support": share("kernel.citation.count", {"supports": True}),
    }
