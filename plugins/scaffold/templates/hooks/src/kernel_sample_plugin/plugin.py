"""Hook implementations, a few lines each; the work is in the modules beside this one, imported when it is needed."""

from __future__ import annotations

from kernel import PostToolUse, PostToolUseResult, PreToolUse, PreToolUseResult, hookimpl

SLOW_MS = 60_000


@hookimpl
def pre_tool_use(event: PreToolUse) -> PreToolUseResult | None:
    """Refuse to write what looks like a secret. A gate: if it raises, the call is refused too."""
    if event.tool_name not in ("Write", "Edit"):
        return None
    from kernel_sample_plugin.secrets import secret_in

    found = secret_in(event.tool_input)
    if found is None:
        return None
    return PreToolUseResult(permission_decision="deny",
                            permission_decision_reason=f"The text holds {found}; read it from the environment instead.")


@hookimpl
def post_tool_use(event: PostToolUse) -> PostToolUseResult | None:
    """Ask for a narrower command after a slow one."""
    if event.tool_name == "Bash" and (event.duration_ms or 0) > SLOW_MS:
        return PostToolUseResult(additional_context="That took more than a minute. Is there a narrower command?")
    return None
