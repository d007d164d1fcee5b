"""``kernel harness ...``: one small class for the registry, one typer application behind it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SUMMARIES = {
    "init": "write a commented harness.yaml from what is installed now",
    "lock": "write exact versions and digests of every file to kernel.lock",
    "sync": "put exactly the locked files in place",
    "verify": "compare every locked file with what is there",
    "show": "what the harness is: plugins, versions, settings, where from",
    "export": "write a pyproject.toml and a Dockerfile that give the same harness",
    "schema": "print the JSON Schema of harness.yaml",
}


class HarnessCommand:
    """One of the commands ``harness init``, ``harness lock`` ...; without a verb the one that lists them."""

    def __init__(self, verb: str = "") -> None:
        self.verb, self.name = verb, f"harness {verb}".strip()
        self.summary = SUMMARIES.get(verb, "a harness as a file")

    def run(self, args: list[str]) -> int:
        """Exit code 0 where all is well, 1 where something was found or failed, 2 for wrong usage."""
        from kernel import run_app
        from kernel_manager.harness_file.app import app

        return run_app(app, [self.verb, *args] if self.verb else args or ["--help"], "kernel harness")


def register(register: Any) -> None:
    for verb in ("", *SUMMARIES):
        register(HarnessCommand(verb))


def say(text: str) -> None:
    print(text, file=sys.stderr)


def print_json(data: Any) -> None:
    print(json.dumps(data, indent=1, ensure_ascii=False, default=str))


def relative(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
