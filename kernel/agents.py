"""Who runs a task in a context of its own, for whoever asks: the Agent tool, a skill with ``context: fork``.

(subagents contract)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kernel.tools import ToolResult

if TYPE_CHECKING:
    from kernel.session import Session


class AgentRunner(Protocol):
    """Kept in ``session.agents`` by the plugin that brings agents; ``None`` there where none does."""

    def types(self, session: Session) -> list[str]:
        """The names that ``agent_type`` may have in this session."""

    async def run(self, session: Session, *, prompt: str, agent_type: str, background: bool, model: str | None = None,
                  description: str = "", tool_use_id: str | None = None, grants: tuple[str, ...] = ()) -> ToolResult:
        """Give an agent a task.

        In the foreground the result is the agent's report, and a cancellation of the caller ends the agent. In the background
        the result says that it was launched, and the report arrives in ``session.inbox``.

        :param model: beats the definition's; an alias or an id.
        :param description: a few words for people.
        :param tool_use_id: the call that asked; the agent's messages carry it as ``parent_tool_use_id``.
        :param grants: allow rules for the whole of the agent's run, such as a skill's ``allowed-tools``.
        :raises ToolError: there is no such agent, or a limit is reached; the text is for the model.
        """
