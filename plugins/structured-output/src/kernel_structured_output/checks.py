"""Run the validators that were chosen, in their order (section 6)."""

from __future__ import annotations

from typing import Any

from kernel import OutputProblem, OutputValidator, Session

CHOSEN = "kernel.structuredOutput.validators"
ON_EXHAUSTED = "kernel.structuredOutput.onExhausted"
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


def accepts_with_warnings(session: Session) -> bool:
    return bool(session.settings.own(ON_EXHAUSTED) == "accept_with_warnings")


async def run(session: Session, value: Any, text: str) -> list[OutputProblem]:
    """What all of them find. One that raises or takes too long is skipped, with a warning."""
    import anyio

    problems: list[OutputProblem] = []
    for validator in chosen(session):
        try:
            with anyio.fail_after(LIMIT_S):
                problems += await validator.validate(value, text, session)
        except Exception as error:
            session.notice(f"the validator {validator.name!r} did not work and is skipped: {type(error).__name__}: {error}",
                           guard=True)
        if any(p.severity == "error" for p in problems) and validator.uses_model:
            break
    return problems
