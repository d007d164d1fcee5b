"""Several files, changed as one.

1. Every new content is written beside its file, and synced. A full disk shows here, before anything is changed.
2. A journal that names them is put in place by rename: from here on the change happens, whatever else happens.
3. Each file is put in place by rename; then the journal is removed.

``recover`` carries a change to its end whose process died after 2, and removes the leftovers of one that died before.
A settings file that somebody else has written in between is not overwritten: the edit is made again on what is there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from kernel_manager.errors import ManagerError
from kernel_manager.steps import step

Edits = dict[str, Any]
"""A key path as ``enabledPlugins/fmt@acme`` -> its new value; ``None`` removes the key."""


class Change(Struct, kw_only=True):
    """One file: its whole new ``content``, or ``edits`` of a JSON object."""

    path: str
    content: str | None = None
    edits: Edits = field(default_factory=dict)
    base: str = ""
    staged: str = ""


class Journal(Struct):
    phase: str
    changes: list[Change]


def edited(raw: bytes, edits: Edits, path: str) -> bytes:
    """The JSON object with the edits; other keys and their order stay.

    :raises ManagerError: ``bad-settings``: it is no JSON object and is never overwritten.
    """
    try:
        data = json.loads(raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8")) if raw.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ManagerError("bad-settings", f"is not valid JSON: {error}", context=path, hint="mend it first") from None
    if not isinstance(data, dict):
        raise ManagerError("bad-settings", "must hold one JSON object", context=path, hint="mend it first")
    for key, value in edits.items():
        outer, _, inner = key.partition("/")
        place = data.setdefault(outer, {})
        if not isinstance(place, dict):
            raise ManagerError("bad-settings", f"{outer}: must be an object", context=path, hint="mend it first")
        if value is None:
            place.pop(inner, None)
        else:
            place[inner] = value
        if not place:
            del data[outer]
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def undo(raw: bytes, edits: Edits) -> Edits:
    """The edits that take these edits back."""
    try:
        data = json.loads(raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8")) if raw.strip() else {}
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return {}  # nothing of it can be edited, which is said when it is tried
    found: Edits = {}
    for key in edits:
        outer, _, inner = key.partition("/")
        place = data.get(outer)
        found[key] = place.get(inner) if isinstance(place, dict) else None
    return found


def read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def commit(journal: Path, changes: list[Change]) -> None:
    """Make all changes, or none.

    :raises OSError: the disk; nothing has changed then.
    :raises ManagerError: a settings file that cannot be edited; nothing has changed then. ``unfinished``: the disk failed
        behind the journal; the next command makes the rest.
    """
    step("prepare")
    for change in changes:
        change.path = os.path.realpath(change.path)  # a link stays; its target is written
        change.staged = f"{change.path}.kernel-{os.getpid()}.tmp"
    created = _prepare(journal, changes)
    try:
        for change in changes:
            raw = read(change.path)
            change.base = _digest(raw)
            content = change.content.encode() if change.content is not None else edited(raw, change.edits, change.path)
            _write(change.staged, content, like=change.path)
        step("journal")
        _write_json(journal, Journal("commit", changes))
    except BaseException:
        _forget(journal, changes, created)
        raise
    try:
        step("switch")
        _carry_out(journal, changes)
    except OSError as error:
        raise ManagerError("unfinished", f"the change is decided, but not yet made everywhere: {error.strerror or error}",
                           context=str(error.filename or journal), hint="kernel plugins list finishes it") from error


def _prepare(journal: Path, changes: list[Change]) -> list[Path]:
    created: list[Path] = []
    _write_json(journal, Journal("prepare", changes))
    for change in changes:
        folder = Path(change.path).parent
        while not folder.exists():
            created.append(folder)
            folder = folder.parent
        Path(change.path).parent.mkdir(parents=True, exist_ok=True)
    return created


def _forget(journal: Path, changes: list[Change], created: list[Path]) -> None:
    for change in changes:
        Path(change.staged).unlink(missing_ok=True)
    for folder in created:
        try:
            folder.rmdir()
        except OSError:
            pass
    journal.unlink(missing_ok=True)


def _carry_out(journal: Path, changes: list[Change]) -> None:
    for number, change in enumerate(changes):
        if not os.path.exists(change.staged):
            continue  # this one was done before its process died
        raw = read(change.path)
        if change.content is None and _digest(raw) != change.base:
            _write(change.staged, edited(raw, change.edits, change.path), like=change.path)
        os.replace(change.staged, change.path)
        _sync_folder(os.path.dirname(change.path))
        if number == 0:
            step("switched")
    step("clean")
    journal.unlink(missing_ok=True)


def recover(journal: Path) -> bool:
    """Carry out or forget what a process left that died. Returns whether a change was carried to its end."""
    try:
        found = msgspec.json.decode(journal.read_bytes(), type=Journal)
    except FileNotFoundError:
        return False
    except (msgspec.DecodeError, OSError) as error:
        raise ManagerError("bad-state", f"the journal cannot be read: {error}", context=str(journal), hint="remove it") from None
    if found.phase == "commit":
        _carry_out(journal, found.changes)
        return True
    _forget(journal, found.changes, [])
    return False


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def write_file(path: Path, content: bytes, *, write: Callable[[str, bytes], None] | None = None) -> None:
    """Replace one file: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = f"{path}.{os.getpid()}.tmp"
    try:
        (write or _write)(staged, content)
        os.replace(staged, path)
    except BaseException:
        Path(staged).unlink(missing_ok=True)
        raise


def _write(path: str, content: bytes, like: str | None = None) -> None:
    mode = 0o600
    if like is not None and os.path.exists(like):
        mode = os.stat(like).st_mode & 0o777
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(path, mode)


def _write_json(path: Path, value: Struct) -> None:
    write_file(path, msgspec.json.encode(value))


def _sync_folder(path: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
