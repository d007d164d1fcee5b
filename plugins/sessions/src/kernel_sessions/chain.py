"""From the entries of a file to the one conversation that is active (sessions contract, section 2.4).

Entries form a tree by ``parentUuid``: rewinds and second writers leave branches behind. The public readers' algorithm
decides which branch counts. Where it would lose recorded work, this one keeps more: results of parallel calls that hang
beside the chain, and entries before a damaged line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from kernel import Restored
from kernel_sessions.reader import Journal, Line

SYNTHETIC = "<synthetic>"
INTERRUPT_MARK = "[Request interrupted by user"


class Chain:
    """Entries from the root to the leaf. New entries hang from ``tail``.

    ``lost``: the number of the first line, where what was before it is not in the file.
    """

    def __init__(self, lines: list[Line], tail: str | None, lost: int | None = None) -> None:
        self.lines = lines
        self.tail = tail
        self.lost = lost

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [line.entry for line in self.lines]

    def messages(self) -> list[dict[str, Any]]:
        """The user and assistant entries that the model saw or wrote."""
        return self._messages

    @cached_property
    def _messages(self) -> list[dict[str, Any]]:
        return [e for e in self.entries if _is_message(e) and not e.get("isApiErrorMessage")]

    @property
    def unfinished(self) -> bool:
        """Whether the last turn did not come to its end: a kill, a crash, SIGTERM (4.5)."""
        messages = self.messages()
        if not messages:
            return False
        last = messages[-1]
        if last["type"] == "assistant":
            return bool(calls(last))
        return not _text(last).startswith(INTERRUPT_MARK)


class Graph:
    """The tree of one file.

    A uuid that stands in the file twice means its last line, except as a parent: there it means the last one before the
    child, so that a message that a host sent again makes no circle.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.lines = journal.lines
        self.place = {line.uuid: n for n, line in enumerate(self.lines)}
        self._again: dict[str, list[int]] = {}
        if len(self.place) != len(self.lines):
            for n, line in enumerate(self.lines):
                self._again.setdefault(line.uuid, []).append(n)
        self._damaged = [d.number for d in journal.damages if not d.salvaged]

    # -- choosing ------------------------------------------------------------------------------------------------------
    def active(self) -> Chain:
        """The conversation that counts; empty if the file holds none."""
        named = {parent for line in self.lines if isinstance(parent := line.entry.get("parentUuid"), str)}
        best: tuple[tuple[bool, int, int], int, int] | None = None
        for uuid, terminal in self.place.items():
            if uuid in named:
                continue
            leaf = self._nearest(terminal, meta=True)
            if leaf is None:
                continue
            rank = self._rank(leaf)
            if best is None or (rank, terminal) >= best[::2]:
                best = (rank, leaf, terminal)
        if best is None:  # every entry names another one: a circle, cut at its last message
            leaf = next((n for n in range(len(self.lines) - 1, -1, -1) if _is_message(self.lines[n].entry)), None)
            return Chain([], None) if leaf is None else self._chain(leaf, leaf)
        return self._chain(best[1], best[2])

    def upto(self, uuid: str) -> Chain | None:
        """The chain that ends with that entry, wherever it hangs; ``None`` if there is no such entry."""
        end = self.place.get(uuid)
        return None if end is None else self._chain(end, end, before=end)

    def _rank(self, leaf: int) -> tuple[bool, int, int]:
        """Main conversation first, then the latest in the file.

        A leaf that is context (``isMeta``) counts as the message that it was added to: otherwise a kill right after a
        hook's context would bring an abandoned branch back to life.
        """
        real = self._nearest(leaf, meta=False)
        main = real is not None and not _is_aside(self.lines[leaf].entry) and not _is_aside(self.lines[real].entry)
        return main, real if main and real is not None else leaf, leaf

    def _nearest(self, start: int, *, meta: bool) -> int | None:
        """The nearest user or assistant entry at or above a place, with or without the meta ones."""
        return next((n for n in self._up(start) if self.lines[n].entry["type"] in ("user", "assistant")
                     and (meta or not self.lines[n].entry.get("isMeta"))), None)

    # -- walking -------------------------------------------------------------------------------------------------------
    def _up(self, start: int) -> Iterator[int]:
        """Places from an entry to its root; ends where a circle closes."""
        seen: set[int] = set()
        place: int | None = start
        while place is not None and place not in seen:
            seen.add(place)
            yield place
            place = self._above(place)

    def _above(self, place: int) -> int | None:
        parent = self.lines[place].entry.get("parentUuid")
        if not isinstance(parent, str) or not parent:
            return None
        found = self.place.get(parent)
        if found is not None and found >= place and parent in self._again:
            found = next((n for n in reversed(self._again[parent]) if n < place), found)
        return found if found is not None else self._across_damage(place)

    def parent(self, place: int) -> str | None:
        """The uuid of the entry that another one really hangs from; ``None`` at a root."""
        above = self._above(place)
        return None if above is None else self.lines[above].uuid

    def _across_damage(self, place: int) -> int | None:
        """The entry before a damaged line, if the missing parent may have stood there.

        A summary's parent is the compaction boundary: going on from there would bring the whole past back.
        """
        if not self._damaged or self.lines[place].entry.get("isCompactSummary"):
            return None
        before = next((n for n in range(place - 1, -1, -1) if not self.lines[n].is_sidechain), None)
        if before is None:
            return None
        gap = bisect_right(self._damaged, self.lines[before].number)
        return before if gap < len(self._damaged) and self._damaged[gap] < self.lines[place].number else None

    def _chain(self, leaf: int, terminal: int, before: int | None = None) -> Chain:
        places = list(self._up(leaf))[::-1]
        tail = next((n for n in self._up(terminal) if self.lines[n].entry["type"] != "progress"), leaf)
        lost = self.lines[places[0]].number if self.is_orphan(places[0]) else None
        return Chain(self._with_results(places, before), self.lines[tail].uuid, lost)

    def is_orphan(self, place: int) -> bool:
        """Whether an entry names a parent that is not in the file and cannot be guessed."""
        parent = self.lines[place].entry.get("parentUuid")
        return isinstance(parent, str) and bool(parent) and parent not in self.place and self._across_damage(place) is None

    def _with_results(self, places: list[int], before: int | None) -> list[Line]:
        """The chain, with results that hang beside it.

        Results of parallel calls may each have their own call as parent; then only one of them is on the chain. One
        that was recorded and led to no answer of its own belongs to the conversation.
        """
        lines = [self.lines[n] for n in places]
        answered = {r for line in lines for r in results(line.entry)}
        lost = {c: n for n, line in enumerate(lines) for c in calls(line.entry) if c not in answered}
        if not lost:
            return lines
        on_chain = set(places)
        found: dict[int, list[Line]] = {}
        for place, line in enumerate(self.lines[: None if before is None else before + 1]):
            mine = [r for r in results(line.entry) if r in lost]
            if not mine or place in on_chain or line.is_sidechain or line.uuid in self._answered_uuids:
                continue
            at = lost[mine[0]]
            while at + 1 < len(lines) and lines[at + 1].entry["type"] == "assistant":
                at += 1
            found.setdefault(at, []).append(line)
            for call in mine:
                lost.pop(call, None)
        return [x for n, line in enumerate(lines) for x in (line, *found.get(n, ()))]

    @cached_property
    def _answered_uuids(self) -> set[str]:
        """Entries that some assistant entry descends from."""
        above: set[int] = set()
        for n, line in enumerate(self.lines):
            if line.entry["type"] == "assistant":
                for place in self._up(n):
                    if place in above and place != n:
                        break
                    above.add(place)
        return {self.lines[n].uuid for n in above}

    def before_compaction(self, chain: Chain) -> list[list[Line]]:
        """The stretches of conversation that compactions closed, oldest first."""
        stretches: list[list[Line]] = []
        seen: set[str] = set()
        first = chain.lines[0] if chain.lines else None
        while first is not None:
            link = first.entry.get("logicalParentUuid")
            if not isinstance(link, str) or link in seen or (earlier := self.upto(link)) is None:
                break
            seen.add(link)
            stretches.insert(0, earlier.lines)
            first = earlier.lines[0]
        return stretches


