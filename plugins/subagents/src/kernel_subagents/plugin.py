"""Hook implementations: the Agent tool, messages to agents, and what keeps an agent in its worktree."""

from __future__ import annotations

from kernel import Extension, PreToolUse, PreToolUseResult, Registry, Session, SessionEnd, SessionStart, Tool, hookimpl


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_subagents.messages import ListAgents, SendMessage
    from kernel_subagents.tool import AgentTool

    register(AgentTool())
    register(ListAgents())
    register(SendMessage())


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_subagents.extension import SubagentsExtension

    register(SubagentsExtension())


@hookimpl
async def session_end(event: SessionEnd, session: Session) -> None:
    """``/clear``: the conversation that agents work for is over, the session goes on."""
    if event.reason == "clear":
        from kernel_subagents.extension import forget

        await forget(session)


@hookimpl
def session_start(event: SessionStart, session: Session) -> None:
    if event.source == "clear":
        from kernel_subagents.extension import tell

        tell(session)


@hookimpl
def pre_tool_use(event: PreToolUse, session: Session) -> PreToolUseResult | None:
    guard = session.plugin_state.get("subagents.worktree")  # agents.GUARD
    if guard is None:
        return None
    reason = guard.refusal(event.tool_name, event.tool_input, session)
    return PreToolUseResult(permission_decision="deny", permission_decision_reason=reason) if reason else None
