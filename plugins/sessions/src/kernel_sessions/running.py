"""One small file per running session, so that a second process on the same conversation can be noticed.

``CONFIG/sessions/<session>.<pid>.json``. Best effort: nothing here is needed for correctness, and nothing raises.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from kernel import Clock
from kernel_sessions.paths import config_home, make_private


def announce(session_id: str, cwd: str, entrypoint: str, clock: Clock) -> Path | None:
    """Write the file of this process; ``None`` if that is not possible."""
    path = config_home() / "sessions" / f"{session_id}.{os.getpid()}.json"
    content = {"pid": os.getpid(), "born": _born(os.getpid()), "host": os.uname().nodename, "sessionId": session_id, "cwd": cwd,
               "entrypoint": entrypoint, "startedAt": clock.timestamp()}
    try:
        make_private(path.parent)
        path.write_bytes(msgspec.json.encode(content, enc_hook=str))
        path.chmod(0o600)
    except (OSError, UnicodeError):
        return None
    return path


def others(session_id: str) -> list[int]:
    """Processes on this machine that have the session open."""
    return [int(c["pid"]) for p in _files() if p.name.startswith(f"{session_id}.") and (c := _read(p))
            and c["pid"] != os.getpid() and _lives(c)]


def sessions() -> set[str]:
    """The sessions that some process on this machine has open."""
    return {str(c["sessionId"]).lower() for p in _files() if (c := _read(p)) and "sessionId" in c and _lives(c)}


def retract(path: Path) -> None:
    """Remove the file, and what killed processes left."""
    for place in [path, *(p for p in _files() if (c := _read(p)) and not _lives(c))]:
        try:
            place.unlink(missing_ok=True)
        except OSError:
            pass


def _files() -> list[Path]:
    try:
        return list((config_home() / "sessions").glob("*.*.json"))
    except OSError:
        return []


def _read(path: Path) -> dict[str, Any] | None:
    """The content of a file of ours from this machine."""
    try:
        content = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    known = isinstance(content, dict) and isinstance(content.get("pid"), int) and content.get("host") == os.uname().nodename
    return content if known else None


def _lives(content: dict[str, Any]) -> bool:
    """Whether that very process is still there; a number may have been given to another one since."""
    try:
        os.kill(content["pid"], 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return bool(_born(content["pid"]) == content.get("born"))


def _born(pid: int) -> str:
    """When the process started, in the system's own count; empty where that cannot be read."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
