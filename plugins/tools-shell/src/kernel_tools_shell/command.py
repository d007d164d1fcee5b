"""One running command: a process tree, its output, its end. It belongs to no event loop, so a call may leave it behind.

stdout and stderr are one pipe, read by a thread of its own. A pipe and not a file: a command that writes to
``/dev/stderr`` would cut a file short and lose what stood in it.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping
from typing import Literal

from kernel_tools_shell.processes import HAS_PROC, MARK, members, send
from kernel_tools_shell.sink import Sink

LINGER_S = 1.0
"""Seconds that output is still read after the shell ended while something else holds the pipe open."""
MAX_WRITTEN = 5_000_000_000
"""Bytes after which a command is killed."""
_LOOK_S = 0.1
_CHUNK = 1 << 16


class Command:
    """Started at once by its constructor.

    ``exit_code`` is set when the shell has ended and its output is in the sink; death by signal N counts as 128 + N.
    ``cut`` says why the command was killed, if it was: ``output`` (over ``MAX_WRITTEN`` bytes) or ``time``.

    :param argv: program and arguments.
    :param mark: unique; found again in the environment of everything that the command starts.
    :param seconds: the command is killed after that time; ``None``: never.
    :param confined: the process is a sandbox around the command and takes it along when it ends, so TERM is not for it.
    :raises OSError: it cannot be started.
    """

    def __init__(self, argv: list[str], *, cwd: str, env: Mapping[str, str], sink: Sink, mark: str,
                 seconds: float | None = None, confined: bool = False) -> None:
        import subprocess

        self.sink = sink
        self.mark = mark
        self._confined = confined and HAS_PROC
        self.began = time.monotonic()
        self.exit_code: int | None = None
        self.cut: Literal["output", "time"] | None = None
        self._deadline = None if seconds is None else self.began + seconds
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []
        output, inner = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603  (running what it is given is the tool's purpose; permission came before)
                argv, cwd=cwd, env={**env, MARK: mark}, stdin=subprocess.DEVNULL, stdout=inner, stderr=inner,
                start_new_session=True)
        except BaseException:
            os.close(output)
            raise
        finally:
            os.close(inner)
        self.pid = self._process.pid
        self._ended, self._tell_end = os.pipe()
        threading.Thread(target=self._read, args=(output,), name=f"command {self.pid}", daemon=True).start()

    # -- waiting -----------------------------------------------------------------------------------------------------
    async def wait(self) -> None:
        """Until the command ended. Any number of tasks may wait; each may be cancelled."""
        import anyio

        with self._lock:  # an own descriptor: a loop takes only one waiter for each
            fd = None if self.exit_code is not None else os.dup(self._ended)
        if fd is None:
            return
        try:
            await anyio.wait_readable(fd)
        finally:
            os.close(fd)

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Call it once the command ended: from its thread, or now."""
        with self._lock:
            if self.exit_code is None:
                self._callbacks.append(callback)
                return
        callback()

    # -- ending ------------------------------------------------------------------------------------------------------
    def signal(self, number: int) -> int:
        """Signal everything that the command started; 0 only looks. How many processes there were.

        Until the shell was waited for its group cannot be anybody else's.
        """
        running, alive = self._process.returncode is None, 0
        spared = self.pid if self._confined and number == signal.SIGTERM else None
        if (running or not HAS_PROC) and not spared:
            try:
                os.killpg(self.pid, number)
                alive = 1
            except (ProcessLookupError, PermissionError):
                pass
        found = (pid for pid in members(self.mark, self.pid if running else None) if pid != spared)
        return send(found, number) + bool(spared and running) if HAS_PROC else alive

    # -- the thread --------------------------------------------------------------------------------------------------
    def _read(self, output: int) -> None:
        poll = select.poll()
        poll.register(output, select.POLLIN)
        exit_fd = _exit_fd(self.pid)
        if exit_fd is not None:
            poll.register(exit_fd, select.POLLIN)
        open_, left = True, 0.0
        while not left or (open_ and time.monotonic() - left < LINGER_S):
            ready: set[int] = set()
            if open_ or exit_fd is not None:
                ready = {fd for fd, _ in poll.poll(self._patience(left, exit_fd))}
            else:
                self._process.wait()  # its output is closed, so nothing else tells its end
            if output in ready:
                data = os.read(output, _CHUNK)
                self.sink.write(data)
                if not data:
                    open_ = False
                    poll.unregister(output)
            if not left and (exit_fd is None or exit_fd in ready) and self._process.poll() is not None:
                left = time.monotonic()
                if exit_fd is not None:
                    poll.unregister(exit_fd)
            self._guard()
        if exit_fd is not None:
            os.close(exit_fd)
        self._finish()
        while open_ and (data := os.read(output, _CHUNK)):  # who still writes must not die of a closed pipe
            if self.sink.size <= MAX_WRITTEN:
                self.sink.write(data)
        os.close(output)
        self.sink.close()

    def _patience(self, left: float, exit_fd: int | None) -> float | None:
        """Milliseconds until something must be looked at that no descriptor tells."""
        if left:
            return max(1.0, (left + LINGER_S - time.monotonic()) * 1000)
        if exit_fd is None:
            return _LOOK_S * 1000
        return None if self._deadline is None else max(1.0, (self._deadline - time.monotonic()) * 1000)

    def _guard(self) -> None:
        if self.sink.size > MAX_WRITTEN:
            self.cut = "output"
        elif self._deadline is not None and time.monotonic() > self._deadline:
            self.cut = "time"
        if self.cut:
            self.signal(signal.SIGKILL)

    def _finish(self) -> None:
        code = self._process.returncode
        with self._lock:
            self.exit_code = 128 - code if code < 0 else code
            callbacks, self._callbacks = self._callbacks, []
            os.close(self._tell_end)  # whoever waits reads the end of the pipe
            os.close(self._ended)
        for callback in callbacks:
            callback()


def _exit_fd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; Linux has one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
