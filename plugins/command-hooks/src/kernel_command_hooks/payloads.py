"""A documented payload of every event, for trying hooks out (hooks contract, sections 10 and 18)."""

from __future__ import annotations

from typing import Any

from kernel import EVENTS, Event, Session, UsageError

TOOL_INPUTS: dict[str, dict[str, Any]] = {
    "Bash": {"command": "ls", "description": "Lists the files"},
    "Write": {"file_path": "CWD/example.txt", "content": "example\n"},
    "Edit": {"file_path": "CWD/example.txt", "old_string": "example", "new_string": "sample"},
    "Read": {"file_path": "CWD/example.txt"},
    "Glob": {"pattern": "**/*.py"},
    "Grep": {"pattern": "TODO"},
    "WebFetch": {"url": "https://example.com/", "prompt": "What is this page about?"},
    "WebSearch": {"query": "example"},
    "Agent": {"description": "Find the tests", "prompt": "Where are the tests?", "subagent_type": "Explore"},
    "AskUserQuestion": {"questions": [{"question": "Which one?", "header": "Choice", "multiSelect": False, "options": [
        {"label": "A", "description": "the first"}, {"label": "B", "description": "the second"}]}]},
    "ExitPlanMode": {"plan": "1. Do it.", "planFilePath": "CWD/plan.md"},
}
"""Tool -> input of a plausible call; ``CWD`` stands for the session's folder."""

TOOL_RESPONSES: dict[str, Any] = {
    "Bash": {"stdout": "example.txt\n", "stderr": "", "interrupted": False, "isImage": False},
    "Write": {"type": "create", "filePath": "CWD/example.txt", "content": "example\n", "structuredPatch": [],
              "originalFile": None},
}

_TASK = {"task_id": "1", "task_subject": "Write the tests", "task_description": "All of them."}
_AGENT = {"agent_id": "agent-1", "agent_type": "Explore"}
_SWITCH = {"from_model": "model-a", "to_model": "model-b"}
_FORM = {"mcp_server_name": "example", "mode": "form", "elicitation_id": "1"}

SAMPLES: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup", "model": "example-model"},
    "Setup": {"trigger": "init"},
    "SessionEnd": {"reason": "other"},
    "InstructionsLoaded": {"file_path": "CWD/CLAUDE.md", "memory_type": "Project", "load_reason": "session_start"},
    "UserPromptSubmit": {"prompt": "Fix the failing test."},
    "UserPromptExpansion": {"expansion_type": "slash_command", "command_name": "review", "command_args": "main",
                            "prompt": "/review main"},
    "MessageDisplay": {"turn_id": "00000000-0000-4000-8000-000000000001", "message_id": "00000000-0000-4000-8000-000000000002",
                       "index": 0, "final": True, "delta": "It is done."},
    "PreToolUse": {"tool_use_id": "toolu_example"},
    "PermissionRequest": {},
    "PermissionDenied": {"tool_use_id": "toolu_example", "reason": "The classifier refuses it."},
    "PostToolUse": {"tool_use_id": "toolu_example", "duration_ms": 12},
    "PostToolUseFailure": {"tool_use_id": "toolu_example", "error": "Exit code 1\nno such file", "duration_ms": 12},
    "PostToolBatch": {},
    "SubagentStart": _AGENT,
    "SubagentStop": {**_AGENT, "stop_hook_active": False, "agent_transcript_path": "CWD/subagents/agent-1.jsonl",
                     "last_assistant_message": "It is done."},
    "TaskCreated": _TASK,
    "TaskCompleted": _TASK,
    "TeammateIdle": {"teammate_name": "builder"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "It is done.", "background_tasks": [], "session_crons": []},
    "StopFailure": {"error": "rate_limit", "last_assistant_message": "API Error 429: slow down"},
    "Notification": {"message": "Permission is needed", "notification_type": "permission_prompt"},
    "ConfigChange": {"source": "project_settings", "file_path": "CWD/.claude/settings.json"},
    "CwdChanged": {"old_cwd": "CWD", "new_cwd": "CWD/src"},
    "DirectoryAdded": {"directory": "CWD/other", "source": "slash_command"},
    "FileChanged": {"file_path": "CWD/.env", "event": "change"},
    "WorktreeCreate": {"name": "bold-oak"},
    "WorktreeRemove": {"worktree_path": "CWD/.worktrees/bold-oak"},
    "PreCompact": {"trigger": "manual", "custom_instructions": ""},
    "PostCompact": {"trigger": "manual", "compact_summary": "The test was fixed."},
    "Elicitation": {**_FORM, "message": "Which schema?", "requested_schema": {"type": "object", "properties": {}}},
    "ElicitationResult": {**_FORM, "action": "accept", "content": {}},
    "PreModelSwitch": _SWITCH,
    "PostModelSwitch": _SWITCH,
}


def build(session: Session, name: str, tool: str | None = None, given: dict[str, Any] | None = None) -> Event:
    """An event as the host would raise it.

    :param tool: the tool of a tool event, ``Bash`` by default.
    :param given: the tool's input of a tool event; fields of the event in place of the sample's elsewhere.
    :raises UsageError: there is no such event, or it has no such field.
    """
    import msgspec

    kind = EVENTS.get(name)
    if kind is None:
        from difflib import get_close_matches

        near = get_close_matches(name, EVENTS, n=1, cutoff=0.5)
        raise UsageError(f"there is no event {name!r}", hint=f"did you mean {near[0]}?" if near else ", ".join(EVENTS))
    known = {f.name for f in msgspec.structs.fields(kind)}
    fields = {**SAMPLES.get(name, {}), **_tool_fields(name, known, tool, given)}
    if strange := fields.keys() - known:
        raise UsageError(f"{name} has no field {', '.join(sorted(strange))}", hint=f"its fields are {', '.join(sorted(known))}")
    session.prompt_id = None if name in ("SessionStart", "Setup") else session.clock.new_id()
    event = session.make(kind, **_placed(fields, session.state.cwd))
    try:
        return msgspec.convert(msgspec.to_builtins(event), kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {error}", hint="the field has another type, see docs/hooks.md") from None


def _tool_fields(name: str, known: set[str], tool: str | None, given: dict[str, Any] | None) -> dict[str, Any]:
    tool_event = "tool_name" in known or name == "PostToolBatch"
    if not tool_event:
        if tool is not None:
            raise UsageError(f"{name} is no tool event, so --tool says nothing", hint="leave it out")
        return given or {}
    tool = tool or "Bash"
    call: dict[str, Any] = {"tool_name": tool, "tool_input": TOOL_INPUTS.get(tool, {}) if given is None else given}
    if name == "PostToolUse":
        call["tool_response"] = TOOL_RESPONSES.get(tool, "done")
    if name == "PostToolBatch":
        return {"tool_calls": [{**call, "tool_use_id": "toolu_example", "tool_response": "done"}]}
    return call


def _placed(value: Any, cwd: str) -> Any:
    if isinstance(value, dict):
        return {k: _placed(v, cwd) for k, v in value.items()}
    if isinstance(value, list):
        return [_placed(v, cwd) for v in value]
    return f"{cwd}{value.removeprefix('CWD')}" if isinstance(value, str) and (value == "CWD" or value[:4] == "CWD/") else value
