"""The files of a server: its folder, its socket, the token beside it, and the lock that only one server can have."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
from collections.abc import Iterator

from kernel import UsageError
from kernel_serve.places import fallback, token_file


@contextlib.contextmanager
def claimed(path: str) -> Iterator[None]:
    """The only server of that socket, as long as it lives, however it ends."""
    folder = os.path.dirname(path)
    try:
        _make_folder(folder, path)
        facts = os.stat(folder)
        if facts.st_uid not in (os.geteuid(), 0) or (facts.st_mode & 0o022 and not facts.st_mode & stat.S_ISVTX):
            raise UsageError("others may write to its folder", context=f"--socket {path}", hint=f"chmod go-w {folder}")
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"cannot be made: {error.strerror}", context=f"--socket {path}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise UsageError("another server has this socket", context=f"--socket {path}",
                         hint="kernel serve status shows it, kernel serve stop ends it") from None
    try:
        yield
    finally:
        os.close(lock)


def _make_folder(folder: str, path: str) -> None:
    """Each level that is made is private. Those in a folder that all users share must be ours: others can be there first."""
    missing, level = [], folder
    while not os.path.lexists(level):
        missing.append(level)
        level = os.path.dirname(level)
    for level in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(level, 0o700)
    shared, level = os.path.dirname(fallback()), folder
    while level != shared and level.startswith(fallback()):
        facts = os.lstat(level)
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
            raise UsageError(f"{level} must be a folder of yours that nobody else may look into", context=f"--socket {path}",
                             hint="set XDG_RUNTIME_DIR or KERNEL_SERVE to a private place, or remove it")
        level = os.path.dirname(level)


def write_token(path: str, token: str) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(number, "w", encoding="ascii") as file:
        file.write(token + "\n")


def left_behind(path: str) -> list[str]:
    """The socket and the token that a server before this one left there.

    :raises UsageError: what is there is something else.
    """
    found = []
    for one, form, is_ours in ((path, "a socket", _is_socket), (token_file(path), "a token of kernel serve", _is_token)):
        try:
            facts = os.lstat(one)
            if facts.st_uid != os.geteuid() or not is_ours(one, facts):
                raise UsageError(f"{one} is there, and is not {form} of yours", context=f"--socket {path}",
                                 hint="choose another path, or remove it")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(f"{one} cannot be read: {error.strerror}", context=f"--socket {path}") from None
        found.append(one)
    return found


def _is_socket(path: str, facts: os.stat_result) -> bool:
    return stat.S_ISSOCK(facts.st_mode)


def _is_token(path: str, facts: os.stat_result) -> bool:
    """Also an empty one: the server ended before it wrote."""
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > 100:
        return False
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return re.fullmatch(rb"(?:[A-Za-z0-9_-]{43}\n)?", file.read(101)) is not None


def clear(path: str) -> None:
    """Remove what ``left_behind`` finds.

    :raises UsageError: something else is there, or it cannot be removed.
    """
    for one in left_behind(path):
        try:
            os.unlink(one)
        except OSError as error:
            raise UsageError(f"{one} cannot be removed: {error.strerror}", context=f"--socket {path}") from None


def identity(path: str) -> tuple[int, int]:
    """Which file that is, whatever it is called."""
    facts = os.lstat(path)
    return facts.st_dev, facts.st_ino


def remove(path: str, made: tuple[int, int]) -> None:
    """:param made: the file's ``identity``; another one that stands there now is left alone."""
    with contextlib.suppress(OSError):
        if identity(path) == made:
            os.unlink(path)
