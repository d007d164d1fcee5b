"""The policy of one session: rules from everywhere, one decision per call (permissions contract)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from kernel import PermissionCall, Tool, Verdict

from .facts import Facts
from .rules import UNTOUCHABLE

if TYPE_CHECKING:
    from .auto import AutoMode
    from .decide import Decision
    from .shell import Parser


class RulesPolicy:
    """Decides from facts alone; whoever makes it says where they come from.

    :param facts: the facts of this moment; asked before every answer.
    :param tools: the tool of a name, ``None`` where there is none (for ``matches``).
    :param apply: carries out permission updates and says what could not be applied.
    :param complain: tells the person that a hook's ``if`` cannot be read.
    :param auto_mode: answers in auto mode, where a classifier is set.
    """

    def __init__(self, facts: Callable[[], Facts], *, tools: Callable[[str], Tool | None],
                 apply: Callable[[list[dict[str, Any]]], list[str]], complain: Callable[[str], None],
                 auto_mode: AutoMode | None = None) -> None:
        self._auto = auto_mode
        self._facts = facts
        self._tools = tools
        self._apply = apply
        self._complain = complain

    def like(self, facts: Callable[[], Facts], *, tools: Callable[[str], Tool | None],
             apply: Callable[[list[dict[str, Any]]], list[str]]) -> RulesPolicy:
        """The same policy for other facts. What was parsed for the one counts for the other."""
        other = RulesPolicy(facts, tools=tools, apply=apply, complain=self._complain, auto_mode=self._auto)
        other._parser = self._parser
        return other

    @cached_property
    def _parser(self) -> Parser:
        from .shell import Parser

        return Parser()

    def _decision(self, call: PermissionCall, note: Callable[[str], None] | None = None) -> Decision:
        from .decide import Decision  # with all that reads shell commands; not needed before the first call

        return Decision(call, self._facts(), self._parser, note)

    def decide(self, call: PermissionCall) -> Verdict:
        if self._auto is not None:
            self._auto.enter(self._facts()) if call.mode == "auto" else self._auto.leave()
        return self._decision(call).run()

    @property
    def auto(self) -> bool:
        """Whether auto mode can be used: somebody answers."""
        return self._auto is not None

    async def classify(self, call: PermissionCall) -> Verdict | None:
        """What an ``ask`` comes to in auto mode; ``None`` where a person must be asked (contract, section 4 and 7.5)."""
        decision = self._decision(call)
        verdict = decision.run()
        if verdict.behavior != "ask":
            return verdict
        return None if decision.firm or self._auto is None else await self._auto.answer(call, verdict.message)

    def explain(self, call: PermissionCall) -> list[str]:
        """The steps of a decision in their order, each with its answer; the last line is the verdict."""
        lines: list[str] = []
        verdict = self._decision(call, lines.append).run()
        by = f" by {verdict.rule or 'a rule'} ({verdict.source})" if verdict.source else ""
        return [*lines, f"verdict: {verdict.behavior}{by}"]

    def is_visible(self, tool: Tool) -> bool:
        if tool.name == UNTOUCHABLE:
            return True
        rules = self._facts().rules.of("deny", (tool.name, *tool.aliases))
        return not any(rule.bare for rule in rules)

    def matches(self, rule: str, tool_name: str, input: dict[str, Any]) -> bool:
        from .matching import rule_matches

        return rule_matches(rule, tool_name, input, self._facts(), self._parser, self._tools(tool_name), self._complain)

    def update(self, changes: list[dict[str, Any]]) -> list[str]:
        return self._apply(changes)

    def denies_reading(self, path: str, cwd: str) -> bool:
        """Whether a Read deny rule covers the file: search tools leave it out of their results (6.2)."""
        facts = self._facts()
        target = facts.places.target(path, cwd)
        return target is None or facts.paths.denied("read", target, cwd) is not None
