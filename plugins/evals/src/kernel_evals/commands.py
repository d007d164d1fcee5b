"""``kernel evals run|prove|list|check``: the command line's side; the work is done elsewhere."""

from __future__ import annotations

from kernel import TyperCommand

WORDS = {
    "run": "run task suites, and compare two plugin sets",
    "prove": "plant the faults that a suite names; each must turn the checks red that it names, and nothing is red without",
    "list": "the suites that come along, and their cases",
    "check": "read suites strictly without running anything",
}
COMMANDS = [TyperCommand(f"evals {word}", summary, f"kernel_evals.actions:{word}_") for word, summary in WORDS.items()]
