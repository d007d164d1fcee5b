"""The policy inside a subagent: the conversation's rules and answers, with the agent's own grants and place (contract, 6.5)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import Session

from .facts import Facts
from .policy import RulesPolicy
from .rules import RuleSet
from .sources import homes, opinion, tool_named

if TYPE_CHECKING:
    from .sources import Sources


def policy_of(session: Session, main: Sources, conversation: RulesPolicy) -> RulesPolicy:
    """What decides in the subagent that the session is."""

    def apply(changes: list[dict[str, Any]]) -> list[str]:
        """A lasting answer counts for all; a mode that was the conversation's goes with it."""
        before = session.root.state.permission_mode
        problems = conversation.update(changes)
        after = session.root.state.permission_mode
        if after != before and session.state.permission_mode == before:
            session.state = msgspec.structs.replace(session.state, permission_mode=after)
        return problems

    return conversation.like(AgentFacts(session, main), tools=partial(tool_named, session), apply=apply)


class AgentFacts:
    """Made anew when the conversation's facts or the agent's grants are others."""

    def __init__(self, session: Session, main: Sources) -> None:
        self._session = session
        self._main = main
        self._whole: Facts | None = None
        self._grants: tuple[str, ...] = ()
        self._made: Facts | None = None

    def __call__(self) -> Facts:
        whole, grants = self._main.facts(), self._session.state.grants
        if self._made is None or whole is not self._whole or grants != self._grants:
            self._whole, self._grants = whole, grants
            self._made = self._make(whole, grants)
        return self._made

    def _make(self, whole: Facts, grants: tuple[str, ...]) -> Facts:
        rules = [*(rule for rule in whole.rules.rules if rule.source != "skill"), *self._main.granted(grants)]
        cwd, *more = whole.places.directories
        return Facts(RuleSet(rules), whole.view, cwd, (*more, self._session.project_root), own=whole.own,
                     bypass_available=whole.bypass_available, sandboxed=whole.sandboxed,
                     plan_file=whole.plan_file, opinion=partial(opinion, self._session), homes=partial(homes, self._session),
                     classify_shell=whole.classify_shell, wide=whole.wide)
