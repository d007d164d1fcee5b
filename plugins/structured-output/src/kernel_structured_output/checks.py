"""Run the validators that were chosen, in their order (section 6)."""

from __future__ import annotations

from typing import Any

import msgspec

from kernel import OutputProblem, OutputValidator, Session
from kernel_structured_output.state import PLANNER_AT, SEMANTIC_RETRIES, Attempts

SETTINGS = "kernel.structuredOutput"
CHOSEN = f"{SETTINGS}.validators"
ON_EXHAUSTED = f"{SETTINGS}.onExhausted"
PLAIN = f"{SETTINGS}.plainAnswers"
_SCOPES = ("final_generation", "tool_loop", "planner")
_KINDS: dict[str, tuple[type, str]] = {
    "validators": (list, "a list of names"), "onExhausted": (str, "a text"), "plainAnswers": (bool, "true or false"),
    "exact": (dict, "an object"), "format": (dict, "an object"), "sideEffects": (dict, "an object")}
LIMIT_S = 10.0


def chosen(session: Session) -> list[OutputValidator]:
    """The validators of the setting, those that ask a model last. An unknown name is announced."""
    names = session.settings.own(CHOSEN)
    found: list[OutputValidator] = []
    for name in names if isinstance(names, list) else ():
        validator = session.harness.validators.get(str(name))
        if validator is None:
            session.notice(f"settings, {CHOSEN}: there is no validator {name!r}; known: "
                           f"{', '.join(session.harness.validators.names())}", guard=True)
        else:
            found.append(validator)
    return sorted(found, key=lambda v: bool(v.uses_model))


async def weigh(session: Session, run: Attempts, value: Any, text: str) -> list[OutputProblem]:
    """What sends an answer back: none where it is good, or where its tries are used up and it is taken with warnings."""
    found = await _run(session, value, text)
    run.warnings += [p for p in found if p.severity == "warning"]
    problems = [p for p in found if p.severity == "error"]
    if not problems:
        return []
    for key in {_item(p) for p in problems}:
        run.items[key] = run.items.get(key, 0) + 1
    problems = [_scoped(run, p) for p in problems]
    scope = max((p.retry_scope for p in problems), key=_SCOPES.index)
    run.scopes[scope] = run.scopes.get(scope, 0) + 1
    if run.scopes[scope] > SEMANTIC_RETRIES:
        if session.settings.own(ON_EXHAUSTED) == "accept_with_warnings":
            run.warnings += problems
            return []
        run.spent = scope
    return problems


async def _run(session: Session, value: Any, text: str) -> list[OutputProblem]:
    """What all of them find. One that raises or takes too long is skipped, with a warning; none can change the value."""
    import copy

    import anyio

    problems: list[OutputProblem] = []
    for validator in chosen(session):
        try:
            with anyio.fail_after(LIMIT_S):
                found = await validator.validate(copy.deepcopy(value), text, session)
            if not isinstance(found, list) or not all(isinstance(p, OutputProblem) for p in found):
                raise TypeError(f"it returned {type(found).__name__}, expected a list of OutputProblem")
        except Exception as error:
            session.notice(f"the validator {validator.name!r} did not work and is skipped: {type(error).__name__}: {error}",
                           guard=True)
            continue
        problems += found
        if validator.uses_model and any(p.severity == "error" for p in problems):
            break
    return problems


def _scoped(run: Attempts, problem: OutputProblem) -> OutputProblem:
    """The third failure of the same item means that the plan is wrong (section 7)."""
    wrong = problem.retry_scope == "tool_loop" and run.items[_item(problem)] >= PLANNER_AT
    return msgspec.structs.replace(problem, retry_scope="planner") if wrong else problem


def _item(problem: OutputProblem) -> str:
    """What is missing; where it has no place in the value, what stands for it (the name of a task)."""
    return f"{problem.validator} {problem.rule} {problem.path or problem.received}"


def wrong_settings(given: Any) -> str | None:
    """What is wrong with ``kernel.structuredOutput``; ``None``: nothing."""
    if given is None:
        return None
    if not isinstance(given, dict):
        return f"{SETTINGS}: must be an object"
    unknown = sorted(set(given) - set(_KINDS))
    if unknown:
        return f"{SETTINGS}.{unknown[0]}: there is no such setting; known: {', '.join(_KINDS)}"
    for name, value in given.items():
        if not isinstance(value, _KINDS[name][0]):
            return f"{SETTINGS}.{name}: must be {_KINDS[name][1]}"
    if given.get("onExhausted") not in (None, "fail", "accept_with_warnings"):
        return f"{SETTINGS}.onExhausted: must be 'fail' or 'accept_with_warnings'"
    for name in ("exact", "sideEffects"):
        for path, value in given.get(name, {}).items():
            if path and not path.startswith("/"):
                return f"{SETTINGS}.{name}: {path!r} is no JSON pointer; it begins with a slash"
            if name == "sideEffects" and not isinstance(value, str):
                return f"{SETTINGS}.{name}: {path!r} must name a tool"
    return _wrong_format(given.get("format", {}))


def _wrong_format(given: dict[str, Any]) -> str | None:
    longest = given.get("maxLength", 1)
    if isinstance(longest, bool) or not isinstance(longest, int) or longest < 1:
        return f"{SETTINGS}.format.maxLength: must be a positive whole number"
    if not isinstance(given.get("noMarkup", False), bool):
        return f"{SETTINGS}.format.noMarkup: must be true or false"
    unknown = sorted(set(given) - {"maxLength", "noMarkup"})
    return f"{SETTINGS}.format.{unknown[0]}: there is no such setting; known: maxLength, noMarkup" if unknown else None
