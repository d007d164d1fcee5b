"""Validators that need no evidence: fixed values, form of the text, completed tasks, side effects that were claimed."""

from __future__ import annotations

import re
from typing import Any

from kernel import OutputProblem, Session
from kernel_structured_output.repair import pointer, shown

SETTINGS = "kernel.structuredOutput"


class Exact:
    """``kernel.structuredOutput.exact``: JSON pointer -> the value that must stand there."""

    name = "exact"
    uses_model = False

    async def validate(self, value: Any, text: str, session: Session) -> list[OutputProblem]:
        wanted = session.settings.own(f"{SETTINGS}.exact")
        problems = []
        for path, expected in (wanted if isinstance(wanted, dict) else {}).items():
            found, there = _at(value, path)
            if not there or found != expected:
                problems.append(OutputProblem(validator=self.name, path=path, rule="exact", expected=shown(expected),
                                              received=shown(found) if there else "nothing"))
        return problems


class Format:
    """``kernel.structuredOutput.format``: ``maxLength`` of every text, ``noMarkup``, ``pattern`` of the whole answer."""

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
        return [OutputProblem(validator=self.name, path="", rule="open_task", expected="every task completed",
                              received=str(name), retry_scope="tool_loop") for name in (tasks() if callable(tasks) else ())]


class SideEffect:
    """What ``kernel.structuredOutput.sideEffects`` names was done in this run: ``{"/saved": "Write"}`` says that a true value
    at ``/saved`` needs a successful call of ``Write``."""

    name = "side_effect"
    uses_model = False

    async def validate(self, value: Any, text: str, session: Session) -> list[OutputProblem]:
        wanted = session.settings.own(f"{SETTINGS}.sideEffects")
        done = _succeeded(session)
        problems = []
        for path, tool in (wanted if isinstance(wanted, dict) else {}).items():
            claimed, there = _at(value, path)
            if there and claimed and str(tool) not in done:
                problems.append(OutputProblem(validator=self.name, path=path, rule="side_effect", received=shown(claimed),
                                              expected=f"a successful call of {tool} in this run", retry_scope="tool_loop"))
        return problems


def _succeeded(session: Session) -> set[str]:
    """Names of tools of this run that ended well: calls behind the last prompt whose result is no error."""
    names: dict[str, str] = {}
    good: set[str] = set()
    for role, blocks in session.history.messages:
        results = [b for b in blocks if b.get("type") == "tool_result"]
        if role == "user" and not results:
            names, good = {}, set()  # a prompt: a new run
        for block in blocks:
            if block.get("type") == "tool_use":
                names[str(block.get("id"))] = str(block.get("name"))
        good |= {names[call] for b in results if not b.get("is_error") and (call := str(b.get("tool_use_id"))) in names}
    return good


def _at(value: Any, path: str) -> tuple[Any, bool]:
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None, False
    return value, True


def _texts(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(pointer(path), value)]
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in _texts(inner, (*path, key))]
    if isinstance(value, list):
        return [found for number, inner in enumerate(value) for found in _texts(inner, (*path, number))]
    return []
