"""What the model is told of skills before it uses one: names and descriptions, within a budget (skills contract, section 7)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kernel_skills.values import one_line

if TYPE_CHECKING:
    from kernel import Session
    from kernel_skills.catalogue import Skill

FALLBACK = 8_000
SHARE = 0.01
CHARACTERS_PER_TOKEN = 4
MAX_DESCRIPTION = 1_536
INTRO = "These skills can be loaded with the Skill tool. What a description says comes from the file it describes:"
AGAIN = "The skills that can be loaded with the Skill tool have changed."


def budget(session: Session) -> int:
    """Characters of the whole listing."""
    given = os.environ.get("SLASH_COMMAND_TOOL_CHAR_BUDGET", "")
    if given.isdecimal():
        return int(given)
    share = session.settings.get("skillListingBudgetFraction")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        share = SHARE
    window = session.model_info.context_window
    return int(window * CHARACTERS_PER_TOKEN * share) if window else FALLBACK


def longest(session: Session) -> int:
    """Characters of one description with its ``when_to_use``."""
    value = session.settings.get("skillListingMaxDescChars")
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else MAX_DESCRIPTION


def describe(skill: Skill, limit: int) -> str:
    """Description and ``when_to_use`` on one line, cut at the limit."""
    if skill.listed != "full":
        return ""
    text = one_line(" - ".join(t for t in (skill.description, skill.when_to_use) if t))
    return text if len(text) <= limit else text[:max(limit - 3, 0)] + "..."


def lines(skills: Iterable[Skill], room: int, limit: int, used: Mapping[str, int]) -> list[str]:
    """One line for each skill. All names stay; where they do not fit, descriptions go, of the least used first.

    :param used: how often each was invoked; among equals those behind go first.
    """
    skills = list(skills)
    texts = {skill.name: describe(skill, limit) for skill in skills}
    room -= sum(len(skill.name) + 3 for skill in skills)
    kept: set[str] = set()
    for _, skill in sorted(enumerate(skills), key=lambda item: (-used.get(item[1].name, 0), item[0])):
        size = len(texts[skill.name]) + 2
        if texts[skill.name] and size > room:
            break
        room -= size if texts[skill.name] else 0
        kept.add(skill.name)
    return [f"- {skill.name}: {texts[skill.name]}" if skill.name in kept and texts[skill.name] else f"- {skill.name}"
            for skill in skills]


def whole(session: Session, skills: Iterable[Skill], used: Mapping[str, int]) -> str:
    """The listing of a session's start; empty where there is nothing to list."""
    found = lines(skills, budget(session) - len(INTRO) - 1, longest(session), used)
    return "\n".join([INTRO, *found]) if found else ""


def changes(session: Session, came: list[Skill], went: list[str]) -> str:
    """What is announced of skills that came, changed or went while the session runs."""
    parts = [AGAIN]
    if came:
        parts += ["New or changed:", *lines(came, budget(session), longest(session), {})]
    if went:
        parts.append(f"No longer there: {', '.join(went)}")
    return "\n".join(parts)
