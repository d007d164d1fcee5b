"""Transcripts of subagents, beside the conversation's own (sessions contract, section 1)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from kernel import Clock, Entry, Restored
from kernel_sessions.chain import Graph, restore
from kernel_sessions.entries import Stamp, line
from kernel_sessions.linefile import LineFile
from kernel_sessions.paths import make_private
from kernel_sessions.reader import Journal, read

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class SideTranscript:
    """One subagent's file. ``kept`` is the conversation's.

    :param folder: ``<session>/subagents``.
    :param meta: kept in ``agent-<id>.meta.json``; what stands there already is kept beside it.
    :param tell: called with (path, whole lines) for what was written; the sidecar's content is an entry of its own for it.
    """

    source: Literal["startup", "resume", "fork"] = "startup"

    def __init__(self, folder: Path, session_id: str, agent_id: str, meta: dict[str, Any], *, kept: bool, print_mode: bool,
                 clock: Clock, tell: Callable[[str, bytes], None] = lambda path, data: None,
                 writer: Callable[..., Any] = LineFile) -> None:
        if not _ID.fullmatch(agent_id):
            raise ValueError(f"{agent_id!r} cannot be the id of an agent")
        self.session_id = session_id
        self.kept = kept
        self.problems: list[str] = []
        self.restored = Restored()
        path = folder / f"agent-{agent_id}.jsonl"
        self.path = str(path)
        self._more = {"isSidechain": True, "agentId": agent_id}
        self._folder, self._sidecar = folder, folder / f"agent-{agent_id}.meta.json"
        tail, known, size = self._earlier(path) if kept else (None, set(), 0)
        self._stamp = Stamp(session_id, tail, print_mode=print_mode, clock=clock, known=known)
        self._tell = tell
        self._file = writer(path, end=size, report=self.problems.append, written=lambda data: tell(self.path, data))
        if kept:
            self._describe(meta)

    def _earlier(self, path: Path) -> tuple[str | None, set[str], int]:
        """What the agent has done so far becomes ``restored``; where its chain goes on."""
        try:
            journal = self._read(path)
        except FileNotFoundError:
            return None, set(), 0
        except OSError as error:
            self.problems.append(f"transcript {path} cannot be read: {error.strerror or error}")
            return None, set(), 0
        for entry in journal.lines:
            entry.entry["isSidechain"] = False  # in a file of its own the side chain is the chain
        graph = Graph(journal)
        chain = graph.active()
        self.restored = restore(journal, chain)
        self.problems += journal.problems()
        return chain.tail, set(graph.place), journal.size

    def _read(self, path: Path) -> Journal:
        return read(path)

    def _describe(self, meta: dict[str, Any]) -> None:
        try:
            make_private(self._folder)
            known = {**read_meta(self._sidecar), **{k: v for k, v in meta.items() if v is not None}}
            fd = os.open(self._sidecar, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(msgspec.json.encode(known))
            self._tell(self.path, line({"type": "agent_metadata", **known}))
        except OSError as error:
            self.problems.append(f"{self._sidecar} cannot be written: {error.strerror or error}")

    def append(self, entries: list[Entry], *, cwd: str) -> None:
        """Write the entries in one write; see ``kernel.Transcript``."""
        if self.kept and entries:
            mine = [msgspec.structs.replace(entry, extra={**self._more, **entry.extra}) for entry in entries]
            self._file.write(b"".join(self._stamp.lines(mine, cwd)))

    def set(self, kind: str, value: str) -> None:
        """Facts are the conversation's; an agent's file has none."""

    def child(self, agent_id: str, meta: dict[str, Any]) -> SideTranscript:
        raise NotImplementedError("agents of agents lie beside them: ask the conversation's transcript")

    def children(self) -> dict[str, dict[str, Any]]:
        return {}

    def close(self) -> None:
        self._file.close()


def read_meta(path: Path) -> dict[str, Any]:
    """What stands beside a subagent's transcript; empty where nothing can be read."""
    try:
        value = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def metas(folder: Path) -> dict[str, dict[str, Any]]:
    """The agents that have a transcript there, by id."""
    found = {}
    for path in sorted(folder.glob("agent-*.jsonl")):
        agent_id = path.stem.removeprefix("agent-")
        if _ID.fullmatch(agent_id):
            found[agent_id] = read_meta(path.with_suffix(".meta.json"))
    return found
