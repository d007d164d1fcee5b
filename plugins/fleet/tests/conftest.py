"""A project with a git repository and a script, and the command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

KILL_WORKER = """\
import os, pathlib, signal
pid, workers = os.getpid(), []
while pid > 1:
    if b"kernel_fleet.worker" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
        workers.append(pid)  # the run, then the worker that it was forked from
    pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
os.kill(workers[1], signal.SIGKILL)
"""


class Place:
    """A folder with ``project`` (a repository), ``talk.yaml`` and ``tasks.jsonl``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.project, self.home = folder, folder / "project", folder / "home"
        self.ledger = folder / "ledger"
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "SECRET_TOKEN": "hidden",
                    "PYTHONPATH": os.environ.get("PYTHONPATH", ""), "CLAUDE_CODE_MAX_RETRIES": "0"}
        (folder / "kill_worker.py").write_text(KILL_WORKER)
        self.home.mkdir()
        self.project.mkdir()
        (self.project / "README").write_text("hello\n")
        for command in (["init", "-q"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e@x", "commit", "-qm", "begin"]):
            subprocess.run(["git", "-C", str(self.project), *command], check=True)

    def script(self, *commands: str, delay: float = 0.0, end: str = "done") -> None:
        """Each command is a file of its own, so that the rules have nothing to say about what it holds."""
        turns: list[dict[str, Any]] = []
        for number, command in enumerate(commands):
            file = self.folder / f"step-{number}.sh"
            file.write_text(f"LEDGER={self.ledger}\n{command}\n")
            turns.append({"text": "a step", "delay": delay, "calls": [{"tool": "Bash", "input": {"command": f"sh {file}"}}]})
        self.turns(*turns, {"text": end, "delay": delay})

    def turns(self, *turns: dict[str, Any]) -> None:
        (self.folder / "talk.yaml").write_text(json.dumps({"name": "talk", "turns": list(turns)}))

    def tasks(self, *tasks: dict[str, Any]) -> None:
        lines = [json.dumps({"prompt": "go", "cwd": "project", **task}) for task in tasks]
        (self.folder / "tasks.jsonl").write_text("\n".join(lines) + "\n")

    def command(self, *args: str, more: tuple[str, ...] = ()) -> list[str]:
        return [sys.executable, "-m", "kernel", "fleet", "run", "tasks.jsonl", *args, "--", "--model",
                f"script:{self.folder / 'talk.yaml'}", "--allowedTools", "Bash", *more]

    def run(self, *args: str, more: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*args, more=more), cwd=self.folder, env=self.env, capture_output=True, text=True,
                              timeout=120, check=False)

    def kernel(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "kernel", *args], cwd=self.folder, env=self.env, capture_output=True,
                              text=True, timeout=60, check=False)

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        lines = (self.folder / "tasks.fleet" / "results.jsonl").read_text().splitlines()
        found = [json.loads(line) for line in lines]
        assert len({r["id"] for r in found}) == len(found), "a task has one result"
        return {r["id"]: r for r in found}

    @property
    def journal(self) -> list[dict[str, Any]]:
        lines = (self.folder / "tasks.fleet" / "journal.jsonl").read_bytes().split(b"\n")
        return [json.loads(line) for line in lines if line.endswith(b"}")]

    def left(self) -> list[str]:
        """Workspaces that are still there."""
        listed = subprocess.run(["git", "-C", str(self.project), "worktree", "list"], capture_output=True, text=True, check=True)
        cache = self.home / ".cache" / "kernel" / "fleet"
        return listed.stdout.splitlines()[1:] + [str(p) for p in cache.glob("*/*")]


    @staticmethod
    def until(condition: Callable[[], Any], what: str) -> None:
        """Wait for something that comes, without a bar on its time."""
        for _ in range(2400):
            if condition():
                return
            time.sleep(0.05)
        raise AssertionError(f"never came: {what}")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
