"""What is wrong with a transcript, and the same file without it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kernel import Clock
from kernel_sessions.chain import Graph, calls, results
from kernel_sessions.entries import line
from kernel_sessions.reader import CHAIN_TYPES, Journal, decode, parse, salvage

NOTES = frozenset({"branch", "unfinished"})
"""Findings that are no problem: the file is as it should be."""
CUT_OFF = "The call was cut off; whether it had an effect is not known."


class Finding(Struct):
    """``line``: counted from 1; 0 for the whole file."""

    kind: str
    line: int
    text: str

    @property
    def is_problem(self) -> bool:
        return self.kind not in NOTES

    def wire(self) -> dict[str, Any]:
        return {"kind": self.kind, "line": self.line, "text": self.text, "problem": self.is_problem}


def findings(journal: Journal) -> list[Finding]:
    """Everything about a file that a person may want to know, in the order of its lines."""
    graph = Graph(journal)
    chain = graph.active()
    found = [Finding("torn" if "incomplete" in d.reason else "damaged", d.number, d.reason) for d in journal.damages]
    if journal.torn and not any(f.kind == "torn" for f in found):
        found.append(Finding("torn", 0, "the last line has no line end"))
    for entry in journal.lines:
        parent = entry.entry.get("parentUuid")
        if isinstance(parent, str) and parent and parent not in graph.place:
            found.append(Finding("orphan", entry.number, f"its parent {parent} is not in the file"))
    seen: set[str] = set()
    for entry in journal.lines:
        if entry.uuid in seen:
            found.append(Finding("twice", entry.number, f"the uuid {entry.uuid} stands in the file before"))
        seen.add(entry.uuid)
    answered = {r for entry in chain.lines for r in results(entry.entry)}
    called: set[str] = set()
    for entry in chain.lines:
        found += [Finding("open-call", entry.number, f"the call {c} has no result")
                  for c in calls(entry.entry) if c not in answered]
        found += [Finding("stray-result", entry.number, f"a result for {r}, which was not called")
                  for r in results(entry.entry) if r not in called]
        called.update(calls(entry.entry))
    aside = len(journal.lines) - len(chain.lines) - sum(len(s) for s in graph.before_compaction(chain))
    if journal.lines and not chain.messages():
        found.append(Finding("empty", 0, "there is no conversation in it"))
    elif aside > 0:
        found.append(Finding("branch", 0, f"{aside} entries belong to branches that were left"))
    return sorted(found, key=lambda f: f.line)


def rewritten(journal: Journal, clock: Clock) -> tuple[bytes, list[str]]:
    """The file as it should be, and what was done to it; nothing done: the same bytes.

    Damaged lines are left out, entries behind them are linked to those before, open calls get a result that says so. Whole
    entries stay byte for byte where nothing of theirs is wrong.
    """
    data = journal.path.read_bytes()
    done: list[str] = []
    bad = {d.number for d in journal.damages}
    graph = Graph(journal)
    entries = {entry.number: (n, entry.entry) for n, entry in enumerate(journal.lines)}
    kept: list[bytes] = []
    for number, raw in enumerate(data.split(b"\n"), 1):
        if not raw.strip():
            continue
        if number not in entries:
            if number in bad:
                reason = next(d.reason for d in journal.damages if d.number == number)
                whole = salvage(raw)
                if whole and whole["type"] in CHAIN_TYPES:
                    whole = None  # it would be among the entries if it could be used
                done.append(f"line {number} was left out{' but for the whole entry at its end' if whole else ''}: {reason}")
                kept += [line(whole)] if whole else []
            elif decode(raw) is None:
                done.append(f"line {number} was left out: it was cut off and stands whole behind")
            else:
                kept.append(raw + b"\n")
            continue
        place, entry = entries[number]
        parent = graph.parent(place)
        if graph.is_orphan(place) and not entry.get("isCompactSummary"):
            parent = next((e.uuid for e in reversed(journal.lines[:place]) if not e.is_sidechain), None)
        if number in bad:
            done.append(f"line {number}: what can be used of it was kept")
            kept.append(line({**entry, "parentUuid": parent}))
        elif parent != entry.get("parentUuid"):
            done.append(f"line {number} hangs from {parent or 'nothing'} now, its parent was lost")
            kept.append(line({**entry, "parentUuid": parent}))
        else:
            kept.append(raw + b"\n")
    if journal.torn and not done:
        done.append("the last line has its line end")
    new = b"".join(kept)
    closing, said = _closing(parse(journal.path, new), clock)
    return (new + closing, [*done, *said]) if done or said else (data, [])


def _closing(journal: Journal, clock: Clock) -> tuple[bytes, list[str]]:
    """Results for the calls at the end that have none."""
    chain = Graph(journal).active()
    last = next((e for e in reversed(chain.entries) if e["type"] in ("user", "assistant")), None)
    if last is None:
        return b"", []
    answered = {r for e in chain.entries for r in results(e)}
    message = last.get("message") or {}
    turn = [e for e in chain.entries if e["type"] == "assistant" and (e.get("message") or {}).get("id") == message.get("id")]
    missing = [c for e in (turn if last["type"] == "assistant" else []) for c in calls(e) if c not in answered]
    if not missing:
        return b"", []
    blocks = [{"type": "tool_result", "tool_use_id": c, "content": CUT_OFF, "is_error": True} for c in missing]
    entry = {**{k: v for k, v in last.items() if k not in ("message", "requestId")}, "type": "user", "uuid": clock.new_id(),
             "parentUuid": chain.tail, "timestamp": clock.timestamp(), "message": {"role": "user", "content": blocks}}
    return line(entry), [f"the call {c} got a result that says it was cut off" for c in missing]


