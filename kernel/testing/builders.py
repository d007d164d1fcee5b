"""Events as a host would raise them, typed and as the JSON that a command hook reads."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import msgspec

from kernel.events import EVENTS, Event, encode

_SAMPLES: dict[str, Any] = {
    "session_id": "00000000-0000-4000-8000-000000000001", "transcript_path": "/project/.transcripts/session.jsonl",
    "cwd": "/project", "tool_name": "Bash", "tool_input": {"command": "true"}, "tool_use_id": "call_1",
    "tool_response": {"stdout": "", "stderr": "", "interrupted": False, "isImage": False}, "prompt": "hello", "reason": "other",
    "error": "it failed", "file_path": "/project/notes.md", "old_cwd": "/project", "new_cwd": "/project/src",
    "directory": "/project/more", "worktree_path": "/project/.worktrees/one", "message": "Something happened",
    "notification_type": "idle_prompt", "agent_transcript_path": "/project/.transcripts/agent.jsonl", "agent_id": "agent_1",
    "agent_type": "general-purpose", "task_id": "1", "task_subject": "a task", "teammate_name": "mate",
    "mcp_server_name": "server", "from_model": "sonnet", "to_model": "opus", "compact_summary": "What happened so far.",
    "command_name": "review", "command_args": "", "name": "one", "turn_id": "turn_1", "message_id": "msg_1", "index": 0,
    "final": True, "delta": "Hello."}
_INSIDE_AGENTS = ("SubagentStart", "SubagentStop")


def event(name: str, /, **fields: Any) -> Event:
    """An event by its wire name, with the given fields; required ones that are missing get plausible values.

    ``event("PreToolUse", tool_name="Write", tool_input={"file_path": "a.txt", "content": "x"})``

    :raises ValueError: there is no such event.
    :raises TypeError: the event has no such field, or a value does not fit it; the text names the field.
    """
    kind = EVENTS.get(name)
    if kind is None:
        from difflib import get_close_matches

        near = get_close_matches(name, EVENTS, n=1, cutoff=0.4)
        raise ValueError(f"there is no event {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    known = {f.name: f for f in msgspec.structs.fields(kind)}
    unknown = sorted(fields.keys() - known.keys())
    if unknown:
        raise TypeError(f"{name} has no field {unknown[0]!r}; its fields are {', '.join(known)}")
    filled = {f.name: _sample(f) for f in known.values() if f.required} | fields
    if kind.carries_mode:
        filled.setdefault("permission_mode", "default")
    if name in _INSIDE_AGENTS:
        filled = {"agent_id": _SAMPLES["agent_id"], "agent_type": _SAMPLES["agent_type"]} | filled
    made = kind(**filled)
    try:  # in Python nobody checks a field's type
        msgspec.json.decode(encode(made), type=kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise TypeError(f"{name}: {error}") from None
    return made


def wire(event_or_name: Event | str, /, **fields: Any) -> dict[str, Any]:
    """The documented flat JSON object of an event, ``hook_event_name`` included, as a command hook reads it on stdin."""
    made = event_or_name if isinstance(event_or_name, Event) else event(event_or_name, **fields)
    found: dict[str, Any] = msgspec.json.decode(encode(made))
    return found


def _sample(field: msgspec.structs.FieldInfo) -> Any:
    if get_origin(field.type) is Literal:
        return get_args(field.type)[0]
    if field.name in _SAMPLES:
        return _SAMPLES[field.name]
    return {str: "", bool: False, int: 0, float: 0.0, dict: {}, list: []}.get(get_origin(field.type) or field.type)
