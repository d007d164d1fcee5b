"""Who has a run: a lock that the operating system or the database takes back when its owner is gone.

No lease, no clock: on SQLite a byte of a lock file (all processes are of one host), on PostgreSQL an advisory lock of a session,
which the server ends when its process or its host is lost.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol


class Holder(Protocol):
    """All runs that this process has."""

    def hold(self, run_id: str) -> bool:
        """Take the lock of a run; false where another process has it. May block for the database."""

    def release(self, run_id: str) -> None:
        """Give it back."""

    def close(self) -> None:
        """Give all back."""


def number(run_id: str) -> int:
    """The run as a number below 2**62."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:8], "big") >> 2


class FileHolder:
    """POSIX locks on single bytes of one file beside the database: nothing is left behind, whoever dies."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._mine: set[str] = set()

    def hold(self, run_id: str) -> bool:
        if run_id in self._mine:  # a process may lock again what it has locked
            return False
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number(run_id), os.SEEK_SET)
        except (BlockingIOError, PermissionError):
            return False
        self._mine.add(run_id)
        return True

    def release(self, run_id: str) -> None:
        if run_id in self._mine:
            self._mine.discard(run_id)
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, number(run_id), os.SEEK_SET)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class ServerHolder:
    """Advisory locks of one PostgreSQL session. ``url``: as psycopg takes it."""

    def __init__(self, url: str) -> None:
        import psycopg

        self._connection: Any = psycopg.connect(url, autocommit=True, connect_timeout=10, keepalives_idle=10,
                                                keepalives_interval=5, keepalives_count=3)
        self._connection.execute("SELECT set_config('tcp_keepalives_idle', '10', false), "
                                 "set_config('tcp_keepalives_interval', '5', false), "
                                 "set_config('tcp_keepalives_count', '3', false)")
        self._mine: set[str] = set()
        self._error = psycopg.Error

    def hold(self, run_id: str) -> bool:
        if run_id in self._mine:
            return False
        if not self._connection.execute("SELECT pg_try_advisory_lock(%s)", (number(run_id),)).fetchone()[0]:
            return False
        self._mine.add(run_id)
        return True

    def release(self, run_id: str) -> None:
        if run_id in self._mine:
            self._mine.discard(run_id)
            with suppress(self._error):  # a session that is over has no locks
                self._connection.execute("SELECT pg_advisory_unlock(%s)", (number(run_id),))

    def close(self) -> None:
        with suppress(self._error):
            self._connection.close()
