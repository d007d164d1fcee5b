"""Many answers to one event -> what they come to (decision D4; hooks contract, section 12.2).

Pure functions: no I/O, no clock, no session. The result does not depend on the order of the answers, except that
texts are joined in call order and that of several rewrites the one that finished last counts, with the others named.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from kernel.answers import Answer
from kernel.dispatch import Outcome
from kernel.events import Event, PermissionRequest

STRICTNESS = ("deny", "defer", "ask", "allow")
"""Permission decisions, strictest first: one deny is enough, whatever the others say."""


class Text(Struct, frozen=True):
    """A text and who gave it."""

    source: str
    text: str


class Rewrite(Struct, frozen=True):
    """A replacement and who made it; ``losers`` are sources whose replacement did not count."""

    source: str
    value: Any
    losers: tuple[str, ...] = ()


class Merged(Struct, kw_only=True):
    """What the answers to one event come to.

    ``decision``: permission decision of PreToolUse, with the ``reasons`` of those who gave it. ``blocked``: any
    ``decision: block`` (or a gate that failed), with ``block_reasons``. ``stopped``: any ``continue: false``.
    ``failures``: implementations that raised, timed out or answered nonsense; for a gate they count as a refusal too.
    """

    decision: str | None = None
    reasons: list[Text] = field(default_factory=list)
    blocked: bool = False
    block_reasons: list[Text] = field(default_factory=list)
    stopped: bool = False
    stop_reasons: list[Text] = field(default_factory=list)
    contexts: list[Text] = field(default_factory=list)
    system_messages: list[Text] = field(default_factory=list)
    updated_input: Rewrite | None = None
    updated_output: Rewrite | None = None
    behavior: str | None = None
    messages: list[Text] = field(default_factory=list)
    interrupt: bool = False
    updated_permissions: list[dict[str, Any]] = field(default_factory=list)
    retry: bool = False
    watch_paths: list[str] | None = None
    last: dict[str, Any] = field(default_factory=dict)
    failures: list[Text] = field(default_factory=list)

    @property
    def reason(self) -> str:
        return "\n".join(t.text for t in self.reasons)

    @property
    def block_reason(self) -> str:
        return "\n".join(t.text for t in self.block_reasons)

    @property
    def stop_reason(self) -> str:
        return "\n".join(t.text for t in self.stop_reasons)


NOTHING = Merged()
"""What no answer comes to. Shared: never change it."""

_LAST_WINS = ("session_title", "initial_user_message", "display_content", "reload_skills", "suppress_original_prompt")


def merge(event: Event, outcomes: list[Outcome]) -> Merged:
    """Merge the outcomes of one firing, given in call order."""
    if not outcomes:
        return NOTHING
    merged = Merged()
    answers: list[Answer] = []
    for plugin, answer, error, _ in outcomes:
        if error is not None:
            _fail(merged, event, plugin, error)
        elif answer is not None:
            answers.append(answer)
            _universal(merged, answer)
    _permission_decision(merged, answers)
    _permission_request(merged, event, answers)
    merged.updated_input = _rewrite(answers, "updated_input") or merged.updated_input
    merged.updated_output = _rewrite(answers, "updated_tool_output", "updated_mcp_tool_output")
    finished = sorted(answers, key=lambda a: a.rank)  # stable: ties stay in call order
    _elicitation(merged, finished)
    for answer in answers:
        if getattr(answer, "worktree_path", None) is not None:
            merged.last.setdefault("worktree_path", answer.worktree_path)  # type: ignore[attr-defined]
    for answer in finished:
        merged.retry = merged.retry or bool(getattr(answer, "retry", None))
        paths = getattr(answer, "watch_paths", None)
        if paths is not None:
            merged.watch_paths = sorted({*(merged.watch_paths or ()), *paths})
        for name in _LAST_WINS:
            value = getattr(answer, name, None)
            if value is not None:
                merged.last[name] = value
    return merged


def _fail(merged: Merged, event: Event, plugin: str, error: BaseException) -> None:
    text = f"{type(error).__name__}: {error}"
    merged.failures.append(Text(plugin, text))
    if type(event).gate:
        refusal = Text(plugin, f"The hook of plugin '{plugin}' for {event.hook_name} failed ({text}); "
                               "a guard that cannot work refuses.")
        merged.blocked = True
        merged.block_reasons.append(refusal)


def _universal(merged: Merged, answer: Answer) -> None:
    if not answer.continue_:
        merged.stopped = True
        if answer.stop_reason:
            merged.stop_reasons.append(Text(answer.source, answer.stop_reason))
    if answer.system_message:
        merged.system_messages.append(Text(answer.source, answer.system_message))
    if answer.decision == "block" and getattr(answer, "permission_decision", None) is None:  # the newer form wins (13.4)
        merged.blocked = True
        merged.block_reasons.append(Text(answer.source, answer.reason or f"Blocked by {answer.source}"))
    context = getattr(answer, "additional_context", None)
    if context:
        merged.contexts.append(Text(answer.source, context))


def _permission_decision(merged: Merged, answers: list[Answer]) -> None:
    """deny > defer > ask > allow. A gate's failure and the deprecated ``decision: block`` are denials."""
    given: list[tuple[str, Text]] = [("deny", t) for t in merged.block_reasons]
    for answer in answers:
        decision = getattr(answer, "permission_decision", None)
        if decision is None and answer.decision == "approve":
            decision = "allow"
        if decision is not None:
            given.append((decision, Text(answer.source, getattr(answer, "permission_decision_reason", None)
                                         or answer.reason or "")))
    for decision in STRICTNESS:
        winners = [text for kind, text in given if kind == decision]
        if winners:
            merged.decision = decision
            merged.reasons = [t for t in winners if t.text]
            return


