"""What an evaluating model answers to a ``prompt`` or ``agent`` handler, and what that does (hooks contract, 6.5 and 6.6).

Pure functions: no request is made here.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from kernel import ANSWERS, Answer, Event

SCHEMA = '{"ok": boolean, "reason": string, "impossible": boolean}'

_SAYS_STOP = frozenset(["PreToolUse", "PostToolUse"])
"""Events whose stop reason becomes the result of the run alone; the warning line for the person is said here."""


class Verdict(Struct):
    """``reason`` says why it is not ``ok``; ``impossible``: the agent cannot put that right, so it may stop."""

    ok: bool
    reason: str | None = None
    impossible: bool = False


def read_verdict(text: str) -> Verdict:
    """The verdict that an answer holds: one JSON object, alone or in a fenced block. Unknown keys are ignored.

    :raises ValueError: it holds none, or one without the reason that ``ok: false`` needs.
    """
    body = text.strip()
    if fenced := re.fullmatch(r"```(?:json)?\s*\n(.*)\n\s*```", body, re.DOTALL):
        body = fenced[1]
    try:
        verdict = msgspec.json.decode(body, type=Verdict)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"the evaluator must answer {SCHEMA}, found {body[:80]!r} ({error})") from None
    if not verdict.ok and not (verdict.reason or "").strip():
        raise ValueError("the evaluator must give a reason with ok: false")
    return verdict


def effect(event: Event, verdict: Verdict, *, go_on: bool, may_give_up: bool = True) -> Answer | None:
    """The answer that a verdict comes to; ``None``: no objection, or an event on which it has no effect.

    :param go_on: the handler's ``continueOnBlock``; always for handlers of type ``agent``.
    :param may_give_up: whether ``impossible`` counts; not for handlers of type ``agent``.
    """
    name = event.event_name
    if verdict.ok or name in ("PermissionRequest", "PermissionDenied"):
        return None
    reason = verdict.reason or ""
    if name in ("Stop", "SubagentStop"):
        return None if verdict.impossible and may_give_up else _make(name, decision="block", reason=reason)
    if name == "PreToolUse":
        denied = _make(name, permission_decision="deny", permission_decision_reason=reason)
        return denied if go_on else _stopping(denied, reason)
    if _ends(event, go_on):
        return _stopping(_make(name), reason)
    return _make(name, decision="block", reason=reason)


def _ends(event: Event, go_on: bool) -> bool:
    """Whether the turn, or the teammate, stops for it."""
    name = event.event_name
    if name in ("PostToolBatch", "UserPromptSubmit", "UserPromptExpansion"):
        return True
    if name == "TaskCompleted":  # at the end of a teammate's turn it is what TeammateIdle would be
        return getattr(event, "teammate_name", None) is not None and not go_on
    return name in ("PostToolUse", "TeammateIdle") and not go_on


def _stopping(answer: Any, reason: str) -> Answer:
    answer.continue_, answer.stop_reason = False, reason
    if answer.event in _SAYS_STOP:
        answer.system_message = reason
    return answer  # type: ignore[no-any-return]


def _make(name: str, **fields: Any) -> Answer:
    return ANSWERS[name](**fields)