# -- what entries hold ----------------------------------------------------------------------------------------------------
def restore(journal: Journal, chain: Chain) -> Restored:
    """What a resumed conversation brings along; the kernel makes the messages legal."""
    messages = [(e["type"], c if isinstance(c := e["message"]["content"], str) else _blocks(e)) for e in chain.messages()]
    models = [m for e in chain.messages() if e["type"] == "assistant" and (m := e["message"].get("model")) != SYNTHETIC]
    return Restored(messages=messages, model=next((m for m in reversed(models) if isinstance(m, str) and m), None),
                    permission_mode=journal.fact("permission-mode"), title=journal.fact("custom-title", "ai-title"),
                    agent=journal.fact("agent-setting"), deferred=journal.fact("deferred-tool"))


def calls(entry: dict[str, Any]) -> list[str]:
    """Ids of the tool calls of an assistant entry."""
    if entry.get("type") != "assistant":
        return []
    return [b["id"] for b in _blocks(entry) if b.get("type") == "tool_use" and isinstance(b.get("id"), str)]


def results(entry: dict[str, Any]) -> list[str]:
    """Ids of the calls that a user entry answers."""
    if entry.get("type") != "user":
        return []
    return [b["tool_use_id"] for b in _blocks(entry) if b.get("type") == "tool_result" and isinstance(b.get("tool_use_id"), str)]


def is_prompt(entry: dict[str, Any]) -> bool:
    """Whether a person (or a host) said this, as opposed to results, context, summaries and interrupt marks."""
    return (_is_message(entry) and entry["type"] == "user" and not entry.get("isMeta") and not entry.get("isCompactSummary")
            and not results(entry) and not _text(entry).startswith(INTERRUPT_MARK))


def first_prompt(entries: Iterable[dict[str, Any]]) -> str:
    """The first words of a conversation, for a title."""
    text = next((t for e in entries if is_prompt(e) and (t := " ".join(_text(e).split()))), "")
    return text if len(text) <= 200 else f"{text[:200].rstrip()}\u2026"


def _is_aside(entry: dict[str, Any]) -> bool:
    """A subagent's or a team's entry: not part of this conversation."""
    return bool(entry.get("isSidechain") or entry.get("teamName"))


def _is_message(entry: dict[str, Any]) -> bool:
    message = entry.get("message")
    return (entry.get("type") in ("user", "assistant") and not _is_aside(entry) and isinstance(message, dict)
            and isinstance(message.get("content"), str | list))


def _blocks(entry: dict[str, Any]) -> list[dict[str, Any]]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def _text(entry: dict[str, Any]) -> str:
    content = entry["message"]["content"]
    if isinstance(content, str):
        return content
    return "".join(str(b.get("text", "")) for b in content if isinstance(b, dict) and b.get("type") == "text")
