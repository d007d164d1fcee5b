"""One child process: fast to start, bounded in what it may print, ended with its whole group (hooks contract, section 8).

The loop's own readers watch the pipes and the process, so a handler costs no thread and no task. asyncio's subprocess
support is not used: it waits for the end of stdout, which a grandchild can hold open for ever.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence

from msgspec import Struct

from kernel_command_hooks.spawn import Process, spawn

MAX_BYTES = 8 * 1024 * 1024
"""What is kept of each stream; the rest is read and thrown away."""
DRAIN_S = 1.0
"""How long the pipes are read on after the child has ended."""
GRACE_S = 5.0
"""From SIGTERM to SIGKILL."""
_CHUNK = 1 << 18
_POLL_S = 0.02


class Ended(Struct):
    """How a child ended. ``code`` is negative for a signal and ``None`` where it was stopped for its timeout."""

    code: int | None
    stdout: bytes
    stderr: bytes
    cut: bool

    @property
    def timed_out(self) -> bool:
        return self.code is None


class _Pipe:
    """One stream of the child that is being read."""

    __slots__ = ("cut", "fd", "kept")

    def __init__(self, fd: int) -> None:
        self.fd: int | None = fd
        self.kept = bytearray()
        self.cut = False

    def read(self) -> bool:
        """Take what is there; false at the end of the stream."""
        assert self.fd is not None
        try:
            data = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        room = MAX_BYTES - len(self.kept)
        self.kept += data[:room]
        self.cut = self.cut or len(data) > room
        return bool(data)


class Child:
    """A running handler.

    :param payload: what it may read from stdin; a child that does not read it is fine.
    :raises OSError: it cannot be started.
    """

    def __init__(self, command: Sequence[str], *, payload: bytes, cwd: str, env: dict[str, str]) -> None:
        # A session of its own: no controlling terminal, and a process group that can be ended as a whole.
        self._process, stdin, stdout, stderr = spawn(command, cwd=cwd, env=env)
        self.pid = self._process.pid
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[bool] = self._loop.create_future()
        self._out, self._err = _Pipe(stdout), _Pipe(stderr)
        self._rest = memoryview(payload)
        self._stdin: int | None = stdin
        self._write()
        if self._stdin is not None:
            self._loop.add_writer(self._stdin, self._write)
        for pipe in (self._out, self._err):
            self._loop.add_reader(pipe.fd, self._read, pipe)  # type: ignore[arg-type]
        self._pidfd = _watch(self._loop, self._process, self._exited)

    @property
    def output(self) -> tuple[bytes, bytes]:
        """What it printed so far."""
        return bytes(self._out.kept), bytes(self._err.kept)

    async def wait(self, timeout: float | None, grace: float = GRACE_S) -> Ended:
        """Until it ends by itself. At the timeout, and on cancellation, the whole group is ended and its output dropped."""
        timer = self._loop.call_later(timeout, self._finish, False) if timeout is not None else None
        try:
            in_time = await self._over
        except asyncio.CancelledError:
            self._close()
            await _undisturbed(self.end(min(grace, 1.0)))
            raise
        finally:
            if timer is not None:
                timer.cancel()
        self._close()
        if not in_time:
            await self.end(grace)
            return Ended(None, b"", b"", False)
        return Ended(self._process.returncode, bytes(self._out.kept), bytes(self._err.kept), self._out.cut)

    async def end(self, grace: float) -> None:
        """SIGTERM to the group, SIGKILL after ``grace`` seconds to what is left of it."""
        deadline = self._loop.time() + grace
        self._signal(signal.SIGTERM)
        while self._alive():
            if self._loop.time() >= deadline:
                self._signal(signal.SIGKILL)
                break
            await asyncio.sleep(_POLL_S)
        for _ in range(50):  # reap it; a process in uninterruptible sleep is left to the system
            if self._process.poll() is not None:
                return
            await asyncio.sleep(_POLL_S)

    # -- callbacks of the loop -----------------------------------------------------------------------------------------
    def _write(self) -> None:
        assert self._stdin is not None
        try:
            while self._rest:
                self._rest = self._rest[os.write(self._stdin, self._rest):]
        except BlockingIOError:
            return
        except OSError:
            pass  # it does not want to read; that is its right
        self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            self._loop.remove_writer(self._stdin)
            os.close(self._stdin)
            self._stdin = None

    def _read(self, pipe: _Pipe) -> None:
        if not pipe.read():
            self._close_pipe(pipe)
            if self._process.returncode is not None and self._out.fd is None and self._err.fd is None:
                self._finish(True)

    def _close_pipe(self, pipe: _Pipe) -> None:
        if pipe.fd is not None:
            self._loop.remove_reader(pipe.fd)
            os.close(pipe.fd)
            pipe.fd = None

    def _exited(self) -> None:
        self._unwatch()
        self._process.wait()  # it has ended; this only collects the code
        if self._out.fd is None and self._err.fd is None:
            self._finish(True)
        else:
            self._loop.call_later(DRAIN_S, self._finish, True)

    def _finish(self, in_time: bool) -> None:
        if not self._over.done():
            self._over.set_result(in_time)

    def _close(self) -> None:
        self._close_stdin()
        self._close_pipe(self._out)
        self._close_pipe(self._err)
        self._unwatch()

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    # -- the group -----------------------------------------------------------------------------------------------------
    def _signal(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def _alive(self) -> bool:
        """Whether anything of the group still runs."""
        running = self._process.poll() is None
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return running or not _only_zombies(self.pid)


def _only_zombies(group: int) -> bool:
    """Whether all that is left of a group has ended and waits for an init that does not reap, as in many containers."""
    try:
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    state, _, of_group = file.read().rpartition(b")")[2].split()[:3]
            except (OSError, ValueError):
                continue  # it is gone, or not ours to see
            if int(of_group) == group and state not in b"ZX":
                return False
    except OSError:
        return False  # no /proc here: believe the system
    return True


def _watch(loop: asyncio.AbstractEventLoop, process: Process, exited: Callable[[], None]) -> int | None:
    """Have ``exited`` called when the process ends. Without pidfd (macOS, old kernels) a thread waits for it."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        import threading

        def wait() -> None:
            process.wait()
            try:
                loop.call_soon_threadsafe(exited)
            except RuntimeError:
                pass  # the loop is closed; nobody waits any more

        threading.Thread(target=wait, daemon=True).start()
        return None
    loop.add_reader(pidfd, exited)
    return pidfd


async def _undisturbed(work: object) -> None:
    """Run to the end although the task is cancelled."""
    import anyio

    with anyio.CancelScope(shield=True):
        await work  # type: ignore[misc]
