"""The folder of a fleet: what was asked, what happened, what came out. The journal is the truth; all else is made from it.

=================  ====================================================================================================
``fleet.json``     identity and settings of the fleet
``tasks.jsonl``    the tasks as they were read, a line each
``journal.jsonl``  appended to: a line when an attempt begins, and one, written through to the disk, when it ends
``results.jsonl``  one line for each finished task, in the order in which they finished
``tasks/ID/``      messages (``attempt-N.jsonl``), stderr (``attempt-N.err``), ``changes.patch``, ``check.txt``
=================  ====================================================================================================
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from kernel import Clock, UsageError
from kernel_fleet.tasks import Task, holds_nul

FINAL = ("done", "failed", "rejected", "timeout", "crashed")


class About(Struct, kw_only=True):
    """``fleet.json``. A stranger may have written it: ``work`` and ``args`` are compared with what is given, never used."""

    id: Annotated[str, Meta(pattern=r"^[0-9a-f-]{13,40}$(?!\n)")]
    created: float
    tasks_file: str
    work: str
    args: list[str] = field(default_factory=list)
    version: Literal[1] = 1


class Begun(Struct, kw_only=True, tag_field="kind", tag="begun", omit_defaults=True):
    """An attempt begins. ``resumes``: in the session and workspace of an earlier one. ``allotted``: its share of the budget."""

    task: str
    attempt: int
    session: str
    at: float
    seat: int = 0
    resumes: bool = False
    allotted: float | None = None


class Over(Struct, kw_only=True, tag_field="kind", tag="over", omit_defaults=True):
    """An attempt is over. ``status``: one of ``FINAL``, ``again`` (to be tried again), ``stopped`` (a later run takes it up)."""

    task: str
    attempt: int
    status: str
    at: float
    why: str = ""
    text: str = ""
    subtype: str = ""
    terminal_reason: str = ""
    session: str = ""
    turns: int = 0
    tool_calls: int = 0
    refused: int = 0
    run_ms: int = 0
    wall_ms: int = 0
    around_ms: int = 0
    cost_usd: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    patch_bytes: int = 0
    seat: int = 0
    answered: bool = False
    fresh: bool = False
    """The next attempt must not resume."""
    structured: Any = None
    notes: list[str] = field(default_factory=list)


Line = Begun | Over


class Record:
    """What is known of one task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.begun: list[Begun] = []
        self.over: list[Over] = []

    @property
    def final(self) -> Over | None:
        return self.over[-1] if self.over and self.over[-1].status in FINAL else None

    @property
    def status(self) -> str:
        if self.final:
            return self.final.status
        return "unfinished" if self.begun else "waiting"

    @property
    def cost_usd(self) -> float:
        return sum(over.cost_usd for over in self.over)


