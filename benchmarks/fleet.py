"""``python -m benchmarks.fleet``: many scripted tasks on a few workers, some of which are killed in the middle.

Each task is a real run in a git worktree of its own: ``--answers`` answers of a scripted model, ``--delay`` seconds each, and a
Bash call that writes a file. Throughput is compared with the ideal: the tasks' own time (``duration_ms`` of their results, added
up) divided by the workers. ``--kills`` workers are ended with SIGKILL while they run a task, evenly spread; with ``--restarts``
the fleet's own process as often, and the same command takes it up again. What must hold: every task is done, once, with the
change that it was to make. The exit code is 1 where that does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any


def prepare(folder: Path, count: int, answers: int, delay: float) -> list[str]:
    """A repository, a script, a task file; the arguments of ``kernel``."""
    project = folder / "project"
    project.mkdir()
    git = ["git", "-C", str(project), "-c", "user.name=n", "-c", "user.email=e@x"]
    (project / "README").write_text("hello\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "begin"]):
        subprocess.run([*git, *command], check=True)
    call = '    calls: [{tool: Bash, input: {command: "echo $KERNEL_FLEET_TASK > done.txt"}}]\n'
    turns = [f"  - delay: {delay}\n    text: step {n}\n" + (call if n < answers else "") for n in range(1, answers + 1)]
    (folder / "talk.yaml").write_text("name: talk\nturns:\n" + "".join(turns))
    lines = (json.dumps({"id": f"task-{n}", "prompt": "write the file", "cwd": "project"}) for n in range(count))
    (folder / "tasks.jsonl").write_text("\n".join(lines))
    return ["fleet", "run", "tasks.jsonl", "--retries", "5"]


def workers(parent: int) -> list[int]:
    """Worker processes of a fleet that have a run just now."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "stat").read_text().rpartition(")")[2].split()[1] == str(parent) \
                        and b"kernel_fleet.worker" in (entry / "cmdline").read_bytes() \
                        and (entry / f"task/{entry.name}/children").read_text().strip():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def finished(folder: Path) -> int:
    try:
        return (folder / "tasks.fleet" / "results.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def run(folder: Path, count: int, args: list[str], kills: int, restarts: int) -> dict[str, Any]:
    """Run the fleet to its end, and what came of it."""
    env = {"HOME": str(folder / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
           "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    (folder / "home").mkdir()
    marks = {count * n // (kills + 1): "worker" for n in range(1, kills + 1)}
    marks |= {count * n // (restarts + 1) + 1: "fleet" for n in range(1, restarts + 1)}
    killed = {"worker": 0, "fleet": 0}
    began = time.monotonic()
    done = 1
    for _ in range(restarts + 1):
        process = subprocess.Popen([sys.executable, "-m", "kernel", *args, "--", "--model", "script:" + str(folder / "talk.yaml"),
                                    "--allowedTools", "Bash"], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=sys.stderr)

        def kill(process: subprocess.Popen[bytes] = process) -> None:
            while process.poll() is None and marks:
                if finished(folder) >= min(marks):
                    if marks[min(marks)] == "fleet":
                        del marks[min(marks)]
                        killed["fleet"] += 1
                        process.kill()
                        return
                    if busy := workers(process.pid):
                        del marks[min(marks)]
                        killed["worker"] += 1
                        os.kill(busy[0], signal.SIGKILL)
                time.sleep(0.05)

        threading.Thread(target=kill, daemon=True).start()
        process.communicate()
        done = process.returncode
        if done != -signal.SIGKILL:
            break
    return {"exit": done, "seconds": time.monotonic() - began, "killed": killed}


def judge(folder: Path, count: int, workers: int, ran: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Figures, and what does not hold."""
    fleet = folder / "tasks.fleet"
    results = [json.loads(line) for line in (fleet / "results.jsonl").read_text().splitlines()]
    journal = [json.loads(line) for line in (fleet / "journal.jsonl").read_bytes().split(b"\n") if line.endswith(b"}")]
    ids = {f"task-{n}" for n in range(count)}
    wrong = []
    if ran["exit"]:
        wrong.append(f"exit code {ran['exit']}")
    if sorted(r["id"] for r in results) != sorted(ids) or any(r["status"] != "done" for r in results):
        wrong.append("not every task is done, once")
    finals = [line["task"] for line in journal if line["kind"] == "over" and line["status"] == "done"]
    if len(finals) != len(set(finals)):
        wrong.append("a task was finished twice")
    wrong += [f"{id}: its change is missing" for id in ids
              if f"+{id}\n" not in ((fleet / "tasks" / id / "changes.patch").read_text()
                                    if (fleet / "tasks" / id / "changes.patch").exists() else "")]
    own = sum(r["run_ms"] for r in results) / 1000
    begun = sum(line["kind"] == "begun" for line in journal)
    walls = [r["wall_ms"] + r["around_ms"] - r["run_ms"] for r in results if r["wall_ms"]]
    return {"tasks": count, "workers": workers, "seconds": round(ran["seconds"], 1), "own_seconds": round(own, 1),
            "share_of_ideal": round(own / workers / ran["seconds"], 3), "mean_task_s": round(own / max(1, len(results)), 3),
            "mean_overhead_ms": round(sum(walls) / max(1, len(walls))), "attempts": begun, "killed": ran["killed"],
            "resumed": sum(bool(line.get("resumes")) for line in journal)}, wrong


def measure(count: int, workers: int, answers: int, delay: float, kills: int,
            restarts: int = 0) -> tuple[dict[str, Any], list[str]]:
    """All of it in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        args = prepare(folder, count, answers, delay)
        return judge(folder, count, workers, run(folder, count, [*args, "--workers", str(workers)], kills, restarts))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--answers", type=int, default=3)
    parser.add_argument("--delay", type=float, default=0.35, help="seconds before each answer")
    parser.add_argument("--kills", type=int, default=5, help="workers that are killed")
    parser.add_argument("--restarts", type=int, default=0, help="how often the fleet itself is killed")
    given = parser.parse_args()
    figures, wrong = measure(given.tasks, given.workers, given.answers, given.delay, given.kills, given.restarts)
    print(json.dumps(figures, indent=1))
    for line in wrong[:20]:
        print(f"does not hold: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
