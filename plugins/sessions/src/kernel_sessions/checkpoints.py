"""What files were before the model changed them, prompt by prompt (sessions contract, section 6).

A checkpoint is the state of all followed files at one prompt, named by the prompt's uuid. A file is followed from the first
change on, and its content before that change is kept for good: so every checkpoint knows every followed file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from kernel import Clock, Options, Settings, env_switch
from kernel_sessions.paths import config_home, make_private

KIND = "file-history-snapshot"
KEPT = 100
"""Checkpoints of one session."""
LARGEST = 64 * 1024 * 1024
"""Bytes of a file that is followed."""


def enabled(options: Options, settings: Settings) -> bool:
    """Whether a run keeps checkpoints: print mode and hosts by the environment, else by ``fileCheckpointingEnabled``."""
    if env_switch("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING"):
        return False
    if options.print_mode:
        return env_switch("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING") is True
    return settings.get("fileCheckpointingEnabled") is not False


class Backup(Struct):
    """A file at one moment. ``file``: the name of the copy; ``None``: there was no such file.

    ``parent``: the folder it lay in, links resolved. ``skip``: it was a link or no regular file and is not followed.
    """

    file: str | None
    version: int
    parent: str
    skip: bool = False

    def wire(self, now: str) -> dict[str, Any]:
        more = {"skip": True} if self.skip else {}
        return {"backupFileName": self.file, "version": self.version, "backupTime": now, "parent": self.parent, **more}


class Checkpoint(Struct):
    message_id: str
    files: dict[str, Backup]


class Checkpoints:
    """Of one session. Writing is the caller's: what ``at_prompt`` and ``before_change`` return goes into the transcript.

    :param entries: the snapshot entries of the transcript that is resumed.
    """

    def __init__(self, session_id: str, clock: Clock, entries: Iterable[dict[str, Any]] = ()) -> None:
        self.folder = config_home() / "file-history" / session_id
        self.problems: list[str] = []
        self.points: list[Checkpoint] = []
        self.first: dict[str, Backup] = {}
        self._clock = clock
        self._now: dict[str, Backup] = {}
        self._seen: dict[str, tuple[int, ...]] = {}
        for entry in entries:
            self._restore(entry)

    # -- keeping --------------------------------------------------------------------------------------------------------
    def at_prompt(self, message_id: str) -> dict[str, Any]:
        """A prompt comes: keep what changed since the last one. The entry that says so."""
        for path in list(self._now):
            self._keep(path)
        self.points.append(Checkpoint(message_id, dict(self._now)))
        entry = self._entry(message_id, self._now, update=False)
        if len(self.points) > KEPT:
            del self.points[:-KEPT]
            self._drop_unused()
        return entry

    def before_change(self, path: str) -> dict[str, Any] | None:
        """A file is about to be changed. The entry that says so; ``None`` where the file is followed already."""
        if path in self._now or not self.points:
            return None
        if not self._keep(path):
            return None
        return self._follow([path])

    def adopt(self, olds: dict[str, bytes | None]) -> dict[str, Any] | None:
        """Files that were changed already, with their content before; what is followed already stays as it is."""
        new = []
        for path, old in olds.items():
            if path not in self._now and self.points:
                parent = os.path.realpath(os.path.dirname(path))
                self._now[path] = Backup(None if old is None else self._write(path, 1, old), 1, parent)
                new.append(path)
        return self._follow(new) if new else None

    def _follow(self, paths: list[str]) -> dict[str, Any]:
        point = self.points[-1]
        added = {path: self._now[path] for path in paths}
        point.files.update(added)
        for path, backup in added.items():
            self.first.setdefault(path, backup)
        return self._entry(point.message_id, added, update=True)

    def _keep(self, path: str) -> bool:
        """Copy the file if it is another one than the last copy. False: it cannot be followed."""
        last = self._now.get(path)
        version = last.version + 1 if last else 1
        parent = os.path.realpath(os.path.dirname(path))
        try:
            state = os.lstat(path)
        except OSError:
            if last is None or last.file is not None:
                self._now[path] = Backup(None, version, last.parent if last else parent)
            self._seen.pop(path, None)
            return True
        if not is_plain(state):
            if last is None:
                self._now[path] = Backup(None, version, parent, skip=True)
            return True
        mark = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_mode)
        if last and self._seen.get(path) == mark:
            return True
        if state.st_size > LARGEST:
            self._tell(f"{path} has {state.st_size:,} bytes; files over {LARGEST:,} bytes are not kept for rewinding")
            return False
        try:
            data = Path(path).read_bytes()
            if last is None or last.file is None or self.content(last) != data:
                self._now[path] = Backup(self._write(path, version, data), version, last.parent if last else parent)
        except OSError as error:
            self._tell(f"{path} cannot be kept for rewinding: {error.strerror or error}")
            return last is not None
        self._seen[path] = mark
        return True

    def _write(self, path: str, version: int, data: bytes) -> str:
        import hashlib

        name = f"{hashlib.sha256(path.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}@v{version}"
        make_private(self.folder)
        temporary = self.folder / f".{name}.tmp"
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(data)
        temporary.replace(self.folder / name)
        return name

    def _entry(self, message_id: str, files: dict[str, Backup], *, update: bool) -> dict[str, Any]:
        now = self._clock.timestamp()
        return {"type": KIND, "messageId": message_id, "isSnapshotUpdate": update, "snapshot": {
            "messageId": message_id, "timestamp": now,
            "trackedFileBackups": {path: backup.wire(now) for path, backup in files.items()}}}

    def _drop_unused(self) -> None:
        """Copies that no checkpoint needs any more, except each file's first."""
        used = {b.file for point in self.points for b in point.files.values()}
        used |= {b.file for b in (*self.first.values(), *self._now.values())}
        for place in self.folder.glob("*@v*"):
            if place.name not in used:
                with suppress(OSError):
                    place.unlink()

    def _tell(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)

    # -- reading --------------------------------------------------------------------------------------------------------
    def content(self, backup: Backup) -> bytes:
        """What was kept.

        :raises OSError: the copy is gone.
        """
        return (self.folder / str(backup.file)).read_bytes()

    def at(self, message_id: str) -> dict[str, Backup] | None:
        """Every followed file at that prompt; ``None`` where there is no checkpoint of it."""
        point = next((p for p in reversed(self.points) if p.message_id == message_id), None)
        return None if point is None else {**self.first, **point.files}

    def _restore(self, entry: dict[str, Any]) -> None:
        """A snapshot entry of a transcript; what does not fit is left out: copies are found by plain names only."""
        snapshot, message_id = entry.get("snapshot"), entry.get("messageId")
        files = snapshot.get("trackedFileBackups") if isinstance(snapshot, dict) else None
        if not isinstance(message_id, str) or not isinstance(files, dict):
            return
        kept = {path: backup for path, value in files.items() if os.path.isabs(path) and (backup := _backup(path, value))}
        point = next((p for p in reversed(self.points) if p.message_id == message_id), None)
        if point is None:
            point = Checkpoint(message_id, {})
            self.points.append(point)
            del self.points[:-KEPT]
        point.files.update(kept)
        self._now.update(kept)
        for path, backup in kept.items():
            self.first.setdefault(path, backup)


def _backup(path: str, value: Any) -> Backup | None:
    if not isinstance(value, dict):
        return None
    file, version, parent = value.get("backupFileName"), value.get("version"), value.get("parent")
    if not (file is None or (isinstance(file, str) and file == os.path.basename(file) and not file.startswith("."))):
        return None
    if not isinstance(version, int):
        return None
    return Backup(file, version, parent if isinstance(parent, str) else os.path.dirname(path), bool(value.get("skip")))


def is_plain(state: os.stat_result) -> bool:
    """A regular file with one name."""
    return stat.S_ISREG(state.st_mode) and state.st_nlink == 1
