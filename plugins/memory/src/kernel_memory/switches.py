"""What switches instruction files and auto memory on and off."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel import Session

_OFF = frozenset({"", "0", "false", "no", "off"})


def is_on(variable: str) -> bool:
    return os.environ.get(variable, "").strip().lower() not in _OFF


def bare(session: Session) -> bool:
    return bool(session.options.extra.get("bare")) or is_on("CLAUDE_CODE_SIMPLE")


def instructions(session: Session) -> bool:
    return not bare(session) and not is_on("CLAUDE_CODE_DISABLE_CLAUDE_MDS")


def source(session: Session, name: str) -> bool:
    """Whether files of ``user``, ``project`` or ``local`` are read."""
    safe = bool(session.options.extra.get("safe_mode")) or is_on("CLAUDE_CODE_SAFE_MODE")
    return name in session.options.setting_sources and not safe


def git(session: Session) -> bool:
    """Whether the model is told of git: how to use it, and how the repository stood."""
    if "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS" in os.environ:
        return not is_on("CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS")
    return session.settings.get("includeGitInstructions") is not False


def auto_memory(session: Session) -> bool:
    """The variable wins over the setting, both ways."""
    if bare(session):
        return False
    if os.environ.get("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "").strip():
        return not is_on("CLAUDE_CODE_DISABLE_AUTO_MEMORY")
    return session.settings.get("autoMemoryEnabled") is not False


def agents_md(session: Session) -> bool:
    """Whether ``AGENTS.md`` stands in for a ``CLAUDE.md`` that a folder has not (setting ``kernel.memory.agentsMd``)."""
    return bool(session.settings.get("kernel.memory.agentsMd") != "off")
