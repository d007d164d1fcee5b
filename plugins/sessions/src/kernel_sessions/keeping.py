"""Rename, tag, delete, replace: what is done to sessions from outside (sessions contract, section 5)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from kernel import SessionError, UsageError
from kernel_sessions import running
from kernel_sessions.entries import fact_line, plain_tag
from kernel_sessions.linefile import LineFile
from kernel_sessions.paths import config_home


def rename(path: Path, title: str) -> None:
    """Name a session, running or not.

    :raises UsageError: no name is left of the title.
    """
    title = " ".join(title.split())
    if not title:
        raise UsageError("an empty name names nothing", context="title")
    _append(path, "custom-title", title)


def tag(path: Path, text: str) -> None:
    """Tag a session; an empty text removes the tag."""
    _append(path, "tag", plain_tag(text))


def delete(path: Path) -> list[Path]:
    """Remove the transcript and all that lies beside it; what was removed.

    :raises SessionError: it runs, or cannot be removed.
    """
    refuse_running(path.stem)
    gone = []
    for place in (path, path.with_suffix(""), config_home() / "file-history" / path.stem):
        try:
            if place.is_symlink() or place.is_file():
                place.unlink()
            elif place.is_dir():
                shutil.rmtree(place)
            else:
                continue
        except OSError as error:
            raise SessionError(f"{place} cannot be removed: {error.strerror or error}") from None
        gone.append(place)
    return gone


def replace(path: Path, data: bytes) -> Path:
    """Put a mended file in the place of a transcript; where the original is now."""
    saved = path.with_name(f"{path.name}.before-repair")
    number = 1
    while saved.exists():
        number += 1
        saved = path.with_name(f"{path.name}.before-repair-{number}")
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(path, saved)
        temporary.replace(path)
    except OSError as error:
        raise SessionError(f"{path} cannot be mended: {error.strerror or error}") from None
    return saved


def refuse_running(session_id: str) -> None:
    """:raises SessionError: some process has the session open."""
    if session_id.lower() in running.sessions():
        raise SessionError(f"session {session_id} is open in another process", hint="end that one first")


def _append(path: Path, kind: str, value: str) -> None:
    problems: list[str] = []
    file = LineFile(path, end=path.stat().st_size, report=problems.append)
    file.mend()
    file.write(fact_line(kind, value, path.stem.lower()))
    file.close()
    if problems:
        raise SessionError(problems[0])
