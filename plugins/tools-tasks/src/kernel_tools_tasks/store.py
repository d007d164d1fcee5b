"""Lists on disk: one small JSON file each, replaced as a whole, under a lock that other processes honour.

Nothing is kept in memory between two calls, so that several agents, or several processes, may share a list. A session
that keeps no files has its lists in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from kernel import Session, ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

L = TypeVar("L", bound=msgspec.Struct)
T = TypeVar("T")

LOCK_TRIES = 250
LOCK_WAIT_S = 0.02


def folder(session: Session) -> Path:
    """``CONFIG/tasks/<list>/``; ``CLAUDE_CODE_TASK_LIST_ID`` names a list that several sessions share."""
    name = os.environ.get("CLAUDE_CODE_TASK_LIST_ID", "").strip() or session.id
    safe = re.sub(r"[^A-Za-z0-9_-]", "-", name)[:100]
    return session.settings.config_dir / "tasks" / safe


class Store(Generic[L]):
    """One list of a session.

    :param name: the file's name without its ending.
    :param kind: what the file holds; ``kind()`` is the empty list.
    """

    def __init__(self, session: Session, name: str, kind: type[L]) -> None:
        self._session = session
        self._name = name
        self._kind = kind
        self._path = folder(session) / f"{name}.json" if session.options.persist else None

    def read(self) -> L:
        """The list as it is now; empty where there is none yet. Changing it changes nothing but the copy.

        :raises ToolError: ``store_failed``, the file cannot be read.
        """
        if self._path is None:
            return msgspec.json.decode(self._session.root.plugin_state.get(self._memory, b"{}"), type=self._kind)
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return self._kind()
        except OSError as error:
            raise self._failed("read", error) from error
        try:
            return msgspec.json.decode(raw, type=self._kind)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            self._set_aside(error)
            return self._kind()

    async def change(self, work: Callable[[L], T]) -> T:
        """Read, let ``work`` edit the list in place, write. If ``work`` raises, nothing is written.

        :raises ToolError: ``store_failed``, the file cannot be written or stays locked.
        """
        if self._path is None:
            state = self.read()
            result = work(state)
            self._session.root.plugin_state[self._memory] = msgspec.json.encode(state)
            return result
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self._path.parent / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._failed("write", error) from error
        try:
            await self._take(lock)
            state = self.read()
            result = work(state)
            with self._errors():
                _replace(self._path, msgspec.json.format(msgspec.json.encode(state), indent=1) + b"\n")
            return result
        finally:
            os.close(lock)  # gives the lock back

    async def _take(self, lock: int) -> None:
        try:
            import fcntl
        except ImportError:  # no such locks on Windows: the last writer wins
            return
        import anyio

        for _ in range(LOCK_TRIES):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                await anyio.sleep(LOCK_WAIT_S)
            except OSError as error:
                raise self._failed("lock", error) from error
        raise ToolError("store_failed", f"The list {self._path} is locked by another process. Try again later.", retryable=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failed("write", error) from error

    def _failed(self, what: str, error: OSError) -> ToolError:
        return ToolError("store_failed", f"Could not {what} the list {self._path}: {error.strerror or error}. "
                                         "Nothing was changed.")

    def _set_aside(self, why: Exception) -> None:
        assert self._path is not None
        broken = self._path.with_suffix(".broken.json")
        try:
            os.replace(self._path, broken)
        except OSError as error:
            raise self._failed("read", error) from error
        self._session.notice(f"plugin tools-tasks: {self._path} is no list of tasks ({why}); it was moved to "
                             f"{broken.name} and the list starts empty")

    @property
    def _memory(self) -> str:
        return f"tools-tasks.{self._name}"


def _replace(path: Path, content: bytes) -> None:
    """Write beside the file and rename, so that a kill leaves the old list or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
