"""The lint rule protocol: what a plugin adds to ``kernel plugins validate``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Protocol


class LintRule(Protocol):
    """Registered by ``register_lint_rules`` under ``name``, its code (``ACME001``). The linter runs it; it reads, nothing else.

    ``on`` names the kind of target that ``check`` takes (the README of the plugin ``linter`` lists them). A finding is what
    ``target.at("what is wrong", "key", 0)`` returns: the message and the way to the value. ``slug``, ``doc`` (its page) and
    ``since`` are optional.
    """

    name: str
    on: str
    severity: Literal["error", "warning", "info"]

    def check(self, target: Any) -> Iterable[Any]:
        """What is wrong with one target. An exception is reported as a fault of the rule; the others go on."""
