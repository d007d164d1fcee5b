"""Ordinary commands under sensible rules: how many of them ask without need, and how long a decision takes."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

FILE = Path(__file__).parent / "everyday.yaml"


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


def policy(data: dict[str, Any]) -> Any:
    from kernel_permissions.paper import Paper, PaperView

    return Paper(**data["rules"], cwd=data["cwd"], view=PaperView(home=data["home"], dirs=data["dirs"], files=data["files"]))


def measure(rounds: int = 5) -> Figures:
    """Decide every command. Each time is the median of ``rounds``, and nothing of a command is remembered between them."""
    from kernel_permissions.shell import Parser

    data = load()
    paper = policy(data)
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
