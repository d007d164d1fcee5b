"""Shells of subagents: their commands end with them (subagents contract, 6.2)."""

from __future__ import annotations

from kernel import Extension, Session


class AgentShells(Extension):
    """A subagent has no ``SessionEnd``; it closes."""

    name = "shells"

    async def close(self, session: Session) -> None:
        if session.parent is not None:
            from kernel_tools_shell.shell import STATE, Shell

            shell = session.plugin_state.pop(STATE, None)
            if isinstance(shell, Shell):
                await shell.close(0)
