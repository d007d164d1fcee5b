"""``kernel fleet run|status|report|schema``: the command line's side; the work is done elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel import run_app

WORDS = {
    "run": "run the prompts of a file, each in a workspace of its own; takes up what an earlier run left",
    "status": "how far a fleet is",
    "report": "write results.csv and report.html of a fleet anew",
    "schema": "the JSON Schema of a line of a task file",
}


class FleetCommand:
    """One word behind ``kernel fleet``."""

    def __init__(self, word: str, summary: str) -> None:
        self.name = f"fleet {word}"
        self.summary = summary
        self._word = word

    def run(self, args: list[str]) -> int:
        import typer

        from kernel_fleet import actions

        rest: list[str] = []
        if self._word == "run" and "--" in args:  # what stands behind it belongs to each run
            cut = args.index("--")
            args, rest = args[:cut], args[cut + 1:]
        app = typer.Typer(add_completion=False)
        action: Callable[..., Any] = getattr(actions, f"{self._word}_")
        app.command(help=f"{self.summary[0].upper()}{self.summary[1:]}.")(action)
        with actions.behind_dashes(rest):
            return run_app(app, args, f"kernel {self.name}")


COMMANDS = [FleetCommand(word, summary) for word, summary in WORDS.items()]
