"""Auto mode: a model answers what would be asked (permissions contract, 7.5).

Rules come first, as always; so do reads and edits inside the working directories. What a rule, a hook or a tool wants a
person to answer is not asked here. A call about which the model gives no verdict is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import PermissionCall, UsageError, Verdict

from .modes import narrow

if TYPE_CHECKING:
    from kernel import ModelInfo, ModelProvider, Session

    from .facts import Facts

SETTING = "kernel.permissions.classifier"
IN_A_ROW = 3
IN_ALL = 20
_THEIRS = ("managed", "cli", "user")
"""Scopes that may say something about auto mode; a project may not."""


def personal(session: Session, key: str) -> list[Any]:
    """The values of a key in settings that are no project's, highest scope first."""
    return [value for layer, value in session.settings.by_layer(key) if layer.scope in _THEIRS]


def open_auto(session: Session) -> AutoMode | None:
    """Auto mode of a session, ``None`` where no classifier is set or its model cannot be had."""
    name = next(iter(personal(session, SETTING)), None)
    if name is None:
        return None
    if not isinstance(name, str) or not name:
        session.harness.announce(f"settings, {SETTING}: must be the name of a model, or \"session\"; auto mode is off")
        return None
    if name == "session":
        return AutoMode(session, None)
    try:
        return AutoMode(session, session.harness.provider_of(name))
    except UsageError as error:
        session.harness.announce(f"settings, {SETTING}: {error}; auto mode is off")
        return None


class AutoMode:
    """Asks the classifier and counts its refusals.

    :param model: who is asked; ``None``: the session's own model.
    """

    def __init__(self, session: Session, model: tuple[ModelProvider, ModelInfo] | None) -> None:
        self.session = session
        self.model = model
        self.entered = False
        self.row = self.total = 0

    def enter(self, facts: Facts) -> None:
        """Tell which rules do not count now. They come back when the mode is left."""
        if self.entered:
            return
        self.entered = True
        broad = [r for r in facts.rules.lists["allow"] if not narrow(r)]
        if broad:
            names = [r.text for r in broad if r.source != "managed"][:10]
            self.session.notice(f"Auto mode sets aside {len(broad)} allow rule(s) that let anything run: {', '.join(names)}")

    def leave(self) -> None:
        self.entered = False
        self.row = self.total = 0

    @property
    def paused(self) -> bool:
        """Whether so much was refused that a person is asked instead."""
        return self.row >= IN_A_ROW or self.total >= IN_ALL

    async def answer(self, call: PermissionCall, why: str) -> Verdict | None:
        """The classifier's word on a call; ``None`` where a person is to be asked.

        :param why: why it would be asked.
        """
        from . import classifier

        if self.paused:
            return None
        allowed, reason = await classifier.judge(self.session, self.model, call, why)
        if allowed:
            self.row = 0
            return Verdict(behavior="allow", reason_type="classifier", message=reason)
        self.row += 1
        self.total += 1
        if self.paused:
            self.session.notice(f"Auto mode refused {self.row} calls in a row, {self.total} in all; from now on it asks")
        no_verdict = allowed is None
        said = f"the classifier of auto mode gave no verdict ({reason})" if no_verdict else f"the classifier refuses it: {reason}"
        return Verdict(behavior="deny", reason_type="classifier", undecided=no_verdict, message=(
            f"Permission to use {call.tool.name} is denied: {said}. Do not try the same by other means; choose another way, or "
            "say what you would need."))
