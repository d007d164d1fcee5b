"""A file that only grows: whole lines at its end, each batch in one write (sessions contract, section 3).

Other processes may append to the same file at any time. ``O_APPEND`` keeps whole batches apart; before each write the
file's size says whether somebody else was there, and what they left is looked at (their last line may be torn, a
rename may stand in it).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from kernel_sessions.paths import make_private

Durability = Literal["off", "turn", "entry"]
LOOK_BACK = 1024 * 1024
"""Bytes of another writer's additions that are looked at."""


class LineFile:
    """Lines that cannot be written wait in memory and are tried again with the next batch; nothing is lost or raised.

    :param end: the size up to which the file's content is known.
    :param report: told once if the file cannot be written, and each time it was removed while in use.
    :param foreign: called with (bytes, offset) for what others appended.
    :param written: called with the whole lines that went to the file.
    """

    def __init__(self, path: Path, *, end: int = 0, report: Callable[[str], None],
                 foreign: Callable[[bytes, int], None] = lambda data, offset: None,
                 written: Callable[[bytes], None] = lambda lines: None) -> None:
        self.path = path
        self.end = end
        self.waiting = b""
        self._report = report
        self._foreign = foreign
        self._written = written
        self._fd: int | None = None
        self._torn = False
        self._tail = b""
        self._told = False
        self._is_new = False

    @property
    def begun(self) -> bool:
        """Whether the file has content, or would have if the disk allowed it."""
        return bool(self.end or self.waiting)

    def mend(self) -> None:
        """Close a line that another process left open, so that the next one stands alone."""
        try:
            self._ready()
            self._put(self._closing(), b"")
        except OSError as error:
            self._fail(error)

    def write(self, lines: bytes) -> bool:
        """Append whole lines. True when they are in the file: from then on they survive a kill of the process."""
        self.waiting += lines
        try:
            self._ready()
            self._put(self._closing() if self._torn else b"", self.waiting)
        except OSError as error:
            self._fail(error)
            return False
        self.waiting = b""
        return True

    def sync(self) -> None:
        """Make what was written survive a loss of power."""
        if self._fd is not None:
            try:
                os.fdatasync(self._fd)
                if self._is_new:
                    self._is_new = False
                    _sync_directory(self.path.parent)
            except OSError as error:
                self._fail(error)

    def look(self) -> None:
        """Notice what others appended."""
        if self._fd is not None:
            try:
                self._ready()
            except OSError as error:
                self._fail(error)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    # -- inside ----------------------------------------------------------------------------------------------------------
    def _ready(self) -> int:
        """The descriptor, with everything before the next write looked at."""
        fd = self._fd if self._fd is not None else self._open()
        state = os.fstat(fd)
        if not state.st_nlink:
            self._report(f"transcript {self.path} was removed while it was in use; what follows goes to a new file")
            self.close()
            self.end = 0
            fd = self._open()
            state = os.fstat(fd)
        if state.st_size != self.end:
            self._look(fd, self.end, state.st_size)
            self.end = state.st_size
        return fd

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_APPEND
        try:
            self._fd = os.open(self.path, flags)
        except FileNotFoundError:
            make_private(self.path.parent)
            self._fd = os.open(self.path, flags | os.O_CREAT, 0o600)
            self._is_new = True
        self._torn = False
        if self.end:  # known content may end in the middle of a line
            self._look_at_tail(self._fd, self.end)
        return self._fd

    def _closing(self) -> bytes:
        """What closes a torn line before the next write; empty if none is torn.

        A line may look torn only because another process is in the middle of a write. Setting the mode to what it is
        waits for that write, since both hold the file's lock: if the size is the same afterwards, nobody was writing.
        A newline too many is an empty line and harms nobody; half a character would be rubbish.
        """
        for _ in range(3):
            if not self._torn or self._fd is None:
                return b""
            size = self.end
            try:
                os.fchmod(self._fd, stat.S_IMODE(os.fstat(self._fd).st_mode))
            except OSError:
                break
            self._ready()
            if self.end == size:
                return completion(self._tail)
        return b"\n"

    def _put(self, prefix: bytes, lines: bytes) -> None:
        fd = self._fd
        data = prefix + lines if prefix else lines
        if fd is None or not data:
            return
        done = 0
        try:
            while done < len(data):
                done += os.write(fd, data[done:] if done else data)
        except OSError:
            if done:  # a torn line stays in the file; the whole line is written again, and readers know that pattern
                whole = max(data.rfind(b"\n", 0, done) + 1, len(prefix))
                self.waiting = data[whole:]
                self._written(data[len(prefix):whole])
                self._tail = (self._tail + data[:done])[-4:]
                self._torn = not self._tail.endswith(b"\n")
                self.end = os.lseek(fd, 0, os.SEEK_CUR)
            raise
        after = os.lseek(fd, 0, os.SEEK_CUR)
        if after - done != self.end:  # somebody was faster: theirs stands between the last look and this write
            self._look(fd, self.end, after - done)
        self._torn = False
        self.end = after
        if lines:
            self._written(lines)

    def _look(self, fd: int, start: int, stop: int) -> None:
        start = max(min(start, stop), stop - LOOK_BACK)
        data = os.pread(fd, stop - start, start)
        if data:
            self._foreign(data, start)
        self._look_at_tail(fd, stop)

    def _look_at_tail(self, fd: int, stop: int) -> None:
        self._tail = os.pread(fd, min(stop, 4), max(0, stop - 4))
        self._torn = bool(self._tail) and not self._tail.endswith(b"\n")

    def _fail(self, error: OSError) -> None:
        if not self._told:
            self._told = True
            self._report(f"transcript {self.path} cannot be written ({error.strerror or error}); the session goes on in memory, "
                         "and every later step tries again")


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def completion(tail: bytes) -> bytes:
    """What closes a torn line: the rest of a cut UTF-8 character, then a newline.

    Some readers refuse a whole file for one broken character, so it is completed (to a character that means nothing);
    bytes that are there stay as they are.
    """
    for back in range(1, min(len(tail), 3) + 1):
        byte = tail[-back]
        if byte & 0xC0 == 0x80:
            continue
        length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        missing = length - back
        # after some lead bytes 0x80 would be no legal continuation: E0 needs A0..BF, F0 needs 90..BF
        fill = b"\xa0" if byte == 0xE0 else b"\x90" if byte == 0xF0 else b"\x80"
        if missing > 0:
            return (fill + b"\x80" * (missing - 1) if back == 1 else b"\x80" * missing) + b"\n"
        break
    return b"\n"


def repair(path: Path) -> bool:
    """Close the torn last line of a file that nobody is writing. True if there was one.

    :raises OSError: the file cannot be written.
    """
    problems: list[str] = []
    size = path.stat().st_size
    file = LineFile(path, end=size, report=problems.append)
    file.mend()
    file.close()
    if problems:
        raise OSError(problems[0])
    return path.stat().st_size != size
