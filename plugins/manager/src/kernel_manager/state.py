"""What is installed: one small file, replaced by rename, and version folders that never change.

``<config dir>/kernel/plugins/`` holds ``state.json``, ``store/`` (``name-version-digest``, one folder a version),
``catalogues/`` (fetched marketplaces), ``history/`` (earlier states), ``staging/``, ``lock`` and ``journal.json``.
The form of ``state.json`` is that of the public ``installed_plugins.json`` with more fields (plugins contract, 10).
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kernel import config_dir
from kernel_manager import changes
from kernel_manager.errors import ManagerError
from kernel_manager.sources import Source

VERSION = 2
LOCK_SECONDS = 60.0
KEPT_STATES = 20


class StoredDistribution(Struct, rename="camel", kw_only=True):
    """One Python distribution in the store; ``folder`` is relative to the plugins folder."""

    name: str
    version: str
    folder: str
    digest: str
    sha256: str | None = None


class Record(Struct, rename="camel", kw_only=True):
    """One plugin in one scope. ``install_path`` (the plugin root), ``base`` (the stored folder) and ``path`` (for the import
    path) are relative to the plugins folder. ``asked`` is the source as asked for, ``source`` the one that was fetched."""

    scope: str
    name: str
    version: str
    install_path: str
    base: str
    digest: str
    installed_at: str
    last_updated: str
    project_path: str | None = None
    git_commit_sha: str | None = None
    module: str | None = None
    path: list[str] = field(default_factory=list)
    asked: Source | None = None
    source: Source | None = None
    auto: bool = False
    dependencies: list[Any] = field(default_factory=list)
    distributions: list[StoredDistribution] = field(default_factory=list)

    def place(self) -> tuple[str, str | None]:
        return self.scope, self.project_path


class Catalogue(Struct, rename="camel", kw_only=True):
    """A marketplace that is known: its public source object and the folder that it was fetched into (or lies in)."""

    source: dict[str, Any]
    install_location: str
    last_updated: str
    commit: str | None = None
    auto_update: bool = False


class State(Struct, rename="camel", kw_only=True):
    version: int = VERSION
    generation: int = 0
    plugins: dict[str, list[Record]] = field(default_factory=dict)
    marketplaces: dict[str, Catalogue] = field(default_factory=dict)
    undo: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Settings file -> edits that take this change back."""
    did: str = ""
    """What led to this state, for people."""

    def find(self, id: str, projects: tuple[str, ...] = (), scope: str | None = None) -> Record | None:
        """The record of an id in a scope; without a scope the one that counts in the project: its own before the user's."""
        records = [r for r in self.plugins.get(id, [])
                   if scope in (None, r.scope) and (r.scope == "user" or r.project_path in projects)]
        return min(records, key=lambda r: ("local", "project", "user").index(r.scope), default=None)

    def put(self, id: str, record: Record) -> None:
        self.plugins[id] = [*(r for r in self.plugins.get(id, []) if r.place() != record.place()), record]

    def drop(self, id: str, record: Record) -> None:
        left = [r for r in self.plugins.get(id, []) if r.place() != record.place()]
        if left:
            self.plugins[id] = left
        else:
            self.plugins.pop(id, None)

    def stored(self) -> set[str]:
        """Every folder of the store and of the catalogues that this state needs."""
        needed = {r.base for records in self.plugins.values() for r in records}
        needed |= {d.folder for records in self.plugins.values() for r in records for d in r.distributions}
        return needed | {c.install_location for c in self.marketplaces.values()}


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Home:
    """The plugins folder and what lies in it."""

    def __init__(self, root: Path | None = None) -> None:
        self.config = config_dir()
        self.root = root or self.config / "kernel" / "plugins"
        self.file = self.root / "state.json"
        self.journal = self.root / "journal.json"
        self.store = self.root / "store"
        self.catalogues = self.root / "catalogues"
        self.history = self.root / "history"

    def read(self, file: Path | None = None) -> State:
        """The state; an empty one where nothing was ever installed.

        :raises ManagerError: ``bad-state``.
        """
        file = file or self.file
        try:
            state = msgspec.json.decode(file.read_bytes(), type=State)
        except FileNotFoundError:
            return State()
        except (msgspec.DecodeError, UnicodeError, OSError) as error:
            raise ManagerError("bad-state", f"cannot be read: {error}", context=str(file),
                               hint="kernel plugins rollback takes the state before it") from None
        if state.version > VERSION:  # writing it would lose what we do not know
            raise ManagerError("bad-state", f"has the version {state.version}; this kernel reads up to {VERSION}",
                               context=str(file), hint="use the kernel that wrote it")
        return state

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One change at a time over all processes; what a dead process left is carried to its end first."""
        self.root.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _wait_for(handle)
            changes.recover(self.journal)
            shutil.rmtree(self.root / "staging", ignore_errors=True)
            yield
        finally:
            os.close(handle)

    def recover(self) -> None:
        """For commands that only read: finish what a dead process left, where nobody else is at it."""
        if self.journal.exists():
            with self.locked():
                pass

    @contextmanager
    def staging(self) -> Iterator[Path]:
        folder = self.root / "staging" / f"{os.getpid()}-{time.monotonic_ns()}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def switch(self, state: State, settings: dict[str, changes.Edits], did: str, *, settings_first: bool = False) -> State:
        """Make a new state and settings edits the ones that count, as one change. The state before goes to the history.

        :param settings: settings file -> edits.
        :param settings_first: for what is taken away: it is switched off before it is gone.
        """
        before = self.file.read_bytes() if self.file.exists() else msgspec.json.encode(State())
        state.generation += 1
        state.did = did
        state.undo = {path: changes.undo(changes.read(os.path.realpath(path)), edits) for path, edits in settings.items()}
        kept = self.history / f"{state.generation - 1:08d}.json"
        changes.write_file(kept, before)
        files = [changes.Change(path=str(self.file), content=msgspec.json.format(msgspec.json.encode(state)).decode())]
        edits = [changes.Change(path=path, edits=edit) for path, edit in settings.items() if edit]
        changes.commit(self.journal, [*edits, *files] if settings_first else [*files, *edits])
        for old in sorted(self.history.glob("*.json"))[:-KEPT_STATES]:
            old.unlink(missing_ok=True)
        return state

    def earlier(self) -> list[tuple[int, Path]]:
        """Earlier states, the latest first."""
        return sorted(((int(p.stem), p) for p in self.history.glob("*.json") if p.stem.isdigit()), reverse=True)


def _wait_for(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # no locks on this system; the renames are still whole
        return
    start, said = time.monotonic(), False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            waited = time.monotonic() - start
            if waited > 1 and not said:
                said = bool(sys.stderr.write("another kernel process is changing the plugins; waiting for it ...\n"))
            if waited > LOCK_SECONDS:
                raise ManagerError("busy", "another kernel process is changing the plugins", hint="try again later") from None
            time.sleep(0.05)
