"""A worker: ``python -m kernel_fleet.worker``. Takes a job as a line of JSON on stdin, answers with a line on stdout.

Each run is a process of its own. On Linux it is forked from the worker, which holds in memory what earlier runs had imported, so
that a run does not pay the start of the interpreter and the imports; what it changes (environment, working directory, modules
of a plugin) is gone with it. Elsewhere it is started anew. Either way it is ``python -m kernel -p``, by ``runpy``.

The worker's own end ends the run: a pipe tells it.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from kernel_fleet.child import Child, Run
from kernel_fleet.workspace import Workspace, WorkspaceError

FORKS = sys.platform.startswith("linux")
GRACE_S = 5.0
"""Between SIGTERM and SIGKILL of a run that is ended."""
CHECK_S = 600.0


class Job(msgspec.Struct, kw_only=True):
    """One attempt at one task. ``folder``: where its files go. ``mark``: a file that this machine must see."""

    run: Run
    workspace: Workspace
    folder: str
    attempt: int
    mark: str
    timeout_s: float | None = None
    check: list[str] | None = None


class Ended(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What became of an attempt. ``refused``: it could not begin, and why. ``accepted``: what the check said."""

    exit_code: int | None = None
    refused: str = ""
    timed_out: bool = False
    stopped: bool = False
    accepted: bool | None = None
    patch_bytes: int = 0
    run_wall_ms: int = 0
    around_ms: int = 0
    notes: list[str] = msgspec.field(default_factory=list)


