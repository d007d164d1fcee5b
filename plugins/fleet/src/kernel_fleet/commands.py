"""``kernel fleet run|status|report|schema``: the command line's side; the work is done elsewhere."""

from __future__ import annotations

from kernel import TyperCommand

WORDS = {
    "run": "run the prompts of a file, each in a workspace of its own; takes up what an earlier run left",
    "status": "how far a fleet is",
    "report": "write results.csv and report.html of a fleet anew",
    "schema": "the JSON Schema of a line of a task file",
}


class Word(TyperCommand):
    """What stands behind ``--`` belongs to each run."""

    def run(self, args: list[str]) -> int:
        from kernel_fleet.actions import behind_dashes

        cut = args.index("--") if self.name == "fleet run" and "--" in args else len(args)
        with behind_dashes(args[cut + 1:]):
            return super().run(args[:cut])


COMMANDS = [Word(f"fleet {word}", summary, f"kernel_fleet.actions:{word}_") for word, summary in WORDS.items()]
