"""``kernel durable list|show|resume|work|approvals|prune``: the command line's side; the work is done elsewhere."""

from __future__ import annotations

from typing import Any

from kernel import run_app

WORDS = {
    "list": "durable runs: where they are, and who has them",
    "show": "the steps of a run",
    "resume": "take up a run that nobody has; without one, the latest of this folder",
    "work": "take up runs as they are left behind, or their questions are answered",
    "approvals": "stored questions: list, show, answer",
    "prune": "forget runs that are over",
}


class DurableCommand:
    """One word behind ``kernel durable``."""

    def __init__(self, word: str, summary: str) -> None:
        self.name = f"durable {word}"
        self.summary = summary
        self._word = word

    def run(self, args: list[str]) -> int:
        import typer

        from kernel_durable import actions

        if self._word == "approvals":
            app: Any = actions.approvals
        else:
            app = typer.Typer(add_completion=False)
            app.command(help=f"{self.summary[0].upper()}{self.summary[1:]}.")(getattr(actions, f"{self._word}_"))
        return run_app(app, args, f"kernel {self.name}")


COMMANDS = [DurableCommand(word, summary) for word, summary in WORDS.items()]