class Worker:
    """Runs one job at a time, until stdin ends."""

    def __init__(self) -> None:
        self._in = os.dup(0)
        self._out = os.dup(1)
        os.dup2(2, 1)  # what somebody prints is no answer
        with open(os.devnull, "rb") as nowhere:
            os.dup2(nowhere.fileno(), 0)
        self._read = b""
        self._lines: list[bytes] = []
        self._ended = False

    def serve(self) -> Child | None:
        """Until there is nothing more to do. In a process that was forked off, what that one has to become."""
        while True:
            line = self._line()
            if line is None:
                return None
            job = msgspec.json.decode(line, type=Job)
            answer = self._do(job)
            if isinstance(answer, Child):
                return answer
            try:
                os.write(self._out, msgspec.json.encode(answer) + b"\n")
            except BrokenPipeError:
                return None  # the fleet is gone; what the run left is in its files

    # -- the wire ----------------------------------------------------------------------------------------------------------
    def _line(self) -> bytes | None:
        while not self._lines and not self._ended:
            self._take()
        return self._lines.pop(0) if self._lines else None

    def _take(self) -> None:
        piece = os.read(self._in, 1 << 16)
        if not piece:
            self._ended = True
        *whole, self._read = (self._read + piece).split(b"\n")
        self._lines += whole

    # -- one job -------------------------------------------------------------------------------------------------------------
    def _do(self, job: Job) -> Ended | Child:
        began = time.monotonic()
        ended = Ended()
        if not os.path.exists(job.mark):
            ended.refused = (f"{os.uname().nodename} does not see {job.mark}: run folder, workspaces and task folders must be "
                             "at the same place on every node")
            return ended
        try:
            alone = _alone(job.folder)
        except OSError as error:
            ended.refused = f"an earlier attempt of this task is still running ({error})"
            return ended
        try:
            job.run.cwd, told = job.workspace.prepare(keep=job.run.resumes)
            ended.notes += told
            running = time.monotonic()
            child = self._start(job, ended, alone)
            if child is not None:
                return child
        except (WorkspaceError, OSError) as error:
            ended.refused = f"workspace: {error}"
            return ended
        finally:
            os.close(alone)  # in a forked process, too: that one holds a number of its own
        ended.run_wall_ms = round((time.monotonic() - running) * 1000)
        behind = time.monotonic()
        if not ended.stopped:
            self._behind(job, ended)
        ended.around_ms = round((running - began + time.monotonic() - behind) * 1000)
        return ended

    def _behind(self, job: Job, ended: Ended) -> None:
        if job.check and ended.exit_code == 0:
            ended.accepted = self._check(job)
        try:
            ended.patch_bytes = job.workspace.patch(Path(job.folder, "changes.patch"))
        except (WorkspaceError, OSError) as error:
            ended.notes.append(f"no changes.patch: {error}")

    def _check(self, job: Job) -> bool:
        assert job.check is not None
        with os.fdopen(os.open(Path(job.folder, "check.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            try:
                environment = {**os.environ, **job.run.env}
                with subprocess.Popen(job.check, cwd=job.run.cwd, stdin=subprocess.DEVNULL,  # noqa: S603  # as the task says
                                      stdout=file, stderr=file, env=environment, start_new_session=True) as process:
                    try:
                        return process.wait(CHECK_S) == 0
                    except subprocess.TimeoutExpired:
                        os.killpg(process.pid, signal.SIGKILL)
                        file.write(f"\nended after {CHECK_S:.0f} s\n".encode())
            except OSError as error:
                file.write(f"{job.check[0]}: {error.strerror}\n".encode())
        return False

    # -- the run -------------------------------------------------------------------------------------------------------------
    def _start(self, job: Job, ended: Ended, alone: int) -> Child | None:
        """Start the run and wait for its end. In the forked process: what it has to become."""
        life, mine = os.pipe()
        told, report = os.pipe()
        for name in ("stdout", "stderr"):
            setattr(job.run, name, str(Path(job.folder, f"attempt-{job.attempt}.{'jsonl' if name == 'stdout' else 'err'}")))
        child = Child(job.run, life, report, os.dup(alone))
        if FORKS:
            pid = os.fork()
            if not pid:
                for number in (mine, told, self._in, self._out):
                    os.close(number)
                return child
        else:
            pid = self._anew(child)
        for number in (life, report, child.alone):
            os.close(number)
        try:
            ended.exit_code = self._wait(pid, told, job, ended)
        finally:
            os.close(mine)
            os.close(told)
        return None

    def _anew(self, child: Child) -> int:
        numbers = (child.life, child.report, child.alone)
        process = subprocess.Popen(  # noqa: S603  # our own program
            [sys.executable, "-P", "-m", "kernel_fleet.child", *map(str, numbers)], pass_fds=numbers, stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(child.run))
        process.stdin.close()
        process.returncode = 0  # waited for below, not by its object
        return process.pid

    def _wait(self, pid: int, told: int, job: Job, ended: Ended) -> int:
        """Until the run is over; ended where its time is, where stdin is, or where a line comes (``stop``)."""
        limit = time.monotonic() + (job.timeout_s or float("inf"))
        kill_at = float("inf")
        learned = b""
        watched = [told, self._in]
        while True:
            now = time.monotonic()
            pause = min(limit, kill_at, now + (0.5 if told in watched else 0.005)) - now  # silent: it is about to be gone
            ready = select.select(watched, [], [], max(0.0, pause))[0]
            if told in ready:
                piece = os.read(told, 1 << 16)
                learned += piece
                if not piece:
                    watched.remove(told)
            if self._in in ready:
                self._take()
                self._lines.clear()  # nothing but a stop comes while a job runs
                watched.remove(self._in)
                ended.stopped, limit, kill_at = True, float("inf"), time.monotonic() + GRACE_S
                _signal(pid, signal.SIGTERM)
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                if FORKS:
                    _learn(learned)
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= limit:
                ended.timed_out, limit, kill_at = True, float("inf"), time.monotonic() + GRACE_S
                _signal(pid, signal.SIGTERM)
            if time.monotonic() >= kill_at:
                _signal(pid, signal.SIGKILL)
                kill_at = float("inf")


def _alone(folder: str) -> int:
    """A lock that the run inherits: who takes up a task waits until an earlier attempt is gone, whoever had started it.

    :raises OSError: it is not gone in time.
    """
    number = os.open(Path(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    until = time.monotonic() + 4 * GRACE_S
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return number
        except OSError:
            if time.monotonic() > until:
                os.close(number)
                raise
            time.sleep(0.05)


def _signal(pid: int, number: int) -> None:
    """SIGTERM to the run, which ends its commands itself; SIGKILL to all of its group."""
    with suppress(ProcessLookupError, PermissionError):
        if number == signal.SIGKILL:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def _learn(report: bytes) -> None:
    """Import what a run had to import, so that the next one finds it. Only what this process finds by itself: a plugin of a
    folder, or of a locked harness, is not on its path."""
    try:
        names = json.loads(report or b"[]")
    except ValueError:
        return
    for name in names:
        with suppress(Exception):
            if name not in sys.modules and importlib.util.find_spec(name) is not None:
                importlib.import_module(name)
    if names:
        gc.collect()
        gc.freeze()  # no collection of a run writes to these pages, so they stay shared


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the fleet says what a Ctrl-C means
    child = Worker().serve()
    if child is not None:
        child.leave(child.become())
    return 0


if __name__ == "__main__":
    sys.exit(main())
