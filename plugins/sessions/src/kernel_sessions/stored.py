"""Conversations in an entry store: the same chains, forks and titles as in files, in a database or elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from kernel import EntryKey, EntryStore, SessionError
from kernel_sessions import find
from kernel_sessions.entries import line
from kernel_sessions.find import Loaded
from kernel_sessions.paths import is_session_id, project_dir, projects_dir
from kernel_sessions.reader import Journal, collect, decode
from kernel_sessions.side import SideTranscript
from kernel_sessions.transcript import FileTranscript

AGENTS = "subagents/agent-"
SHOWN = ("custom_title", "ai_title", "last_prompt", "summary_hint", "first_prompt")


class StoreLines:
    """Stands where a file's lines would go (``LineFile``). What cannot be stored now waits and is tried again."""

    def __init__(self, store: EntryStore, key: EntryKey, path: Path, *, end: int = 0, report: Callable[[str], None],
                 foreign: Callable[[bytes, int], None] = lambda data, offset: None,
                 written: Callable[[bytes], None] = lambda lines: None) -> None:
        self.end = end
        self.waiting = b""
        self._store, self._key = store, key
        self._report, self._written = report, written
        self._told = False

    @property
    def begun(self) -> bool:
        return bool(self.end or self.waiting)

    def write(self, lines: bytes) -> bool:
        """Hand all waiting lines over in one call of the store. True when it has them."""
        self.waiting += lines
        entries = [entry for raw in self.waiting.split(b"\n") if raw and (entry := decode(raw)) is not None]
        try:
            self._store.append(self._key, entries)
        except Exception as error:
            if not self._told:
                self._told = True
                self._report(f"the store {self._store.name!r} does not take the session's entries ({error}); the session goes on "
                             "in memory, and every later step tries again")
            return False
        self.end += len(self.waiting)
        done, self.waiting = self.waiting, b""
        self._written(done)
        return True

    def mend(self) -> None:
        """Nothing is ever torn."""

    def sync(self) -> None:
        """What was taken is durable."""

    def look(self) -> None:
        """What others add is read at the next resume."""

    def close(self) -> None:
        """The store is not ours."""


class StoredTranscript(FileTranscript):
    """``path`` is where the file would be; what is too long for the conversation lies beside it. No checkpoints."""

    def __init__(self, store: EntryStore, path: Path, stamp: Any, **more: Any) -> None:
        self._store = store
        self._key = EntryKey(path.parent.name, path.stem)
        super().__init__(path, stamp, **more, writer=partial(StoreLines, store, self._key))

    def child(self, agent_id: str, meta: dict[str, Any]) -> SideTranscript:
        key = EntryKey(self._key.project_key, self._key.session_id, f"{AGENTS}{agent_id}")
        return StoredSide(self._store, key, self._agents, self.session_id, agent_id, meta, kept=self.kept,
                          print_mode=self._print_mode, clock=self._clock, tell=self._tell_of)

    def children(self) -> dict[str, dict[str, Any]]:
        found = {}
        for subpath in self._store.list_subkeys(self._key):
            if subpath.startswith(AGENTS):
                entries = self._store.load(EntryKey(self._key.project_key, self._key.session_id, subpath)) or []
                found[subpath.removeprefix(AGENTS)] = _meta(entries)
        return found


class StoredSide(SideTranscript):
    def __init__(self, store: EntryStore, key: EntryKey, *args: Any, **more: Any) -> None:
        self._store, self._key = store, key
        self._old: list[dict[str, Any]] = []
        super().__init__(*args, **more, writer=partial(StoreLines, store, key))

    def _read(self, path: Path) -> Journal:
        try:
            self._old = self._store.load(self._key) or []
        except Exception as error:
            raise OSError(str(error)) from error
        return collect(path, self._old)

    def _describe(self, meta: dict[str, Any]) -> None:
        old = _meta(self._old)
        known = {**old, **{k: v for k, v in meta.items() if v is not None}}
        if not self._old or known != old:
            self._file.write(line({"type": "agent_metadata", **known}))


