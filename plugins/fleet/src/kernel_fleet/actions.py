"""What each word behind ``kernel fleet`` does. Results on stdout, progress on stderr; 0 all done, 1 not all, 130 interrupted."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from kernel import UsageError
from kernel_fleet import report, tasks as tasks_
from kernel_fleet.board import Limits
from kernel_fleet.engine import Fleet, ready
from kernel_fleet.journal import RunFolder, row
from kernel_fleet.progress import Progress, counts, one_line, told_of
from kernel_fleet.seats import Executor, Processes

Json = Annotated[bool, Option("--json", help="JSON instead of a table")]
Folder = Annotated[Path, Argument(help="the folder of a fleet, or its task file")]

_rest: list[str] = []


@contextmanager
def behind_dashes(rest: list[str]) -> Iterator[None]:
    """What stood behind ``--`` on the command line, for ``run_``."""
    _rest[:] = rest
    try:
        yield
    finally:
        _rest.clear()


def run_(tasks: Annotated[Path, Argument(help="a file of tasks, JSON lines; or the folder of a fleet, to take it up again")],
         out: Annotated[Path | None, Option(help="the fleet's folder; default: the file's name with .fleet")] = None,
         workers: Annotated[int | None, Option(min=1, help="tasks at a time; default: one for each core")] = None,
         executor: Annotated[str, Option(help="processes (this machine) or ray")] = "",
         address: Annotated[str | None, Option(help="a Ray cluster; without one, --executor ray begins one here")] = None,
         retries: Annotated[int, Option(min=0, help="further attempts where a worker died or a failure may pass")] = 2,
         budget_usd: Annotated[float | None, Option(help="dollars for all tasks together")] = None,
         starts_per_minute: Annotated[float | None, Option(help="so many tasks begin in a minute")] = None,
         requests_per_minute: Annotated[float | None, Option(help="model requests of all tasks together")] = None,
         timeout: Annotated[float | None, Option(help="seconds for a task that has no timeout_s")] = None,
         pass_env: Annotated[list[str] | None, Option(help="one more variable of the environment for the tasks")] = None,
         work: Annotated[Path | None, Option(help="where workspaces are made; default: the user's cache folder")] = None,
         keep: Annotated[bool, Option("--keep", help="leave the workspaces of finished tasks")] = False,
         dry_run: Annotated[bool, Option("--dry-run", help="read the file and say what would be done")] = False,
         json_: Json = False) -> int:
    for name, value in (("--budget-usd", budget_usd), ("--starts-per-minute", starts_per_minute), ("--timeout", timeout),
                        ("--requests-per-minute", requests_per_minute)):
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"{name} must be a positive number")
    tasks_.check_own(_rest)
    _rest[:] = tasks_.absolute(_rest, Path.cwd())
    chosen = _executor(executor, address, pass_env or [])
    folder = _folder(tasks, out, work, dry_run)
    left = [r for r in folder.records.values() if r.final is None]
    if dry_run:
        _end(folder, json_, "")
        return 0
    if not left:
        return _end(folder, json_, "all tasks are finished; --out begins another fleet")
    try:
        _said_again(folder)
        place = ready(folder, work.resolve() if work else None)
        progress = Progress(list(folder.records.values()))
        limits = Limits(seats=0, retries=retries, starts_per_minute=starts_per_minute, budget_usd=budget_usd)
        fleet = Fleet(folder, chosen, limits, work=place, workers=workers, args=list(_rest), keep=keep,
                      pace=requests_per_minute, timeout_s=timeout, told=progress.told)
        before = len(folder.records) - len(left)
        print(f"fleet: {len(left)} tasks" + (f" of {len(folder.records)} are left" if before else "") + f", in {folder.path}",
              file=sys.stderr, flush=True)
        if folder.torn:
            print(f"fleet: {folder.torn} line(s) of the journal were cut off and are left out", file=sys.stderr)
        fleet.warn_of_changes()
        with redirect_stdout(sys.stderr):  # what Ray has to say is no result
            fleet.run(lambda: progress.tick(fleet.board.running, fleet.board.spent))
        progress.end(fleet.board.running, fleet.board.spent)
        folder.write_results()
        report.write(folder)
        code = _end(folder, json_, _why(fleet, folder, work), seconds=time.time() - fleet.began)
        return 130 if fleet.board.closed == "interrupted" and code else code
    finally:
        folder.close()


def _executor(name: str, address: str | None, named: list[str]) -> Executor:
    if name == "ray" or (address and not name):
        from kernel_fleet.on_ray import OnRay

        return OnRay(named, address)
    if name not in ("", "processes"):
        raise UsageError(f"--executor {name}: expected processes or ray")
    if address:
        raise UsageError("--address is a Ray cluster's, and --executor is processes")
    return Processes(named)


def _folder(given: Path, out: Path | None, work: Path | None, dry_run: bool) -> RunFolder:
    """The fleet's folder, open and locked: the one that is there for these tasks, or a new one."""
    if given.is_dir():
        folder = RunFolder.open(given.resolve())
        folder.lock()
        return folder
    tasks = tasks_.read(given.absolute())
    path = (out or given.with_suffix(".fleet")).resolve()
    if (path / "fleet.json").exists():
        folder = RunFolder.open(path)
        folder.lock()
        folder.add(tasks)
        return folder
    if dry_run:
        from kernel_fleet.journal import About

        return RunFolder(path, About(id="", created=0.0, tasks_file=str(given), work=""), tasks)
    return RunFolder.create(path, given.absolute(), tasks, work.resolve() if work else None, list(_rest))


