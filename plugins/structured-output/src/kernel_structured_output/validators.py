"""Validators that need no evidence: fixed values, form of the text, completed tasks, side effects that were claimed."""

from __future__ import annotations

import re
from typing import Any

from kernel import OutputProblem, Session
from kernel_structured_output.checks import SETTINGS
from kernel_structured_output.repair import pointer, shown
from kernel_structured_output.schema import at
from kernel_structured_output.state import attempts


class Exact:
    """``kernel.structuredOutput.exact``: JSON pointer -> the value that must stand there."""

    name = "exact"
    uses_model = False

    async def validate(self, value: Any, text: str, session: Session) -> list[OutputProblem]:
        wanted = session.settings.own(f"{SETTINGS}.exact")
        problems = []
        for path, expected in (wanted if isinstance(wanted, dict) else {}).items():
            found, there = at(value, path)
            if not there or not _same(found, expected):
                problems.append(OutputProblem(validator=self.name, path=path, rule="exact", expected=shown(expected),
                                              received=shown(found) if there else "nothing"))
        return problems


class Format:
    """``kernel.structuredOutput.format``: ``maxLength`` of every text, ``noMarkup``."""

    name = "format"
    uses_model = False

    async def validate(self, value: Any, text: str, session: Session) -> list[OutputProblem]:
        wanted = session.settings.own(f"{SETTINGS}.format")
        wanted = wanted if isinstance(wanted, dict) else {}
        problems = []
        for path, found in _texts(text if value is None else value):
            longest = wanted.get("maxLength")
            if isinstance(longest, int) and len(found) > longest:
                problems.append(self._problem(path, "maxLength", f"at most {longest} characters", f"{len(found)} characters"))
            if wanted.get("noMarkup") is True and re.search(r"(?m)^#{1,6} |\*\*\S|```|<[a-z]+>", found):
                problems.append(self._problem(path, "noMarkup", "plain text", shown(found)))
        return problems

    def _problem(self, path: str, rule: str, expected: str, received: str) -> OutputProblem:
        return OutputProblem(validator=self.name, path=path, rule=rule, expected=expected, received=received)


class Completion:
    """Every task of the task list is completed."""

    name = "completion"
    uses_model = False

    async def validate(self, value: Any, text: str, session: Session) -> list[OutputProblem]:
        tasks = session.root.plugin_state.get("open-tasks")  # filled by whoever keeps a task list
        if not callable(tasks):
            raise LookupError("no plugin here keeps a list of tasks")
        return [OutputProblem(validator=self.name, path="", rule="open_task", expected="every task completed",
                              received=str(name), retry_scope="tool_loop") for name in tasks()]


class SideEffect:
    """What ``kernel.structuredOutput.sideEffects`` names was done in this run: ``{"/saved": "Write"}`` says that a true value
    at ``/saved`` needs a successful call of ``Write``."""

    name = "side_effect"
    uses_model = False

    async def validate(self, value: Any, text: str, session: Session) -> list[OutputProblem]:
        wanted = session.settings.own(f"{SETTINGS}.sideEffects")
        done = attempts(session.root).done
        problems = []
        for path, tool in (wanted if isinstance(wanted, dict) else {}).items():
            claimed, there = at(value, path)
            if there and claimed and str(tool) not in done:
                problems.append(OutputProblem(validator=self.name, path=path, rule="side_effect", received=shown(claimed),
                                              expected=f"a successful call of {tool} in this run", retry_scope="tool_loop"))
        return problems


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is no 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _texts(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(pointer(path), value)]
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in _texts(inner, (*path, key))]
    if isinstance(value, list):
        return [found for number, inner in enumerate(value) for found in _texts(inner, (*path, number))]
    return []
