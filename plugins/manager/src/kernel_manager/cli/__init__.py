"""``kernel plugins ...``: each command as an object, its code imported when it is typed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

SUMMARIES = {
    "install": "install a plugin and what it needs",
    "uninstall": "take a plugin out",
    "enable": "switch an installed plugin on",
    "disable": "switch an installed plugin off",
    "update": "fetch a plugin again, check it, switch to it",
    "list": "every plugin with its state",
    "info": "what a plugin is and will do",
    "search": "find plugins in marketplaces",
    "prune": "remove what is needed no more",
    "outdated": "plugins with a newer version",
    "rollback": "go back to an earlier state",
    "marketplace": "add, list, update, remove marketplaces",
}
_HOMES = {"install": "changing", "uninstall": "changing", "enable": "changing", "disable": "changing", "update": "changing",
          "prune": "changing", "rollback": "changing", "outdated": "changing", "list": "reading", "info": "reading",
          "search": "reading", "marketplace": "markets"}


ALIASES = {"remove": "uninstall", "rm": "uninstall", "autoremove": "prune", "details": "info"}
"""Other words of the contract for the same (section 13)."""


class PluginsCommand:
    """One command of two words."""

    def __init__(self, word: str) -> None:
        self.name = f"plugins {word}"
        self.word = ALIASES.get(word, word)
        self.summary = SUMMARIES[self.word]

    def run(self, args: list[str]) -> int:
        """Exit code 0 where all is well, 1 where something was found or did not succeed, 2 for wrong usage."""
        from kernel_manager.cli.base import call

        app: Any = import_module(f"kernel_manager.cli.{_HOMES[self.word]}").apps()[self.word]
        return call(app, args)


def register(register: Callable[[PluginsCommand], None]) -> None:
    for word in (*SUMMARIES, *ALIASES):
        register(PluginsCommand(word))
