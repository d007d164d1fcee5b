"""Old sessions go (sessions contract, section 7): in the background, at most once a day, never through a link."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_sessions import running
from kernel_sessions.paths import config_home, is_session_id, make_private

if TYPE_CHECKING:
    from kernel import Session, Settings

DAY = 86_400
DAYS = 30
KEY = "cleanupPeriodDays"
STAMP = ".kernel-swept"
FLAT = ("plans", "debug", "shell-snapshots", "session-env")
"""Folders of ``CONFIG`` whose own old entries go."""


def begin(session: Session) -> None:
    """Sweep in a thread that nobody waits for, unless that was done within a day."""
    if session.options.extra.get("bare") or not session.transcript.kept:
        return
    stamp = config_home() / STAMP
    try:
        if time.time() - stamp.stat().st_mtime < DAY:
            return
    except OSError:
        pass
    days, problem = period(session.settings)
    if days is None:
        session.notice(f"Old sessions are not removed: {problem}")
        return
    try:
        make_private(stamp.parent)
        stamp.touch(mode=0o600)
        os.utime(stamp)
    except OSError:
        return  # without the mark every session would sweep
    import threading

    threading.Thread(target=sweep, args=(config_home(), time.time() - days * DAY, session.id), daemon=True).start()


def period(settings: Settings) -> tuple[int | None, str]:
    """Days that a session is kept; ``None`` and why where that is not certain."""
    given = [(layer, value) for layer, value in settings.by_layer(KEY)
             if settings.trusted or layer.scope not in ("project", "local")]  # no stranger's project removes a person's sessions
    if managed := [(layer, value) for layer, value in given if layer.scope == "managed"]:
        given = managed
    elif doubts := [p for p in settings.problems if given or not p.field]:
        return None, f"settings have errors ({doubts[0]})"
    if not given:
        return DAYS, ""
    layer, value = given[0]
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        return None, f"{layer.path}, {KEY}: expected a whole number of days, at least 1"
    return value, ""


def sweep(config: Path, oldest: float, own: str = "") -> list[Path]:
    """Remove what was last changed before ``oldest`` (seconds since the epoch); what was removed.

    A session that is running, here or in another process, stays with all that is its own.
    """
    alive = {own, *running.sessions()}
    gone: list[Path] = []
    for project in _folders(config / "projects"):
        for place in _entries(project):
            if place.suffix == ".jsonl" and is_session_id(place.stem):
                if place.stem.lower() not in alive and _is_old(place, oldest):
                    gone += [p for p in (place, place.with_suffix("")) if _remove(p)]
            elif is_session_id(place.name) and place.name.lower() not in alive \
                    and not place.with_name(f"{place.name}.jsonl").exists() and _is_old(place, oldest) and _remove(place):
                gone.append(place)
    for folder in _folders(config / "file-history") + _folders(config / "tasks"):
        if folder.name.lower() not in alive and _is_old(folder, oldest) and _remove(folder):
            gone.append(folder)
    for name in FLAT:
        for place in _entries(config / name):
            if place.stem.lower() not in alive and _is_old(place, oldest) and _remove(place):
                gone.append(place)
    return gone


def _entries(folder: Path) -> list[Path]:
    try:
        if folder.is_symlink():
            return []
        return sorted(Path(entry.path) for entry in os.scandir(folder))
    except OSError:
        return []


def _folders(folder: Path) -> list[Path]:
    return [p for p in _entries(folder) if not p.is_symlink() and p.is_dir()]


def _is_old(place: Path, oldest: float) -> bool:
    """Whether it and everything in it was last changed before that; links do not count as old."""
    try:
        state = place.lstat()
        if stat.S_ISLNK(state.st_mode) or state.st_mtime >= oldest:
            return False
        return not stat.S_ISDIR(state.st_mode) or all(
            os.lstat(os.path.join(root, name)).st_mtime < oldest for root, _, names in os.walk(place) for name in names)
    except OSError:
        return False


def _remove(place: Path) -> bool:
    try:
        if place.is_symlink():
            return False
        if place.is_dir():
            import shutil

            shutil.rmtree(place)
        else:
            place.unlink()
    except OSError:
        return False
    return True
