"""The command that this plugin brings."""

from __future__ import annotations


class PermissionsCommand:
    """``kernel permissions``. Decides on paper: no tool runs, no session is opened, nothing is written."""

    name = "permissions"
    summary = "explain decisions, test rules, lint them, decide in bulk"

    def run(self, args: list[str]) -> int:
        """Exit code 0 where all is well, 1 where something was found, 2 for wrong usage."""
        from .app import main

        return main(args)
