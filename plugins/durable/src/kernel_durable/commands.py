"""``kernel durable list|show|resume|work|approvals|prune``: the command line's side; the work is done elsewhere."""

from __future__ import annotations

from kernel import TyperCommand, run_app

WORDS = {
    "list": "durable runs: where they are, and who has them",
    "show": "the steps of a run",
    "resume": "take up a run that nobody has; without one, the latest of this folder",
    "work": "take up runs as they are left behind, or their questions are answered",
    "approvals": "stored questions: list, show, answer",
    "prune": "forget runs that are over",
}


class Word(TyperCommand):
    """One word behind ``kernel durable``; ``approvals`` has words of its own."""

    def run(self, args: list[str]) -> int:
        if self.name != "durable approvals":
            return super().run(args)
        from kernel_durable.actions import approvals

        return run_app(approvals, args, f"kernel {self.name}")


COMMANDS = [Word(f"durable {word}", summary, f"kernel_durable.actions:{word}_") for word, summary in WORDS.items()]
