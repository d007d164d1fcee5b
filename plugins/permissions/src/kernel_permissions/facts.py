"""Everything a decision depends on beside the call itself: the injected half of the pure decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernel import PermissionCall, Tool

from .modes import narrow
from .paths import PathRules, Places
from .rules import CommandIndex, Rule, RuleSet
from .view import View

Classifier = Callable[[PermissionCall, str], str]
"""(call, why it would be asked) -> ``allow`` or ``deny``, anything else is no verdict; the answer of auto mode."""


class Facts:
    """:param rules: all rules in force.

    :param cwd: the directory that the session started in.
    :param directories: additional working directories.
    :param own: folders of the harness that are protected as a whole.
    :param bypass_available: the session may enter ``bypassPermissions``.
    :param sandboxed: whether a command with this input would run confined; ``None``: there is no sandbox.
    :param plan_file: whether a path is the plan file, which plan mode may write.
    :param opinion: what a tool itself says to a call, where it has an opinion of its own.
    :param homes: folders that the harness gave this context to keep notes in; they are not protected from it.
    :param classify_shell: every shell command goes to the classifier in auto mode.
    :param wide: more commands than the documented ones count as read-only.
    """

    def __init__(self, rules: RuleSet, view: View, cwd: str, directories: tuple[str, ...] = (), *, own: tuple[str, ...] = (),
                 bypass_available: bool = False, classifier: Classifier | None = None,
                 sandboxed: Callable[[Mapping[str, Any]], bool] | None = None,
                 plan_file: Callable[[str], bool] = lambda path: False,
                 opinion: Callable[[Tool, dict[str, Any]], str | None] = lambda tool, input: None,
                 homes: Callable[[], Sequence[str]] = tuple, classify_shell: bool = False, wide: bool = False) -> None:
        self.rules = rules
        self.view = view
        self.places = Places(view, (cwd, *directories))
        self.cwd = self.places.directories[0]
        self.paths = PathRules(rules, view, self.cwd)
        self.own = own
        self.bypass_available = bypass_available
        self.classifier = classifier
        self.sandboxed = sandboxed
        self.plan_file = plan_file
        self.opinion = opinion
        self.homes = homes
        self.classify_shell = classify_shell
        self.wide = wide
        self._auto: list[Rule] | None = None
        self._commands: dict[tuple[bool, tuple[str, ...], str], CommandIndex] = {}

    def commands(self, mode: str, names: tuple[str, ...], rule_name: str) -> CommandIndex:
        """The allow rules about commands that count in a mode, for a tool with these names that is ruled as ``rule_name``."""
        usable = self.usable(mode)
        key = (usable is None, names, rule_name)
        found = self._commands.get(key)
        if found is None:
            rules = self.rules.of("allow", names, rule_name)
            if rule_name not in names:  # another tool that is ruled as Bash
                rules = [*rules, *self.rules.scoped("allow", "Bash")]
            found = self._commands[key] = CommandIndex(r for r in rules if usable is None or r in usable)
        return found

    def usable(self, mode: str) -> list[Rule] | None:
        """The allow rules that count in a mode; ``None``: all of them."""
        if mode != "auto":
            return None
        if self._auto is None:
            self._auto = [r for r in self.rules.lists["allow"] if narrow(r)]
        return self._auto
