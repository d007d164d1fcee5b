"""What a hook or a permission callback may return, without the name of the event in it.

The kernel's own result models (``PreToolUseResult`` ...) can be returned as well; these three cover what most functions say.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernel import ANSWERS, Answer, Decision, Event, PermissionRequest, PreToolUse


@dataclass(frozen=True)
class Deny:
    reason: str
    interrupt: bool = False


@dataclass(frozen=True)
class Allow:
    input: dict[str, Any] | None = None
    remember: bool = False


@dataclass(frozen=True)
class AddContext:
    text: str


def deny(reason: str, *, interrupt: bool = False) -> Deny:
    """Refuse what is about to happen: a call, a prompt, a compaction, the end of the turn (``Stop``).

    :param reason: goes to the model; for a refused prompt to the person.
    :param interrupt: end the turn, too. Only an answer to a permission question can.
    """
    return Deny(reason, interrupt)


def allow(input: dict[str, Any] | None = None, *, remember: bool = False) -> Allow:
    """Let a call pass, or answer a permission question with yes. Deny rules still hold.

    :param input: takes the place of the whole input.
    :param remember: do not ask again in this conversation, as the question's suggestions describe it. Only for
        ``on_permission``.
    """
    return Allow(input, remember)


def add_context(text: str) -> AddContext:
    """Give the model a text with its next request."""
    return AddContext(text)


def answer(event: Event, given: Any) -> Any:
    """What a hook returned as the event's result model.

    :raises TypeError: it does not fit the event.
    """
    if isinstance(given, list | tuple):
        return [answer(event, item) for item in given if item is not None]
    if isinstance(given, Deny):
        return _denied(event, given)
    if isinstance(given, Allow):
        return _allowed(event, given)
    if isinstance(given, AddContext):
        return _made(event, "add_context()", additional_context=given.text)
    if given is None or isinstance(given, Answer):
        return given
    raise TypeError(f"returned {type(given).__name__}; expected deny(), allow(), add_context(), "
                    f"{ANSWERS[event.event_name].__name__} or None")


def _denied(event: Event, given: Deny) -> Answer:
    if given.interrupt and not isinstance(event, PermissionRequest):
        raise TypeError("deny(interrupt=True) answers a permission question only")
    if isinstance(event, PreToolUse):
        return _made(event, "deny()", permission_decision="deny", permission_decision_reason=given.reason)
    if isinstance(event, PermissionRequest):
        return _made(event, "deny()", permission=Decision(behavior="deny", message=given.reason, interrupt=given.interrupt))
    if not event.can_block:
        raise TypeError(f"deny() does not fit {event.event_name}: nothing can be refused there")
    return _made(event, "deny()", decision="block", reason=given.reason)


def _allowed(event: Event, given: Allow) -> Answer:
    if given.remember:
        raise TypeError("allow(remember=True) is for on_permission")
    if isinstance(event, PermissionRequest):
        return _made(event, "allow()", permission=Decision(behavior="allow", updated_input=given.input))
    return _made(event, "allow()", permission_decision="allow", updated_input=given.input)


def _made(event: Event, what: str, **fields: Any) -> Answer:
    kind = ANSWERS[event.event_name]
    try:
        return kind(**fields)
    except TypeError:
        raise TypeError(f"{what} does not fit {event.event_name}") from None
