"""Start a process with three pipes, in a session of its own. As fast as the system can, where the system can."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Process(Protocol):
    """What is needed of a started process; ``subprocess.Popen`` is one."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...
    def wait(self) -> int: ...


class Spawned(NamedTuple):
    """A started process and our ends of its pipes, all non-blocking."""

    process: Process
    stdin: int
    stdout: int
    stderr: int


class _Direct:
    """A process of ``posix_spawn``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._reap(os.WNOHANG)

    def wait(self) -> int:
        code = self._reap(0)
        assert code is not None
        return code

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:  # somebody else reaped it; how it ended is lost
                self.returncode = 0
            else:
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def seal() -> None:
    """Keep what this process itself inherited from handlers. Descriptors that Python opens are never inherited."""
    try:
        inherited = [fd for name in os.listdir("/dev/fd") if (fd := int(name)) > 2]
    except (OSError, ValueError):
        return
    for fd in inherited:
        try:
            os.set_inheritable(fd, False)
        except OSError:
            pass  # the listing's own, closed again


def spawn(command: Sequence[str], *, cwd: str, env: dict[str, str]) -> Spawned:
    """Start it.

    :raises OSError: there is no such program, or it cannot be executed.
    :raises ValueError: an argument or a variable holds a null byte.
    """
    pipes = [os.pipe() for _ in range(3)]
    theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
    ours = (pipes[0][1], pipes[1][0], pipes[2][0])
    try:
        # posix_spawn saves a tenth of the time to start a handler, but cannot change the directory, and needs free
        # places for the standard streams.
        if command[0].startswith("/") and min(theirs) > 2 and hasattr(os, "posix_spawn") and _is_here(cwd):
            process: Process = _Direct(_posix_spawn(command, env, theirs))
        else:
            process = subprocess.Popen(command, cwd=cwd, env=env, stdin=theirs[0], stdout=theirs[1],  # noqa: S603  # as configured
                                       stderr=theirs[2], start_new_session=True)
    except BaseException:
        for fd in ours:
            os.close(fd)
        raise
    finally:
        for fd in theirs:
            os.close(fd)
    for fd in ours:
        os.set_blocking(fd, False)
    return Spawned(process, *ours)


def _is_here(cwd: str) -> bool:
    try:
        return os.getcwd() == cwd
    except OSError:
        return False


def _posix_spawn(command: Sequence[str], env: dict[str, str], streams: tuple[int, int, int]) -> int:
    """The signals that Python ignores are put back; descriptors are closed by the system, see ``seal``."""
    return os.posix_spawn(command[0], list(command), env, setsid=True, setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
                          file_actions=[(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in enumerate(streams)])
