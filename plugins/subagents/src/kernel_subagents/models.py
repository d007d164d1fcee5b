"""Which model a subagent gets (subagents contract, 3.2)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kernel import KernelError, ModelInfo, ModelProvider, Session

if TYPE_CHECKING:
    from collections.abc import Iterable

FAMILIES = ("sonnet", "opus", "haiku", "fable")


def choose_model(session: Session, call: str | None, definition: str | None) -> tuple[ModelProvider, ModelInfo] | None:
    """The first of variable, call and definition that may be used; ``None``: the parent's."""
    variable = os.environ.get("CLAUDE_CODE_SUBAGENT_MODEL", "").strip()
    wanted = next((m for m in (variable, call, definition) if m and m != "inherit"), None)
    if wanted is None:
        return None
    allowed = session.settings.get("availableModels")
    name = wanted if not isinstance(allowed, list) else permitted(session, wanted, [a for a in allowed if isinstance(a, str)])
    if name is None:
        session.debug(f"subagents: availableModels does not hold {wanted!r}; the parent's model is used")
        return None
    try:
        return session.harness.provider_of(name)
    except KernelError as error:
        session.notice(f"subagents: the model {name!r} cannot be used ({error}); the parent's is")
        return None


def permitted(session: Session, wanted: str, allowed: Iterable[str]) -> str | None:
    """The model itself where the list holds it; for a family the newest of that family in it; else ``None``."""
    allowed = list(allowed)
    if wanted in allowed or _id(session, wanted) in {_id(session, a) for a in allowed}:
        return wanted
    family = wanted.lower().partition("[")[0]
    if family not in FAMILIES:
        family_of = next((f for f in FAMILIES if f in family), None)
        return wanted if family_of in allowed else None  # a family in the list stands for all of it
    return max((a for a in allowed if family in a.lower()), key=_version, default=None)


def _id(session: Session, name: str) -> str:
    info = session.provider.resolve(name)
    return info.id if info is not None else name


def _version(name: str) -> list[int]:
    """``claude-opus-4-1`` is newer than ``claude-opus-4``: the numbers in order, dates last."""
    return [int(part) for part in name.replace(".", "-").split("-") if part.isdecimal()]
