"""The tools of one session: what the model is shown, in an order that holds from request to request.

Tools that plugins register come first, in the order of plugins. Those that an extension brings (the tools of an MCP server)
stand behind them by name when the session starts, and in the order in which they came from then on, so that the prompt
cache keeps what it can (context contract, 10.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from kernel.tools import Tool

if TYPE_CHECKING:
    from kernel.session import Session


class Toolbox:
    """Offered tools by name; deferred ones are known by name alone until they are loaded (tools contract, section 15)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.admits: Callable[[Tool], bool] = lambda tool: True
        """What a subagent may have; asked of every tool that is offered."""
        self.offered: list[Tool] = []
        """What the model may call and is shown the schema of, in request order."""
        self.deferred: dict[str, Tool] = {}
        """Known by name; the schema is not sent. A call of one works all the same."""
        self.by_name: dict[str, Tool] = {}
        """Every tool under its name and its aliases."""
        self.definitions: list[dict[str, Any]] = []
        """The request's ``tools`` field; a new list whenever it changes, the same object otherwise."""

    def offer(self, tools: Iterable[Tool], *, deferred: bool = False) -> None:
        """Add tools, unless a rule, an option or the tool itself says that this session has them not.

        A name that is taken already is left to whoever came first, and said.
        """
        added: list[dict[str, Any]] = []
        for tool in tools:
            definition = self._definition(tool)
            if definition is None:
                continue
            if self.by_name.get(tool.name) is not None and self.by_name[tool.name].name == tool.name:
                self._session.notice(f"a second tool with the name {tool.name} is left out", guard=True)
                continue
            if deferred:
                self.deferred[tool.name] = tool
            else:
                self.offered.append(tool)
                added.append(definition)
            self.by_name[tool.name] = tool
            for alias in tool.aliases:
                self.by_name.setdefault(alias, tool)
        if added:
            self.definitions = [*self.definitions, *added]

    def _definition(self, tool: Tool) -> dict[str, Any] | None:
        session = self._session
        wanted = session.options.tools
        if wanted is not None and tool.name not in wanted and not tool.name.startswith("mcp__"):
            return None
        try:
            if not self.admits(tool):
                return None
            return tool.definition() if session.policy.is_visible(tool) and tool.is_enabled(session) else None
        except Exception as error:
            session.notice(f"the tool {tool.name} is not offered: {type(error).__name__}: {error}", guard=True)
            return None

    def copy(self, other: Toolbox) -> None:
        """Have what another has, as it has it: the request's ``tools`` field is the same to the byte."""
        self.offered, self.definitions = list(other.offered), other.definitions
        self.deferred, self.by_name = dict(other.deferred), dict(other.by_name)

    def load(self, names: Iterable[str]) -> list[Tool]:
        """Show the model the schemas of deferred tools from the next request on; those that were found."""
        found = [self.deferred.pop(name) for name in dict.fromkeys(names) if name in self.deferred]
        if found:
            self.offered += found
            self.definitions = [*self.definitions, *(tool.definition() for tool in found)]
        return found

    def withdraw(self, names: Iterable[str]) -> None:
        """Take tools away; a call of one is answered as an unknown tool from then on."""
        gone = {name: self.by_name[name] for name in names if name in self.by_name}
        if not gone:
            return
        tools = list(gone.values())
        kept = [t for t in self.offered if not any(t is g for g in tools)]
        if len(kept) != len(self.offered):
            self.definitions = [d for t, d in zip(self.offered, self.definitions, strict=True) if not any(t is g for g in tools)]
            self.offered = kept
        self.deferred = {n: t for n, t in self.deferred.items() if n not in gone}
        self.by_name = {n: t for n, t in self.by_name.items() if not any(t is g for g in tools)}
