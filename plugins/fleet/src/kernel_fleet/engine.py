"""The fleet at work: a thread for each seat asks the board, runs, and writes down what came of it."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from kernel import Clock, UsageError
from kernel_fleet import outcome, tasks as tasks_, workspace
from kernel_fleet.board import Board, Limits, Start
from kernel_fleet.child import Run
from kernel_fleet.journal import FINAL, Begun, Over, RunFolder, work_of
from kernel_fleet.progress import one_line
from kernel_fleet.seats import Executor, Seat, WorkerDied
from kernel_fleet.worker import Ended, Job
from kernel_fleet.workspace import Workspace

GO_ON = "Continue from where you left off."
MARK = ".fleet"
"""In the folder for workspaces: the id of the fleet that made it. Without it nothing there is removed."""


class Fleet:
    """One run of the command.

    :param work: what ``ready`` gave.
    :param args: flags of ``kernel -p`` for each run.
    :param told: called with every attempt that is over, and with what is to be said; from any thread.
    """

    def __init__(self, folder: RunFolder, executor: Executor, limits: Limits, *, work: Path, workers: int | None,
                 args: list[str], keep: bool = False, pace: float | None = None, timeout_s: float | None = None,
                 told: Callable[[Over | str], None] = lambda _: None) -> None:
        self.folder, self.limits = folder, limits
        self.began = time.time()
        self._executor, self._workers, self._args, self._keep, self._timeout = executor, workers, args, keep, timeout_s
        self._told = told
        self._env = {"KERNEL_FLEET_PACE": f"{pace!r}:{folder.path / 'pace'}"} if pace else {}
        self._work = work
        self._changed = threading.Condition()
        self._interrupts = 0
        self._failure: BaseException | None = None
        self._kinds: dict[str, str] = {}
        self.board = Board([], limits)
        self._removing = ThreadPoolExecutor(1, "remove")

    def run(self, tick: Callable[[], None] = lambda: None) -> None:
        """To the end; ``tick`` is called several times a second by the thread that called this.

        :raises UsageError: the workers cannot be had.
        """
        self._take_over()
        seats = self._executor.open(self._workers)
        self.limits.seats = len(seats)
        self.board = Board(self.folder.records.values(), self.limits)
        before = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        lanes = [threading.Thread(target=self._lane, args=(n, seat), daemon=True) for n, seat in enumerate(seats, 1)]
        stopping = False
        try:
            for lane in lanes:
                lane.start()
            while any(lane.is_alive() for lane in lanes):
                with self._changed:
                    self._changed.wait(0.2)
                if self._interrupts and not self.board.closed:
                    self._stop("interrupted")
                    self._told(f"finishing {self.board.running} running task(s); Ctrl-C once more ends them now")
                if self._interrupts > 1 and not stopping:
                    stopping = True
                    threading.Thread(target=self._stop_seats, args=(seats,), daemon=True).start()
                tick()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._executor.close()
            self._removing.shutdown()
        if self._failure is not None:
            raise self._failure
        with suppress(OSError):
            if [path.name for path in self._work.iterdir()] == [MARK]:
                (self._work / MARK).unlink()
                self._work.rmdir()

    # -- signals -----------------------------------------------------------------------------------------------------------
    def _on_signal(self, number: int, _: Any) -> None:
        self._interrupts += 2 if number == signal.SIGTERM else 1

    def _stop(self, why: str) -> None:
        with self._changed:
            self.board.close(why)
            self._changed.notify_all()

    def _stop_seats(self, seats: list[Seat]) -> None:
        stops = [threading.Thread(target=seat.stop, daemon=True) for seat in seats]
        for stop in stops:
            stop.start()

    # -- what an earlier run left ---------------------------------------------------------------------------------------------
    def _take_over(self) -> None:
        """A run that had come to its end when its fleet was killed is finished; its money counts once. A workspace that was to
        be removed is."""
        for record in self.folder.records.values():
            if record.final and any((self._work / f"{record.task.id}{end}").exists() for end in ("", ".git", ".base")):
                self._remove(record.task)
            if not record.begun or record.final or (record.over and record.over[-1].attempt == record.begun[-1].attempt):
                continue
            begun = record.begun[-1]
            out = outcome.read(self.folder.folder(begun.task) / f"attempt-{begun.attempt}.jsonl")
            ended = Ended(exit_code=0 if out.ok else 1, stopped=not out.result)
            if out.result and out.ok and record.task.check:
                out.result, ended.stopped = False, True  # nobody has checked it
            over = Board([], self.limits).judge(begun, record, ended, "", out, time.time())
            over.fresh = not out.answered and not begun.resumes
            if over.status == "done":
                self._patch(record.task, over)
            self.folder.append(over)

    def _patch(self, task: tasks_.Task, over: Over) -> None:
        place = self._workspace(task)
        with suppress(workspace.WorkspaceError, OSError):
            over.patch_bytes = place.patch(self.folder.folder(task.id) / "changes.patch")
        self._remove(task)

    def _remove(self, task: tasks_.Task) -> None:
        """Beside the seats, so that none of them waits."""
        if not self._keep:
            self._removing.submit(self._workspace(task).remove)

    # -- a seat ------------------------------------------------------------------------------------------------------------------
    def _lane(self, number: int, seat: Seat) -> None:
        try:
            while (start := self._next(number)) is not None:
                self._attempt(*start, seat)
        except BaseException as error:
            self._failure = self._failure or error
            self._stop(f"{type(error).__name__}: {error}")

    def _next(self, seat: int) -> tuple[Start, Begun] | None:
        with self._changed:
            while not isinstance(found := self.board.next(time.monotonic()), Start):
                if found is None:
                    self._changed.notify_all()
                    return None
                self._changed.wait(min(found, 1.0))
            record = found.record
            begun = Begun(task=record.task.id, attempt=found.attempt, session=Clock().new_id(), at=time.time(), seat=seat,
                          allotted=found.allotted)
            for number in range(found.previous or 0, 0, -1):
                earlier = outcome.read(self.folder.folder(begun.task) / f"attempt-{number}.jsonl")
                if earlier.answered and earlier.session:
                    begun.session, begun.resumes = earlier.session, True
                if earlier.answered or not record.begun[number - 1].resumes:
                    break
            self.folder.append(begun)
            return found, begun

    def _attempt(self, start: Start, begun: Begun, seat: Seat) -> None:
        task = start.record.task
        place = self.folder.folder(task.id)
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        ended, died = None, ""
        try:
            ended = seat.run(self._job(task, begun, place))
        except WorkerDied as error:
            died = str(error)
        messages = place / f"attempt-{begun.attempt}.jsonl"
        out = outcome.read(messages)
        if died and task.check:
            out.result = False  # nobody has checked it
        with self._changed:
            over = self.board.judge(begun, start.record, ended, died, out, time.time())
            if over.status == "failed" and not out.result and not (ended and ended.refused):
                over.why = _last_line(place / f"attempt-{begun.attempt}.err") or over.why
        if died and over.status == "done":
            self._patch(task, over)
        elif over.status in FINAL:
            self._remove(task)
        with self._changed:
            self.folder.append(over)
            self.board.ended(start.record, over, time.monotonic())
            self._changed.notify_all()
        self._told(over)

    def _job(self, task: tasks_.Task, begun: Begun, place: Path) -> Job:
        args = ["-p", "--output-format", "stream-json", "--verbose", *self._args, *tasks_.flags(task.options)]
        if begun.allotted is not None:
            args.append(f"--max-budget-usd={begun.allotted:.6f}")
        args.append(f"--{'resume' if begun.resumes else 'session-id'}={begun.session}")
        run = Run(args=[*args, "--", GO_ON if begun.resumes else task.prompt], resumes=begun.resumes,
                  env={**self._env, **task.env, "KERNEL_FLEET_TASK": task.id})
        return Job(run=run, workspace=self._workspace(task), folder=str(place), attempt=begun.attempt, check=task.check,
                   timeout_s=task.timeout_s or self._timeout, mark=str(self.folder.path / "fleet.json"))

    def _workspace(self, task: tasks_.Task) -> Workspace:
        kind = task.workspace or self._chosen(task.cwd)
        return Workspace(kind=kind, source=task.cwd, path=str(self._work / task.id), ref=task.ref)

    def _chosen(self, cwd: str) -> str:
        if cwd not in self._kinds:
            self._kinds[cwd] = workspace.choose(cwd)
        return self._kinds[cwd]

    def warn_of_changes(self) -> None:
        """Say which folders hold changes that their worktrees will not have."""
        for cwd in sorted({r.task.cwd for r in self.folder.records.values() if not r.final and r.task.workspace != "copy"}):
            if self._chosen(cwd) == "worktree" and workspace.is_changed(cwd):
                self._told(f"note: {cwd} has changes that are not committed; worktrees begin without them")


def ready(folder: RunFolder, given: Path | None) -> Path:
    """The folder for workspaces, made by this fleet: what lies in it is removed later. Its place is worked out from the command
    line, never taken from ``fleet.json``.

    :raises UsageError: the fleet began with another one, somebody else made it, or it cannot be made.
    """
    work = work_of(folder.about.id, given)
    if folder.about.work != str(work):
        raise UsageError(f"its workspaces lie in {one_line(folder.about.work)!r}, and not in {str(work)!r}",
                         context=str(folder.path), hint="give the --work that the fleet began with")
    try:
        work.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not work.is_symlink() and not any(work.iterdir()):
            (work / MARK).write_text(folder.about.id, "utf-8")
        problem = "less than 64 MB are free" if shutil.disk_usage(work).free < 64 << 20 else ""
        if work.is_symlink() or not (work / MARK).is_file() or (work / MARK).read_bytes() != folder.about.id.encode():
            problem = "was not made by this fleet, which would remove what lies in it"
    except OSError as error:
        problem = f"cannot be made: {error.strerror}"
    if problem:
        raise UsageError(problem, context=str(work), hint="--work FOLDER puts the workspaces of another fleet elsewhere")
    return work


def _last_line(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 4096))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""