class StoredFinder:
    """Finds conversations in the folder of the session and in the worktrees of its repository; a store lists no others."""

    def __init__(self, store: EntryStore) -> None:
        self._store = store

    def transcript(self, path: Path, stamp: Any, **more: Any) -> FileTranscript:
        return StoredTranscript(self._store, path, stamp, **more)

    def wanted(self, name: str, cwd: str) -> Loaded:
        """See ``find.wanted``."""
        if is_session_id(name):
            found = next(filter(None, (self._load(key, name.lower()) for key in _projects(cwd))), None)
        else:
            found = self._titled(name, cwd)
        if found is None:
            raise SessionError(f"No conversation found with session ID: {name}")
        return found

    def newest(self, cwd: str, *, interactive: bool) -> Loaded | None:
        """See ``find.newest``."""
        project = project_dir(cwd).name
        dated = sorted(self._asked("list_sessions", project), key=lambda s: s["mtime"], reverse=True)
        for session in dated:
            found = self._load(project, session["session_id"])
            if found is None or (interactive and str(found.chain.entries[0].get("entrypoint", "")).startswith("sdk-")):
                continue
            return found
        return None

    def is_taken(self, session_id: str, cwd: str) -> bool:
        return any(self._asked("load", EntryKey(project, session_id)) is not None for project in _projects(cwd))

    def listed(self, cwd: str) -> list[dict[str, Any]]:
        """Rows as ``Listed.wire`` has them, as far as the summaries tell."""
        rows = []
        found = self._asked("list_session_summaries", project_dir(cwd).name)
        for item in sorted(found, key=lambda item: item["mtime"], reverse=True):
            data = item["data"]
            shown = next((data[k] for k in SHOWN if data.get(k)), "")
            if shown and not data.get("is_sidechain"):
                rows.append({"session": item["session_id"], "changed": _time(item["mtime"]), "title": data.get("custom_title"),
                             "shown": " ".join(str(shown).split())})
        return rows

    def _titled(self, title: str, cwd: str) -> Loaded | None:
        named: dict[str, list[tuple[str, str]]] = {"custom_title": [], "ai_title": []}
        for project in _projects(cwd):
            for summary in self._asked("list_session_summaries", project):
                data = summary["data"]
                shown = next((k for k in named if data.get(k)), None)
                if shown and data[shown] == title:
                    named[shown].append((project, summary["session_id"]))
        found = named["custom_title"] or named["ai_title"]
        if len(found) > 1:
            raise SessionError(f"{len(found)} conversations have the title {title!r}", context="--resume",
                               hint=f"resume one by its ID: {', '.join(id for _, id in found)}")
        return self._load(*found[0]) if found else None

    def _load(self, project: str, session_id: str) -> Loaded | None:
        entries = self._asked("load", EntryKey(project, session_id))
        if entries is None:
            return None
        path = projects_dir() / project / f"{session_id}.jsonl"
        return find.active(collect(path, entries))

    def _asked(self, method: str, *args: Any) -> Any:
        try:
            return getattr(self._store, method)(*args)
        except Exception as error:
            raise SessionError(f"the store {self._store.name!r} cannot be read: {error}") from error


def _time(mtime: float) -> str:
    """Milliseconds since the epoch as ISO 8601; empty where a store means something else."""
    try:
        return datetime.fromtimestamp(mtime / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""


def _projects(cwd: str) -> list[str]:
    return [folder.name for folder in find.repository_dirs(cwd)]


def _meta(entries: list[dict[str, Any]]) -> dict[str, Any]:
    last: dict[str, Any] = next((e for e in reversed(entries) if e.get("type") == "agent_metadata"), {})
    return {k: v for k, v in last.items() if k != "type"}
