"""Files go back to what they were at a prompt; the conversation is not touched (sessions contract, section 6)."""

from __future__ import annotations

import os
import stat
from collections import Counter
from contextlib import suppress
from typing import Any

from kernel import SessionError
from kernel_sessions.checkpoints import Backup, Checkpoints, is_plain


def rewind(checkpoints: Checkpoints, message_id: str, *, dry_run: bool = False) -> dict[str, Any]:
    """Put every followed file back. One that fails does not stop the others; ``failed`` says which and why.

    :returns: see ``kernel.Session.rewind_files``. Lines are counted without regard to their order.
    :raises SessionError: there is no checkpoint of that message.
    """
    wanted = checkpoints.at(message_id)
    if wanted is None:
        raise SessionError("No file checkpoint found for this message")
    done: dict[str, Any] = {"canRewind": True, "filesChanged": [], "insertions": 0, "deletions": 0}
    skipped, failed = 0, []
    for path, backup in wanted.items():
        if backup.skip or not _is_where_it_was(path, backup):
            skipped += 1
            continue
        try:
            now = _read(path)
            then = None if backup.file is None else checkpoints.content(backup)
            if now == then:
                continue
            if not dry_run:
                _put(path, then)
        except OSError as error:
            failed.append(f"{path}: {error.strerror or error}")
            continue
        done["filesChanged"].append(path)
        before, after = Counter((now or b"").splitlines()), Counter((then or b"").splitlines())
        done["insertions"] += (after - before).total()
        done["deletions"] += (before - after).total()
    if skipped and not dry_run:
        done["skippedLinks"] = skipped
    if failed:
        done["failed"] = failed
    return done


def _is_where_it_was(path: str, backup: Backup) -> bool:
    """A regular file with one name, or none at all, in the folder of that time."""
    if os.path.realpath(os.path.dirname(path)) != backup.parent:
        return False
    try:
        state = os.lstat(path)
    except OSError:
        return True
    return is_plain(state)


def _read(path: str) -> bytes | None:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _put(path: str, data: bytes | None) -> None:
    """Replace the file whole, or remove it. Its mode stays."""
    if data is None:
        os.unlink(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = os.path.join(os.path.dirname(path), f".kernel-{os.urandom(8).hex()}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(os.lstat(path).st_mode))
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
