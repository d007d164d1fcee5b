"""The project's own measures (observability contract, section 8), computed from events alone.

``Measures`` is fed with one event after the other while a run goes on; ``recompute`` does the same with the events of a recorded
run and gives the same points.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec


class Measured(NamedTuple):
    """One point. ``kind``: ``counter``, ``histogram`` or ``gauge``."""

    name: str
    kind: str
    unit: str
    value: float
    attributes: dict[str, Any]


NAMES = {
    "kernel.run.count": ("counter", "", "runs by how they ended"),
    "kernel.run.turns": ("histogram", "", "answers of a run"),
    "kernel.run.tool_calls": ("histogram", "", "tool calls of a run"),
    "kernel.run.duration": ("histogram", "ms", "from the prompt to the result"),
    "kernel.loop.overhead": ("histogram", "ms", "time of a run in which no model and no tool was at work and nobody was asked"),
    "kernel.tool.call.count": ("counter", "", "tool calls by what came of them"),
    "kernel.tool.first_try": ("counter", "", "whether the first call of an intent passed the checks of its arguments"),
    "kernel.tool.empty": ("counter", "", "empty results, and whether a later call with another query found something"),
    "kernel.tool.repeat": ("counter", "", "the same call with the same result again"),
    "kernel.tool.decision": ("counter", "", "permission decisions"),
    "kernel.tool.duration": ("histogram", "ms", "time in which a tool ran"),
    "kernel.compaction.count": ("counter", "", "compactions"),
    "kernel.compaction.probe": ("counter", "", "facts asked for after a compaction"),
    "kernel.citation.count": ("counter", "", "citations"),
    "kernel.structured.attempt": ("counter", "", "structured answers that were handed in"),
    "kernel.structured.attempts": ("histogram", "", "structured answers of a run that had any"),
    "kernel.request.ttft": ("histogram", "ms", "until the first event of an answer"),
    "kernel.request.duration": ("histogram", "ms", "a request that succeeded"),
    "kernel.cache.read_ratio": ("gauge", "", "cache reads / tokens of the prompt, of the last request"),
    "kernel.hook.duration": ("histogram", "ms", "one plugin's work on one event"),
}
"""Every measure: kind, unit, what it tells."""
BAD_ARGUMENTS = frozenset({"invalid_arguments", "unknown_tool"})
FOUND = frozenset({"success", "partial"})


class Measures:
    """What one conversation's events came to so far; subagents' calls count with those of the conversation."""

    def __init__(self) -> None:
        self._calls = 0
        self._handed_in = 0
        self._invalid: set[str] = set()
        self._empty: dict[str, tuple[str, list[str]]] = {}
        self._seen: dict[str, tuple[str, int]] = {}

    def take(self, name: str, attributes: Mapping[str, Any]) -> Iterator[Measured]:
        """The points of one event; ``name`` as in ``event.name``."""
        handler = _HANDLERS.get(name)
        return handler(self, attributes) if handler is not None else iter(())

    # -- calls -----------------------------------------------------------------------------------------------------------
    def _tool_result(self, a: Mapping[str, Any]) -> Iterator[Measured]:
        tool = str(a.get("tool_name", ""))
        key = str(a.get("kernel.tool_digest") or tool)
        code = str(a.get("error_type") or "")
        status = str(a.get("kernel.status") or ("success" if a.get("success") == "true" else "error"))
        yield from self._call(tool, status, code)
        if tool == "StructuredOutput":
            self._handed_in += 1
            yield _point("kernel.structured.attempt", {"validator": "answer", "ok": a.get("success") == "true"})
        if code in BAD_ARGUMENTS:
            if key not in self._invalid:  # the next call of the tool belongs to the same intent
                self._invalid.add(key)
                yield _point("kernel.tool.first_try", {"tool": tool, "ok": False})
        elif key in self._invalid:
            self._invalid.discard(key)
        else:
            yield _point("kernel.tool.first_try", {"tool": tool, "ok": True})
        if a.get("kernel.ran") is True:
            yield _point("kernel.tool.duration", {"tool": tool}, float(a.get("duration_ms") or 0))
        yield from self._search(tool, key, status, str(a.get("kernel.input_digest") or ""))
        yield from self._again(tool, a)

    def _call(self, tool: str, status: str, code: str) -> Iterator[Measured]:
        self._calls += 1
        yield _point("kernel.tool.call.count", {"tool": tool, "status": status, "error_code": code or None})

    def _search(self, tool: str, key: str, status: str, query: str) -> Iterator[Measured]:
        """Empty results wait for a later call with another query; the end of the run decides on those that still wait."""
        _, waiting = self._empty.setdefault(key, (tool, []))
        if status == "empty":
            waiting.append(query)
        elif status in FOUND and (others := [q for q in waiting if q != query]):
            waiting[:] = [q for q in waiting if q == query]
            yield _point("kernel.tool.empty", {"tool": tool, "recovered": True}, len(others))

    def _again(self, tool: str, a: Mapping[str, Any]) -> Iterator[Measured]:
        query, outcome = str(a.get("kernel.input_digest") or ""), str(a.get("kernel.result_digest") or "")
        if not query or not outcome:
            return
        last, times = self._seen.get(query, ("", 0))
        if a.get("kernel.ran") is not True and times >= 2:
            yield _point("kernel.tool.repeat", {"tool": tool, "action": "blocked"})
            return
        times = times + 1 if outcome == last else 1
        self._seen[query] = (outcome, times)
        if times == 2:
            yield _point("kernel.tool.repeat", {"tool": tool, "action": "noted"})

    def _decision(self, a: Mapping[str, Any]) -> Iterator[Measured]:
        told = {"tool": a.get("tool_name"), "decision": a.get("decision"), "source": a.get("source")}
        yield _point("kernel.tool.decision", told)
        if a.get("decision") == "reject":
            yield from self._call(str(a.get("tool_name", "")), "blocked", "permission_denied")

    # -- requests --------------------------------------------------------------------------------------------------------
    def _request(self, a: Mapping[str, Any]) -> Iterator[Measured]:
        told = {"model": a.get("model"), "query_source": a.get("query_source")}
        yield _point("kernel.request.duration", told, float(a.get("duration_ms") or 0))
        if a.get("kernel.ttft_ms") is not None:
            yield _point("kernel.request.ttft", told, float(a["kernel.ttft_ms"]))
        read = int(a.get("cache_read_tokens") or 0)
        whole = read + int(a.get("input_tokens") or 0) + int(a.get("cache_creation_tokens") or 0)
        if whole:
            yield _point("kernel.cache.read_ratio", {"query_source": a.get("query_source")}, read / whole)

    def _compaction(self, a: Mapping[str, Any]) -> Iterator[Measured]:
        yield _point("kernel.compaction.count", {"trigger": a.get("trigger"), "success": a.get("success") == "true"})
        if a.get("success") == "true":
            self._seen.clear()  # the model cannot look at the old results any more

    def _probe(self, a: Mapping[str, Any]) -> Iterator[Measured]:
        yield _point("kernel.compaction.probe", {"ok": bool(a.get("ok"))})

    def _citation(self, a: Mapping[str, Any]) -> Iterator[Measured]:
        yield _point("kernel.citation.count", {"exists": bool(a.get("exists")), "supports": bool(a.get("supports"))})

    def _hooks(self, a: Mapping[str, Any]) -> Iterator[Measured]:
        try:
            seconds = msgspec.json.decode(str(a.get("kernel.plugin_ms") or "{}"), type=dict[str, float])
        except msgspec.MsgspecError:
            return
        for plugin, ms in seconds.items():
            yield _point("kernel.hook.duration", {"event": a.get("hook_event"), "plugin": plugin}, ms)

    # -- the run ---------------------------------------------------------------------------------------------------------
    def _run(self, a: Mapping[str, Any]) -> Iterator[Measured]:
        for tool, waiting in self._empty.values():
            if waiting:
                yield _point("kernel.tool.empty", {"tool": tool, "recovered": False}, len(waiting))
        yield _point("kernel.run.count", {"outcome": a.get("outcome"), "terminal_reason": a.get("terminal_reason")})
        yield _point("kernel.run.turns", {}, float(a.get("num_turns") or 0))
        yield _point("kernel.run.tool_calls", {}, self._calls)
        yield _point("kernel.run.duration", {}, float(a.get("duration_ms") or 0))
        if a.get("overhead_ms") is not None:
            yield _point("kernel.loop.overhead", {}, float(a["overhead_ms"]))
        if self._handed_in:
            yield _point("kernel.structured.attempts", {}, self._handed_in)
        self.__init__()  # type: ignore[misc]  # the next run begins with nothing


_HANDLERS = {"tool_result": Measures._tool_result, "tool_decision": Measures._decision, "api_request": Measures._request,
             "compaction": Measures._compaction, "hook_execution_complete": Measures._hooks, "kernel.run": Measures._run,
             "kernel.probe": Measures._probe, "kernel.citation": Measures._citation}


def recompute(events: Iterable[Mapping[str, Any]]) -> list[Measured]:
    """The points of a recorded run.

    :param events: the attributes of its events in their order, as an exporter got them (``event.name`` is one of them). Of
        several sessions each is counted by itself.
    """
    sessions: dict[str, Measures] = {}
    found: list[Measured] = []
    for attributes in events:
        measures = sessions.setdefault(str(attributes.get("session.id", "")), Measures())
        found += measures.take(str(attributes.get("event.name", "")), attributes)
    return found


def _point(name: str, attributes: dict[str, Any], value: float = 1) -> Measured:
    kind, unit, _ = NAMES[name]
    return Measured(name, kind, unit, value, {k: v for k, v in attributes.items() if v is not None})
