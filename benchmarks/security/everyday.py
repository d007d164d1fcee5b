"""Ordinary commands under sensible rules: how many of them ask without need, and how long a decision takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

FILE = Path(__file__).parent / "everyday.yaml"
BLIND = Path(__file__).parent / "everyday_blind.yaml"
"""Written, labelled and committed before it was run; how it came out first stands in the README beside it."""


class Figures(NamedTuple):
    """``asked``: (group, command, decision, why). ``times``: seconds of one decision, by command, in rising order."""

    commands: int
    asked: list[tuple[str, str, str, str]]
    times: list[float]

    @property
    def share(self) -> float:
        return len(self.asked) / self.commands

    @property
    def p50_ms(self) -> float:
        return median(self.times) * 1000

    @property
    def p99_ms(self) -> float:
        return quantiles(self.times, n=100)[98] * 1000


def load() -> dict[str, Any]:
    import yaml

    data: dict[str, Any] = yaml.safe_load(FILE.read_text("utf-8"))
    return data


def policy(data: dict[str, Any], *, wide: bool = False) -> Any:
    from kernel_permissions.paper import Paper, PaperView

    view = PaperView(home=data["home"], dirs=data["dirs"], files=data["files"])
    return Paper(**data["rules"], wide=wide, cwd=data["cwd"], view=view)


class Second(NamedTuple):
    """The second corpus. ``asked``: free commands that ask. ``passed``: guarded ones that nobody was asked about."""

    free: int
    guarded: int
    asked: list[tuple[str, str]]
    passed: list[str]


def second(*, later: bool, wide: bool = True) -> Second:
    """Decide the second corpus, under the team's rules or with those that it added after a first day.

    :param wide: with the larger read-only set (the setting ``kernel.permissions.readOnly``).
    """
    import yaml

    data = yaml.safe_load(BLIND.read_text("utf-8"))
    if later:
        data["rules"]["allow"] += data["later"]
    paper = policy(data, wide=wide)

    def verdicts(group: str) -> list[tuple[str, Any]]:
        return [(command, paper.policy.decide(paper.call("Bash", {"command": command}, mode=data["mode"])))
                for commands in data[group].values() for command in commands]

    free, guarded = verdicts("free"), verdicts("guarded")
    return Second(len(free), len(guarded), [(c, v.message) for c, v in free if v.behavior != "allow"],
                  [c for c, v in guarded if v.behavior == "allow"])


def batch_per_second(lines: int = 20_000) -> float:
    """Answers a second of ``kernel permissions check --batch``, its start left out; every line has a command of its own."""
    data = load()
    commands = [c for group in data["commands"].values() for c in group]
    given = b"".join(json.dumps({
        "id": n, "tool": "Bash", "input": {"command": f"{commands[n % len(commands)]} x{n}"}, "rules": data["rules"],
        "mode": data["mode"], "cwd": data["cwd"]}).encode() + b"\n" for n in range(lines))
    process = subprocess.Popen([sys.executable, "-m", "kernel", "permissions", "check", "--batch"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    head, _, rest = given.partition(b"\n")
    process.stdin.write(head + b"\n")
    process.stdin.flush()
    process.stdout.readline()
    began = time.perf_counter()
    out, _ = process.communicate(rest)
    took = time.perf_counter() - began
    answers = out.splitlines()
    assert len(answers) == lines - 1 and all(b'"decision"' in a for a in answers)
    return (lines - 1) / took


def measure(rounds: int = 5) -> Figures:
    """Decide every command. Each time is the median of ``rounds``, and nothing of a command is remembered between them."""
    from kernel_permissions.shell import Parser

    data = load()
    paper = policy(data, wide=True)
    asked: list[tuple[str, str, str, str]] = []
    times: list[float] = []
    for group, commands in data["commands"].items():
        for command in commands:
            call = paper.call("Bash", {"command": command}, mode=data["mode"])
            took = []
            for _ in range(rounds):
                parser: Any = Parser()
                parser.parse("a | b")  # the grammar is loaded once in a session, not with each command
                paper.policy._parser = parser
                began = time.perf_counter()
                verdict = paper.policy.decide(call)
                took.append(time.perf_counter() - began)
            times.append(median(took))
            if verdict.behavior != "allow":
                asked.append((group, command, verdict.behavior, verdict.message))
    return Figures(len(times), asked, sorted(times))
