"""Which task tools a session is offered (tools contract, 13.1): a table, and one function that reads it."""

from __future__ import annotations

import os
import re
from typing import Literal

from kernel import Session, env_switch

Family = Literal["tasks", "todo"]

TOOLS: dict[Family, tuple[str, ...]] = {
    "tasks": ("TaskCreate", "TaskGet", "TaskUpdate", "TaskList"),
    "todo": ("TodoWrite",),
}
WITHOUT_FROM: dict[str, tuple[int, ...]] = {"opus": (4, 8), "sonnet": (5,), "fable": (5,), "mythos": (5,)}
"""Model families that keep track by themselves, from which version on. Counts with the setting ``kernel.tasks.byModel``."""


def is_offered(family: Family, session: Session) -> bool:
    """Whether the tools of the family are offered; asked once, at the start of a session."""
    if family != _chosen(session):
        return False
    by_model = session.settings.get("kernel.tasks.byModel") is True
    return not (by_model and keeps_track(session.model_info.id)) or _asked_for(session)


def _chosen(session: Session) -> Family:
    if env_switch("CLAUDE_CODE_ENABLE_TASKS") is False:
        return "todo"
    names = set(session.options.tools or ())
    only_older = names & set(TOOLS["todo"]) and not names & set(TOOLS["tasks"])
    return "todo" if only_older else "tasks"  # a --tools list that names the older tool alone means it


def _asked_for(session: Session) -> bool:
    """The switches that beat the model's row."""
    if env_switch("CLAUDE_CODE_ENABLE_TODO_TOOLS"):
        return True
    everyone = {name for names in TOOLS.values() for name in names}
    allowed = {re.split(r"[(\s]", rule.strip(), maxsplit=1)[0]
               for text in session.options.allowed_tools for rule in text.split(",")}
    return bool(everyone & (allowed | set(session.options.tools or ())))


def keeps_track(model: str) -> bool:
    """Whether the model is of a family and version in ``WITHOUT_FROM``, by the spelling of its id."""
    for family, since in WITHOUT_FROM.items():
        # A version is one or two short numbers; a date (20250101) is none.
        found = re.search(rf"\b{family}-(\d{{1,2}})(?:-(\d{{1,2}}))?(?!\d)", model.lower())
        if found:
            return tuple(int(n) for n in found.groups(default="0")) >= since
    return False


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip().lower()
