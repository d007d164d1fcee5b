"""``kernel evals run|prove|list|check``: the command line's side; the work is done elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel import run_app

WORDS = {
    "run": "run task suites, and compare two plugin sets",
    "prove": "plant the faults that a suite names; each must turn the checks red that it names, and nothing is red without",
    "list": "the suites that come along, and their cases",
    "check": "read suites strictly without running anything",
}


class EvalsCommand:
    """One word behind ``kernel evals``."""

    def __init__(self, word: str, summary: str) -> None:
        self.name = f"evals {word}"
        self.summary = summary
        self._word = word

    def run(self, args: list[str]) -> int:
        import typer

        from kernel_evals import actions

        app = typer.Typer(add_completion=False)
        action: Callable[..., Any] = getattr(actions, f"{self._word}_")
        app.command(help=f"{self.summary[0].upper()}{self.summary[1:]}.")(action)
        return run_app(app, args, f"kernel {self.name}")


COMMANDS = [EvalsCommand(word, summary) for word, summary in WORDS.items()]
