"""The Bash tool as the model sees it; ``run.py`` does the work."""

from __future__ import annotations

import os
from typing import Any

from kernel import Block, Session, Tool, ToolContext, ToolError, ToolResult, env_switch
from kernel_tools_shell import words
from kernel_tools_shell.manual import BASH_MANUAL, DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS
from kernel_tools_shell.schema import OUTPUT_SCHEMA


class Bash(Tool):
    name = "Bash"
    description = ("Runs a command in the user's shell and returns its output. The working directory persists between calls; "
                   "variables, functions and aliases that a command sets do not.")
    input_schema = {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command to run."},
            "timeout": {"type": "number", "description": "Milliseconds until the command is taken off the call; "
                                                         f"{DEFAULT_TIMEOUT_MS} by default, at most {MAX_TIMEOUT_MS}."},
            "description": {"type": "string", "description": "What the command does, in five to ten words."},
            "run_in_background": {"type": "boolean", "description": "Return at once and let the command run on."},
            "dangerouslyDisableSandbox": {"type": "boolean", "description": "Ask to run outside the sandbox, if there is one."},
        },
        "required": ["command"],
        "additionalProperties": False,
    }
    output_schema = OUTPUT_SCHEMA
    permission = "command"
    rule_field = "command"
    max_result_chars = 400_000  # a backstop; the limits of the contract's 10.3 are kept here

    def prompt(self) -> str:
        return BASH_MANUAL

    def is_enabled(self, session: Session) -> bool:
        return os.name == "posix"

    def is_read_only(self, input: dict[str, Any]) -> bool:
        """For running side by side. Permission is decided from the command by the policy, never from this."""
        return not input.get("run_in_background") and words.reads_only(str(input.get("command", "")))

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        if not input["command"].strip():
            raise ToolError("invalid_arguments", "command: expected a command, received blank text")

        if "\0" in input["command"]:
            raise ToolError("invalid_arguments", "command: a command cannot hold a NUL character")
        if input.get("run_in_background") and env_switch("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"):
            raise ToolError("invalid_arguments", "run_in_background: background commands are switched off in this session; "
                                                 "run the command in the foreground")

    def from_structured(self, structured: Any) -> str | list[Block]:
        from kernel_tools_shell import report

        return report.render(structured) if isinstance(structured, dict) else str(structured)

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        from kernel_tools_shell.run import run  # what runs commands is not needed before the first one

        return await run(input, context)
