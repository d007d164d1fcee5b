"""A turn that a kill or SIGTERM cut off goes on at the resume, where the program asks for that (sessions contract, 4.5)."""

from __future__ import annotations

import os
from datetime import datetime

from kernel import Session, env_switch

SWITCH = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN"
PROMPT = "Continue from where you left off."


def go_on(session: Session) -> None:
    """Make the words that continue the turn the session's first prompt."""
    if not env_switch(SWITCH) or session.options.prompt is not None:
        return
    if not getattr(session.transcript, "unfinished", False) or session.transcript.restored.deferred:
        return
    oldest = os.environ.get(f"{SWITCH}_MAX_AGE_MS", "")
    if oldest.isdecimal() and _age_ms(session) > int(oldest):
        session.debug("the turn that was cut off is too old to go on by itself")
        return
    session.initial_message = os.environ.get("CLAUDE_CODE_RESUME_PROMPT") or PROMPT


def _age_ms(session: Session) -> float:
    """Since the last message; endless where that is not known."""
    try:
        said = datetime.fromisoformat(str(getattr(session.transcript, "ended", "")))
        return (session.clock.now() - said).total_seconds() * 1000
    except (ValueError, TypeError):
        return float("inf")
