"""Where tasks run. A seat runs one job at a time; an executor has some. ``processes``: workers of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Protocol

import msgspec

from kernel_fleet.worker import GRACE_S, Ended, Job

PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV",
          "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
          "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NO_COLOR")
PREFIXES = ("LC_", "XDG_", "ANTHROPIC_", "CLAUDE_", "KERNEL_", "OTEL_", "GIT_CONFIG_", "GIT_AUTHOR_", "GIT_COMMITTER_")


class WorkerDied(Exception):
    """The worker ended in the middle of a job, or could not be had. The text is for people."""


class Seat(Protocol):
    """A place for one job at a time."""

    def run(self, job: Job) -> Ended:
        """Run it to its end; blocks. A worker that died is replaced at the next job.

        :raises WorkerDied: the worker did not come to the end.
        """

    def stop(self) -> None:
        """End what runs, soon; from another thread. Nothing runs here afterwards."""


class Executor(Protocol):
    """Brings seats. ``name``: what ``--executor`` calls it."""

    name: str

    def open(self, count: int | None) -> list[Seat]:
        """:param count: how many; ``None``: as many as there are cores.

        :raises UsageError: they cannot be had.
        """

    def close(self) -> None:
        """Let go of everything."""


def environment(named: list[str], base: dict[str, str] | None = None) -> dict[str, str]:
    """What of the environment a worker gets: what programs need, the harness's own variables, and what was named."""
    given = dict(os.environ) if base is None else base
    return {k: v for k, v in given.items() if k in PASSED or k.startswith(PREFIXES) or k in named}


class LocalSeat:
    """A worker process of this machine, started with the first job.

    :param environment: all that the worker has.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def run(self, job: Job) -> Ended:
        with self._lock:
            if self._stopped:
                return Ended(stopped=True)
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen([sys.executable, "-P", "-m", "kernel_fleet.worker"], stdin=subprocess.PIPE,
                                                 stdout=subprocess.PIPE, env=self._environment, start_new_session=True)
            process = self._process
        assert process.stdin and process.stdout
        try:
            process.stdin.write(msgspec.json.encode(job) + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (OSError, ValueError):
            line = b""
        if line.endswith(b"\n"):
            return msgspec.json.decode(line, type=Ended)
        if self._stopped:
            return Ended(stopped=True)
        code = process.wait()
        raise WorkerDied(f"the worker (process {process.pid}) was ended by signal {-code}" if code < 0
                         else f"the worker (process {process.pid}) ended with code {code}")

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            process = self._process
        if process is None or process.poll() is not None:
            return
        assert process.stdin
        with suppress(OSError, ValueError):
            process.stdin.close()
        try:
            process.wait(GRACE_S + 3)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Processes:
    """Workers of this machine."""

    name = "processes"

    def __init__(self, named: list[str]) -> None:
        self._environment = environment(named)
        self._seats: list[LocalSeat] = []

    def open(self, count: int | None) -> list[Seat]:
        self._seats = [LocalSeat(self._environment) for _ in range(count or cores())]
        return [*self._seats]

    def close(self) -> None:
        for seat in self._seats:
            seat.stop()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
