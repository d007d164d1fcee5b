"""What a client asks of a new session, as JSON: the options of a run under their names in ``kernel.Options``.

They become the flags of a command line, so that one place checks them, whoever asks.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kernel import UsageError

Kind = Literal["text", "integer", "number", "switch", "texts", "json", "jsons"]


class Option(NamedTuple):
    flag: str
    kind: Kind
    help: str


OPTIONS: dict[str, Option] = {
    "model": Option("--model", "text", "alias, id, or provider:model"),
    "effort": Option("--effort", "text", "low, medium, high, xhigh or max"),
    "thinking": Option("--thinking", "text", "adaptive or disabled"),
    "max_thinking_tokens": Option("--max-thinking-tokens", "integer", "fixed thinking budget"),
    "max_turns": Option("--max-turns", "integer", "end a prompt after that many turns with tool calls"),
    "max_budget_usd": Option("--max-budget-usd", "number", "end a prompt when that many dollars are spent"),
    "betas": Option("--betas", "text", "comma list of beta features"),
    "system_prompt": Option("--system-prompt", "text", "replaces the system prompt"),
    "append_system_prompt": Option("--append-system-prompt", "text", "is added to the system prompt"),
    "tools": Option("--tools", "text", "the tools that exist: names, 'default', or empty for none"),
    "allowed_tools": Option("--allowed-tools", "texts", "allow rules"),
    "disallowed_tools": Option("--disallowed-tools", "texts", "deny rules"),
    "permission_mode": Option("--permission-mode", "text", "default, acceptEdits, plan, dontAsk or bypassPermissions"),
    "allow_bypass": Option("--allow-dangerously-skip-permissions", "switch", "make bypassPermissions reachable later"),
    "permission_prompt_tool": Option("--permission-prompt-tool", "text", "'stdio': questions come as control requests"),
    "add_dirs": Option("--add-dir", "texts", "further working directories"),
    "resume": Option("--resume", "text", "go on with a conversation, by id or name"),
    "continue_session": Option("--continue", "switch", "go on with the latest conversation of the folder"),
    "fork_session": Option("--fork-session", "switch", "with the two above: go on in a copy"),
    "resume_at": Option("--resume-session-at", "text", "resume up to that entry only"),
    "session_id": Option("--session-id", "text", "the id of the new conversation (a UUID)"),
    "no_persistence": Option("--no-session-persistence", "switch", "write no transcript"),
    "name": Option("--name", "text", "a name for the conversation"),
    "settings": Option("--settings", "json", "one more settings file, or its content"),
    "setting_sources": Option("--setting-sources", "text", "which of user,project,local to read"),
    "plugin_dirs": Option("--plugin-dir", "texts", "plugin folders"),
    "block": Option("--block", "texts", "plugins to leave out"),
    "mcp_config": Option("--mcp-config", "jsons", "MCP servers: files, or their content"),
    "strict_mcp_config": Option("--strict-mcp-config", "switch", "only those servers"),
    "agents": Option("--agents", "json", "subagents"),
    "agent": Option("--agent", "text", "run as that agent"),
    "json_schema": Option("--json-schema", "json", "the schema of a structured answer"),
    "include_partial_messages": Option("--include-partial-messages", "switch", "the model's stream as it comes"),
    "include_hook_events": Option("--include-hook-events", "switch", "messages about configured hooks"),
    "replay_user_messages": Option("--replay-user-messages", "switch", "repeat what was posted"),
}
"""JSON name -> flag. A relative path counts from ``cwd``."""

FIELDS = frozenset(("cwd", "options", "args", "environment", "prompt", "end", "client"))
STREAMS = ("--print", "--verbose", "--input-format=stream-json", "--output-format=stream-json")


class Wish(NamedTuple):
    """A new session: where, with which command line, with which variables (``None``: the server's own)."""

    cwd: Path
    args: list[str]
    variables: dict[str, str] | None


def read(body: dict[str, Any]) -> Wish:
    """:raises UsageError: a field is unknown or of another type."""
    if unknown := sorted(body.keys() - FIELDS):
        raise UsageError(f"there is no field {unknown[0][:60]!r}", hint=f"fields are {', '.join(sorted(FIELDS))}")
    if "options" in body and "args" in body:
        raise UsageError("'options' and 'args' exclude each other")
    given = body.get("cwd")
    if not isinstance(given, str) or not os.path.isabs(given) or "\0" in given:
        raise UsageError("'cwd' must be an absolute path", hint="the folder that the session works in")
    if not os.path.isdir(given):
        raise UsageError(f"'cwd': {given} is no directory")
    variables = body.get("environment")
    if variables is not None and not (isinstance(variables, dict) and all(isinstance(v, str) for v in variables.values())):
        raise UsageError("'environment' must be an object of strings")
    return Wish(Path(given), _args(body), variables)


def _args(body: dict[str, Any]) -> list[str]:
    if "args" in body:
        args = body["args"]
        if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
            raise UsageError("'args' must be a list of strings")
        return ["--print", *args]
    options = body.get("options", {})
    if not isinstance(options, dict):
        raise UsageError("'options' must be an object")
    return [*STREAMS, *flags(options)]


def flags(options: dict[str, Any]) -> list[str]:
    """:raises UsageError: an option is unknown or of another type."""
    found: list[str] = []
    for name, value in options.items():
        option = OPTIONS.get(name)
        if option is None:
            from difflib import get_close_matches

            near = get_close_matches(name, OPTIONS, n=1)
            raise UsageError(f"there is no option {name[:60]!r}",
                             hint=f"did you mean {near[0]!r}?" if near else "docs/serve.md lists the options")
        if value is not None and value is not False:
            found += _flag(name, option, value)
    return found


def _flag(name: str, option: Option, value: Any) -> list[str]:
    flag, kind, _ = option
    if kind == "switch":
        if value is not True:
            raise UsageError(f"the option {name!r} must be true or false")
        return [flag]
    if kind in ("texts", "jsons"):
        values = value if isinstance(value, list) else [value]
        return [f"{flag}={_text(name, one, objects=kind == 'jsons')}" for one in values]
    if kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int if kind == "integer" else int | float):
            raise UsageError(f"the option {name!r} must be a number")
        return [f"{flag}={value}"]
    return [f"{flag}={_text(name, value, objects=kind == 'json')}"]


def _text(name: str, value: Any, *, objects: bool) -> str:
    if objects and isinstance(value, dict):
        return json.dumps(value)
    if not isinstance(value, str) or "\0" in value:
        raise UsageError(f"the option {name!r} must be {'a string or an object' if objects else 'a string'}")
    return value
