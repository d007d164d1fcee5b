"""Agents in the real program: print mode waits, a stream goes on by itself, signals leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernel.testing import alive_with

LAUNCH = {"tool": "Agent", "input": {"description": "look", "prompt": "Look around.", "subagent_type": "general-purpose"}}


class Program:
    """``kernel`` in a folder of its own; ``mark`` is a word in the command lines of its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"4{os.urandom(4).hex()}".translate(str.maketrans("abcdef", "123456"))
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, turns: list[dict[str, Any]], *flags: str, stdin: int = subprocess.DEVNULL,
              **env: str) -> subprocess.Popen[str]:
        (self.folder / "script.yaml").write_text(yaml.safe_dump({"turns": turns}))
        variables = {"HOME": str(self.folder), "PATH": os.environ["PATH"], "KERNEL_PROVIDER": "script", "IS_SANDBOX": "1",
                     "KERNEL_SCRIPT": str(self.folder / "script.yaml"), **env}
        process = subprocess.Popen([sys.executable, "-m", "kernel", "-p", "--permission-mode", "bypassPermissions", *flags],
                                   cwd=self.folder, env=variables, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        self.processes.append(process)
        return process

    def run(self, turns: list[dict[str, Any]], *flags: str, **env: str) -> tuple[int, str, str]:
        process = self.start(turns, *flags, **env)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    def sleep(self) -> dict[str, Any]:
        """A call of a command that runs until it is ended."""
        return {"tool": "Bash", "input": {"command": f"sleep {self.mark}"}}

    def until_it_sleeps(self) -> None:
        self.until(lambda: bool(self.asleep()))

    def asleep(self) -> list[int]:
        return alive_with(self.mark)

    def until(self, true: Any) -> None:
        deadline = time.monotonic() + 30
        while not true():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.02)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    made = Program(tmp_path)
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def test_print_mode_waits_for_the_report_and_prints_what_was_made_of_it(program: Program) -> None:
    turns = [{"when": {"contains": "Look around."}, "text": "One tree."}, {"calls": [LAUNCH]}, {"text": "It runs."},
             {"text": "There is one tree."}]
    code, out, err = program.run(turns, "Go.")
    assert (code, out) == (0, "There is one tree.\n"), err


def test_the_messages_of_a_stream_say_what_started_the_second_run(program: Program) -> None:
    turns = [{"when": {"contains": "Look around."}, "text": "One tree."}, {"calls": [LAUNCH]}, {"text": "It runs."},
             {"text": "One."}]
    _, out, err = program.run(turns, "Go.", "--output-format", "stream-json", "--verbose")
    messages = [json.loads(line) for line in out.splitlines()]
    results = [m for m in messages if m["type"] == "result"]
    assert [(r["result"], (r.get("origin") or {}).get("kind")) for r in results] == [
        ("It runs.", None), ("One.", "task-notification")], err
    synthetic = [m for m in messages if m["type"] == "user" and m.get("isSynthetic")]
    assert "One tree." in synthetic[0]["message"]["content"] and synthetic[0]["origin"]["kind"] == "task-notification"
    ended = next(n for n, m in enumerate(messages) if m.get("subtype") == "task_notification")
    assert ended < messages.index(synthetic[0])


def test_the_wait_has_a_ceiling_and_nothing_runs_on_behind_it(program: Program) -> None:
    turns = [{"when": {"contains": "Look around."}, "calls": [program.sleep()]}, {"calls": [LAUNCH]}, {"text": "It runs."}]
    code, out, err = program.run(turns, "Go.", CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS="300")
    assert (code, out) == (0, "It runs.\n"), err
    assert program.asleep() == []


def test_a_report_starts_a_run_while_the_stream_waits_for_its_next_message(program: Program) -> None:
    turns = [{"when": {"contains": "Look around."}, "text": "One tree."}, {"calls": [LAUNCH]}, {"text": "It runs."},
             {"text": "There is one tree."}, {"text": "Bye."}]
    process = program.start(turns, "--input-format", "stream-json", "--output-format", "stream-json", "--verbose",
                            stdin=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None

    def say(text: str) -> None:
        process.stdin.write(json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n")
        process.stdin.flush()

    def results(count: int) -> list[str]:
        found: list[str] = []
        while len(found) < count:
            message = json.loads(process.stdout.readline())
            if message["type"] == "result":
                found.append(message["result"])
        return found

    say("Go.")
    assert results(2) == ["It runs.", "There is one tree."], "without a word of the client"
    say("Thanks.")
    assert results(1) == ["Bye."]
    process.stdin.close()
    assert process.wait(30) == 0


@pytest.mark.parametrize("background", [False, True])
def test_sigterm_ends_agents_and_their_commands(background: bool, program: Program) -> None:
    launch = {"tool": "Agent", "input": {**LAUNCH["input"], "run_in_background": background}}  # type: ignore[dict-item]
    turns = [{"when": {"contains": "Look around."}, "calls": [program.sleep()]}, {"calls": [launch]}, {"text": "It runs."}]
    process = program.start(turns, "Go.", "--output-format", "stream-json", "--verbose")
    program.until_it_sleeps()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 143, err
    assert program.asleep() == []
    messages = [json.loads(line) for line in out.splitlines()]
    assert [m["status"] for m in messages if m.get("subtype") == "task_notification"] == ["stopped"], "clients learn of the end"


def test_one_interrupt_ends_a_foreground_agent_and_the_turn(program: Program) -> None:
    launch = {"tool": "Agent", "input": {**LAUNCH["input"], "run_in_background": False}}  # type: ignore[dict-item]
    turns = [{"when": {"contains": "Look around."}, "calls": [program.sleep()]}, {"calls": [launch]}, {"text": "never"}]
    process = program.start(turns, "Go.", "--output-format", "json")
    program.until_it_sleeps()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 1 and json.loads(out)["terminal_reason"] == "aborted_tools", err
    assert program.asleep() == []
