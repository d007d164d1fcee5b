"""Hook implementations, a few lines each; the work is in the modules beside this one."""

from __future__ import annotations

from kernel import PreToolUse, PreToolUseResult, Registry, Tool, hookimpl


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_word_count.tool import WordCount

    register(WordCount())


@hookimpl
def pre_tool_use(event: PreToolUse) -> PreToolUseResult | None:
    from kernel_word_count.guard import secret_in

    if event.tool_name in ("Write", "Edit") and (found := secret_in(event.tool_input)):
        return PreToolUseResult(permission_decision="deny",
                                permission_decision_reason=f"The text holds {found}; read it from the environment instead.")
    return None
