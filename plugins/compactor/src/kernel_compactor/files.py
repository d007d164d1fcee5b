"""Files that were read lately are read again, so that the model need not (context contract, 8.3)."""

from __future__ import annotations

import os
import stat

from kernel import Block, PermissionCall, Session, reminder

FILES = 5
CHARS_EACH = 20_000
CHARS_ALL = 200_000
MAX_BYTES = 1024 * 1024
_MEMORY = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "MEMORY.md")


def again(session: Session) -> list[Block]:
    """The last files, as they are now, newest last. What was deleted, is no text or may not be read is left out."""
    plan = session.plan_file
    found: list[Block] = []
    room = CHARS_ALL
    for path in reversed(list(session.read_files)):
        if len(found) == FILES:
            break
        if os.path.basename(path) in _MEMORY or path == plan or not _may(session, path):
            continue
        text = _text(path)
        if text is None or not text.strip():
            continue
        shown = text[:min(CHARS_EACH, room)]
        room -= len(shown)
        left = len(text) - len(shown)
        cut = f"\n... ({left:,} more characters: read it again if they matter)" if left else ""
        found.append(reminder(f"The file {path}, read before, as it is now:\n{shown}{cut}"))
    return found[::-1]


def forget_lines(session: Session) -> None:
    """What was read is known, but its lines are no longer before the model: a second look is no repetition."""
    for state in session.read_files.values():
        state.start = state.end = None


def _may(session: Session, path: str) -> bool:
    tool = session.toolbox.by_name.get("Read")
    if tool is None:
        return False
    try:
        call = PermissionCall(tool=tool, input={"file_path": path}, cwd=session.state.cwd, mode=session.state.permission_mode,
                              agent_id=session.agent_id)
        return bool(session.policy.decide(call).behavior == "allow")
    except Exception:
        return False


def _text(path: str) -> str | None:
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
        with open(number, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_BYTES:
                return None
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError):
        return None
    return None if b"\0" in raw else raw.decode("utf-8", "replace")
