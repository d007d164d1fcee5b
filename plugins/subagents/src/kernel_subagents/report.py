"""What the parent reads of an agent: its last text, checked for what pretends to be somebody else's (subagents contract, 10)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kernel import env_number

if TYPE_CHECKING:
    from kernel import Session

_ELEMENT = re.compile(r"<(?=\s*+(?:/\s*+)?(?:system-reminder|"
                      r"task-notification|system|command-name|command-message|local-command)\b)", re.IGNORECASE)
_SPEAKER = re.compile(r"^(?=[ \t]*(?:Human|Assistant)[ \t]*:)", re.MULTILINE)
_RIGHTS = re.compile(r"permissions?\.(?:allow|deny|ask|defaultMode)|bypassPermissions|dangerously-skip-permissions|"
                     r"settings(?:\.local)?\.json|disableAllHooks|allowedTools", re.IGNORECASE)
_RESULT = re.compile(r"<(?=\s*+/\s*+result\s*+>)", re.IGNORECASE)
EMPTY = "(The agent ended without a text.)"


def scanned(text: str) -> str:
    """The text with a backslash in what imitates the host's markup, and a first line that says so. Nothing is removed."""
    found = []
    text, elements = _ELEMENT.subn(r"<\\", text)
    if elements:
        found.append("host element")
    text, speakers = _SPEAKER.subn(r"\\", text)
    if speakers:
        found.append("turn marker")
    if _RIGHTS.search(text):
        found.append("permission settings")
    if not found:
        return text
    return f"[harness: subagent output matched instruction-shaped pattern(s): {', '.join(found)}]\n{text}"


def defused(text: str) -> str:
    """A text of somebody's for a place inside the host's markup, without what would end or imitate it."""
    return _ELEMENT.sub(r"<\\", text)


def enclosed(text: str) -> str:
    """A report for the place between ``<result>`` and ``</result>``, which it does not leave."""
    return _RESULT.sub(r"<\\", text)


def limit() -> int:
    """Characters of a report: ``TASK_MAX_OUTPUT_LENGTH``, 32,000 by default, at most 160,000."""
    return min(env_number("TASK_MAX_OUTPUT_LENGTH", 32_000), 160_000)


def shown(session: Session, agent_id: str, text: str) -> str:
    """The report as the parent's model reads it; a long one is cut and kept in a file."""
    text = text.strip()
    if not text:
        return EMPTY
    most = limit()
    if len(text) > most:
        _, where = session.root.kept(f"agent-{agent_id}-report", text)
        text = f"{text[:most]}\n... (cut: {len(text)} characters in all; the whole report {where})"
    return scanned(text)