class RunFolder:
    """Held by one process at a time."""

    def __init__(self, path: Path, about: About, tasks: list[Task]) -> None:
        self.path, self.about = path, about
        self.records = {task.id: Record(task) for task in tasks}
        self.torn = 0
        self._journal: int | None = None
        self._lock: int | None = None

    # -- opening ---------------------------------------------------------------------------------------------------------
    @classmethod
    def create(cls, path: Path, tasks_file: Path, tasks: list[Task], work: Path | None, args: list[str]) -> RunFolder:
        """A new folder; all of it is there or nothing.

        :raises UsageError: it cannot be written.
        """
        id = Clock().new_id()
        about = About(id=id, created=time.time(), tasks_file=str(tasks_file), args=args, work=str(work_of(id, work)))
        made = cls(path, about, tasks)
        _without_links(path)
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            made.lock()
            made.write_tasks()
            replace(path / "fleet.json", json.dumps(msgspec.to_builtins(about), indent=1).encode())
        except OSError as error:
            raise UsageError(f"cannot be written: {error.strerror}", context=str(path)) from None
        return made

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """:raises UsageError: there is no fleet in it, or its files are damaged or none that a fleet writes."""
        _without_links(path)
        try:
            about = msgspec.json.decode((path / "fleet.json").read_bytes(), type=About)
            tasks = [msgspec.json.decode(line, type=Task) for line in (path / "tasks.jsonl").read_bytes().splitlines() if line]
        except FileNotFoundError:
            raise UsageError("holds no fleet", context=str(path), hint="kernel fleet run TASKS.jsonl begins one") from None
        except (OSError, msgspec.MsgspecError, ValueError) as error:
            raise UsageError(f"cannot be read: {error}", context=str(path)) from None
        if any(not task.id or holds_nul(task) for task in tasks):
            raise UsageError("a task has no id, or a text with a NUL character", context=str(path / "tasks.jsonl"))
        found = cls(path, about, tasks)
        for line in found._read_journal():
            record = found.records.get(line.task)
            if record is not None:
                (record.begun if isinstance(line, Begun) else record.over).append(line)  # type: ignore[arg-type]
        return found

    def _read_journal(self) -> Iterator[Line]:
        """Each line that is whole. A torn last one was never promised to anybody; a damaged one elsewhere is counted."""
        decoder = msgspec.json.Decoder(Line)
        try:
            lines = (self.path / "journal.jsonl").read_bytes().split(b"\n")
        except FileNotFoundError:
            return
        for number, line in enumerate(lines, 1):
            try:
                if line:
                    yield decoder.decode(line)
            except (msgspec.MsgspecError, ValueError):
                self.torn += number < len(lines)

    def lock(self) -> None:
        """:raises UsageError: another process runs this fleet."""
        self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise UsageError("this fleet is running already, in another process", context=str(self.path),
                             hint="kernel fleet status shows how far it is") from None

    def add(self, tasks: list[Task]) -> int:
        """Take up tasks that the file has and the folder has not; how many.

        :raises UsageError: a task has changed, or the folder would run one that the file has not.
        """
        listed = {task.id for task in tasks}
        if unlisted := [id for id, record in self.records.items() if id not in listed and record.final is None]:
            raise UsageError(f"has tasks to run that the task file has not: {', '.join(unlisted[:5])}", context=str(self.path),
                             hint="kernel fleet run FOLDER runs them, too; --out FOLDER begins another fleet")
        new = [task for task in tasks if task.id not in self.records]
        for task in tasks:
            if task.id in self.records and self.records[task.id].task != task:
                raise UsageError(f"the task {task.id!r} is another one than the fleet in {self.path} began with",
                                 context=self.about.tasks_file, hint="give it another id, or begin a fleet with --out FOLDER")
        self.records.update({task.id: Record(task) for task in new})
        if new:
            self.write_tasks()
        return len(new)

    def write_tasks(self) -> None:
        replace(self.path / "tasks.jsonl", b"".join(msgspec.json.encode(r.task) + b"\n" for r in self.records.values()))

    # -- writing ---------------------------------------------------------------------------------------------------------
    def append(self, line: Line) -> None:
        """Kept when it returns, whatever happens to the process; an end is on the disk, too."""
        if self._journal is None:
            self._journal = self._at_a_line(self.path / "journal.jsonl")
        _write(self._journal, msgspec.json.encode(line) + b"\n")
        if isinstance(line, Over):
            os.fsync(self._journal)
        record = self.records[line.task]
        (record.begun if isinstance(line, Begun) else record.over).append(line)  # type: ignore[arg-type]
        if record.final is not None:
            number = self._at_a_line(self.path / "results.jsonl")
            _write(number, json.dumps(row(record), ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            os.close(number)

    def _at_a_line(self, path: Path) -> int:
        """The file at its end; a torn line is closed, so that what follows is a line of its own."""
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        size = os.fstat(number).st_size
        if size and os.pread(number, 1, size - 1) != b"\n":
            os.write(number, b"\n")
        return number

    def write_results(self) -> None:
        """``results.jsonl`` anew from the journal: what a crash had kept from it is in it."""
        ended = sorted((r for r in self.records.values() if r.final), key=lambda r: r.over[-1].at)
        replace(self.path / "results.jsonl",
                b"".join(json.dumps(row(r), ensure_ascii=False).encode("utf-8", "replace") + b"\n" for r in ended))

    def close(self) -> None:
        for number in (self._journal, self._lock):
            if number is not None:
                os.close(number)
        self._journal = self._lock = None

    def folder(self, task: str) -> Path:
        return self.path / "tasks" / task


def work_of(id: str, work: Path | None) -> Path:
    """Where a fleet's workspaces lie; ``work``: of the command line, else the user's cache folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return (work or cache / "kernel" / "fleet") / id[:13]


def _without_links(path: Path) -> None:
    """:raises UsageError: a link lies in the folder; a fleet makes none, and writing would follow it."""
    for folder, folders, names in os.walk(path):
        for name in (*folders, *names):
            if os.path.islink(os.path.join(folder, name)):
                raise UsageError(f"{os.path.join(folder, name)!r} is a link, and a fleet makes none", context=str(path),
                                 hint="--out FOLDER begins another fleet")


def row(record: Record) -> dict[str, Any]:
    """A finished task, or one that is not, as a flat object: a line of ``results.jsonl``, of the table, of the report."""
    over = record.over[-1] if record.over else Over(task=record.task.id, attempt=0, status="", at=0.0)
    return {
        "id": record.task.id, "status": record.status, "why": over.why, "subtype": over.subtype,
        "terminal_reason": over.terminal_reason, "attempts": len(record.begun), "session_id": over.session,
        "turns": over.turns, "tool_calls": over.tool_calls, "refused_calls": over.refused, "run_ms": over.run_ms,
        "wall_ms": over.wall_ms, "around_ms": over.around_ms, "cost_usd": round(record.cost_usd, 6),
        "input_tokens": over.input_tokens, "output_tokens": over.output_tokens, "patch_bytes": over.patch_bytes,
        "transcript": f"tasks/{record.task.id}/attempt-{over.attempt}.jsonl" if over.attempt else "",
        "patch": f"tasks/{record.task.id}/changes.patch" if over.patch_bytes else "", "result": over.text,
        "structured_output": over.structured, "notes": over.notes}


def _write(number: int, data: bytes) -> None:
    while data:
        data = data[os.write(number, data):]


def replace(path: Path, data: bytes) -> None:
    """A whole file or the one before."""
    beside = path.with_name(f".{path.name}.new")
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _write(number, data)
        os.fsync(number)
    finally:
        os.close(number)
    os.replace(beside, path)