def _said_again(folder: RunFolder) -> None:
    """A folder may have come with a repository, so what its runs may do is said by who starts it.

    :raises UsageError: the folder holds flags for its runs, and the command line has none.
    """
    if folder.about.args and not _rest:
        raise UsageError("the fleet began with flags for its runs; they are not taken from its folder. Read them, and give those "
                         f"that you want behind --:\n  -- {_printable(shlex.join(folder.about.args))}",
                         context=str(folder.path / "fleet.json"), hint="--out FOLDER begins another fleet")


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _why(fleet: Fleet, folder: RunFolder, work: Path | None) -> str:
    open_ = sum(r.final is None for r in folder.records.values())
    more = " --budget-usd MORE" if "budget" in fleet.board.closed else ""
    if not open_:
        return ""
    more += f" --work {_quoted(work.resolve())}" if work else ""
    more += f" -- {shlex.join(_rest)}" if _rest else ""
    return (f"{fleet.board.closed or 'stopped'}; {open_} tasks are left. To go on: "
            f"kernel fleet run {_quoted(folder.path)}{more}")


def _quoted(path: Path) -> str:
    return shlex.quote(os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path))


def _end(folder: RunFolder, json_: bool, why: str, seconds: float | None = None) -> int:
    found = counts(folder.records.values())
    code = 0 if found["done"] == len(folder.records) else 1
    if json_:
        print(json.dumps(_summary(folder, seconds) | {"why": why}, indent=1, ensure_ascii=False))
        return code
    rows = [row(r) for r in folder.records.values()]
    for item in [r for r in rows if r["status"] != "done"][:20]:
        print(f"{item['id']:<24} {item['status']:<10} {one_line(item['why'])}")
    cost = sum(r.cost_usd for r in folder.records.values())
    print(f"{told_of(found)}" + (f", ${cost:.4f}" if cost else "") + (f", {seconds:.1f} s" if seconds else ""))
    if why:
        print(why)
    if (folder.path / "report.html").exists():
        print(f"results.jsonl, results.csv and report.html are in {_quoted(folder.path)}")
    return code


def _summary(folder: RunFolder, seconds: float | None = None) -> dict[str, Any]:
    records = folder.records.values()
    found = counts(records)
    return {"folder": str(folder.path), "tasks": len(folder.records), "statuses": dict(found),
            "completion_rate": found["done"] / max(1, len(folder.records)), "attempts": sum(len(r.begun) for r in records),
            "cost_usd": round(sum(r.cost_usd for r in records), 6), "seconds": round(seconds, 3) if seconds is not None else None}


def status_(folder: Folder, json_: Json = False) -> int:
    found = RunFolder.open(_of(folder))
    if json_:
        print(json.dumps(_summary(found) | {"results": [row(r) for r in found.records.values()]}, indent=1, ensure_ascii=False))
        return 0
    for record in found.records.values():
        if record.status not in ("done", "waiting"):
            item = row(record)
            print(f"{item['id']:<24} {item['status']:<10} attempt {item['attempts']}  {one_line(item['why'])}")
    print(told_of(counts(found.records.values())))
    return 0


def report_(folder: Folder, json_: Json = False) -> int:
    found = RunFolder.open(_of(folder))
    written = report.write(found)
    print(json.dumps([str(p) for p in written], indent=1) if json_ else "\n".join(map(str, written)))
    return 0


def schema_() -> int:
    print(json.dumps(tasks_.schema(), indent=1))
    return 0


def _of(given: Path) -> Path:
    return (given if given.is_dir() else given.with_suffix(".fleet")).resolve()