def _permission_request(merged: Merged, event: Event, answers: list[Answer]) -> None:
    """Deny beats allow; a hook that failed denies, whatever the others say."""
    given = [(a, p) for a in answers if (p := getattr(a, "permission", None)) is not None]
    if isinstance(event, PermissionRequest) and merged.failures:
        merged.messages += [t for t in merged.block_reasons if t.source in {f.source for f in merged.failures}]
    elif not given:
        return
    merged.behavior = "deny" if merged.messages or any(p.behavior == "deny" for _, p in given) else "allow"
    counting = [(a, p) for a, p in given if p.behavior == merged.behavior]
    for answer, permission in counting:
        if permission.message:
            merged.messages.append(Text(answer.source, permission.message))
        merged.interrupt = merged.interrupt or permission.interrupt
        merged.updated_permissions += permission.updated_permissions or []
    merged.updated_input = _last([(a, p.updated_input) for a, p in counting])


def _elicitation(merged: Merged, finished: list[Answer]) -> None:
    """decline > cancel > accept; the content of the last accept to finish."""
    actions = {a for answer in finished if (a := getattr(answer, "action", None)) is not None}
    action = next((a for a in ("decline", "cancel", "accept") if a in actions), None)
    if action is not None:
        merged.last["action"] = action
    for answer in finished:
        content = getattr(answer, "content", None)
        if content is not None and action in (None, "accept"):
            merged.last["content"] = content


def _rewrite(answers: list[Answer], *names: str) -> Rewrite | None:
    return _last([(a, next((v for n in names if (v := getattr(a, n, None)) is not None), None)) for a in answers])


def _last(given: list[tuple[Answer, Any]]) -> Rewrite | None:
    """The value that finished last; ``rank`` is the order of completion, ties go to the last in call order."""
    values = sorted(((a, v) for a, v in given if v is not None), key=lambda g: g[0].rank)
    if not values:
        return None
    *losers, winner = values
    return Rewrite(winner[0].source, winner[1], tuple(a.source for a, _ in losers))
