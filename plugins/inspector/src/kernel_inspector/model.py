"""A session as it is on disk now: its lanes, kept up to date by ``poll``."""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any

import msgspec

from kernel import EntryKey, EntryStore
from kernel_inspector.lane import Lane
from kernel_inspector.log import record_of
from kernel_inspector.requests import Facts
from kernel_inspector.rows import count, short, stamp
from kernel_inspector.source import Kept, Place, Tail, object_of

AGENT = "agent-"
FRESH_S = 10
"""A session that somebody else wrote to so many seconds ago is running."""
MOST_LANES = 500
"""Subagents that are shown."""


class SessionModel:
    """Not safe for several threads: the caller holds ``lock`` of the server, or is alone.

    ``version``: another number whenever something is different. ``gone``: the transcript was deleted. ``fault``: why a part of
    it is not shown.

    :param store: keeps the entries in the place of files; such a session is read once.
    :param facts: what is known of models, for prices that were not recorded.
    """

    def __init__(self, path: Path, store: EntryStore | None = None, facts: Facts = lambda model: None) -> None:
        self._facts = facts
        self.path = path
        self.id = path.stem
        self.version = 0
        self.fault = ""
        self.cwd = self.branch = ""
        self._store = store
        self._begin()

    def _begin(self) -> None:
        self.lanes: dict[str, Lane] = {"": Lane(facts=self._facts)}
        self.sources: dict[str, Tail | Kept] = {"": self._source("", self.path)}
        self._record = Tail(record_of(self.path))
        self._waiting: dict[str, deque[dict[str, Any]]] = {}
        self._unlinked: dict[str, str] = {}
        self.recorded = False

    @property
    def main(self) -> Lane:
        return self.lanes[""]

    @property
    def gone(self) -> bool:
        return self.sources[""].gone

    @property
    def title(self) -> str:
        facts = self.main.facts
        first = next((row.text for row in self.main.rows if row.kind == "turn"), "")
        return next((t for key in ("custom-title", "ai-title", "summary") if (t := facts.get(key))), first)

    @property
    def running(self) -> bool:
        """Whether a process of this machine has the session open (sessions contract, section 1). Of other programs' sessions
        only the last change is known."""
        for path in (self.path.parent.parent.parent / "sessions").glob(f"{escape(self.id)}.*.json"):
            with suppress(OSError, ValueError):
                pid = int(path.name.split(".")[1])
                os.kill(pid, 0)
                return True
        return not self.recorded and not self.gone and time.time() - self.sources[""].changed < FRESH_S

    def poll(self) -> bool:
        """Read what came since. True: something is different."""
        changed = self._record.read(self._recorded)
        if self._record.again:
            self._again()
        self._find_agents()
        for id in list(self.lanes):
            changed |= self.sources[id].read(self._taker(id))
            if self.sources[id].again:
                self._again()
                return True
            for record in self._waiting.pop(id, ()):
                self.lanes[id].record(record)
            self.lanes[id].settle()
        self._link()
        if changed:
            for lane in self.lanes.values():
                lane.mark_branches()
            self.version += 1
        return changed

    def line(self, lane: str, place: Place) -> dict[str, Any]:
        """An entry, read again; empty where it cannot be."""
        return object_of(self.sources[lane].at(place)) or {}

    def close(self) -> None:
        for source in self.sources.values():
            source.close()
        self._record.close()

    # -- inside --------------------------------------------------------------------------------------------------------
    def _again(self) -> None:
        """A file was replaced or cut: everything is read anew."""
        version = self.version
        self.close()
        self._begin()
        self.version = version
        self.poll()

    def _taker(self, id: str) -> Any:
        lane, waiting, first = self.lanes[id], self._waiting.get(id), not self.cwd and not id

        def take(entry: dict[str, Any], place: Place) -> None:
            nonlocal first
            if waiting:
                at = stamp(entry.get("timestamp"))
                while waiting and at and count(waiting[0].get("at")) <= at:
                    lane.record(waiting.popleft())
            if first and isinstance(entry.get("cwd"), str):
                first, self.cwd, self.branch = False, short(entry["cwd"], 500), short(entry.get("gitBranch"))
            lane.entry(entry, place)

        return take

    def _recorded(self, record: dict[str, Any], place: Place) -> None:
        self.recorded = True
        agent = record.get("agent")
        self._waiting.setdefault(agent if isinstance(agent, str) else "", deque()).append(record)

    def _source(self, subpath: str, path: Path) -> Tail | Kept:
        if self._store is None:
            return Tail(path)
        return Kept(self._store.load(EntryKey(self.path.parent.name, self.id, subpath)) or [])

    def _find_agents(self) -> None:
        if self._store is not None:
            if self.version:
                return
            key = EntryKey(self.path.parent.name, self.id)
            found = {Path(k).name.removeprefix(AGENT): k for k in self._store.list_subkeys(key)}
            for id, subpath in found.items():
                self._add_lane(id, self._source(subpath, Path()), {})
            return
        for path in (self.path.with_suffix("") / "subagents").rglob(f"{AGENT}*.jsonl"):
            id = path.stem.removeprefix(AGENT)
            if id and id not in self.lanes and len(self.lanes) <= MOST_LANES:
                try:
                    meta = object_of(path.with_suffix(".meta.json").read_bytes()) or {}
                except OSError:
                    meta = {}
                self._add_lane(id, Tail(path), meta)

    def _add_lane(self, id: str, source: Tail | Kept, meta: dict[str, Any]) -> None:
        lane = self.lanes[id] = Lane(id, self._facts)
        self.sources[id] = source
        lane.kind = short(meta.get("agentType"), 60) or "agent"
        lane.title = short(meta.get("description") or meta.get("name"), 120)
        lane.call = short(meta.get("toolUseId"), 100)
        if lane.call:
            self._unlinked[id] = lane.call

    def _link(self) -> None:
        """The calls that started the agents show the way to them."""
        for id, call in list(self._unlinked.items()):
            for lane in self.lanes.values():
                row = lane.row_of(call)
                if row is not None:
                    row.lane = id
                    del self._unlinked[id]
                    break


def encoded(value: Any) -> bytes:
    """JSON for the page."""
    return msgspec.json.encode(value, enc_hook=str)
