"""The tool ``SamplePlugin``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel import Tool, ToolContext, ToolError, ToolResult


class SamplePluginTool(Tool):
    """Counts the words of a text file. The policy treats it like a read: ``permission`` and ``rule_name`` say so."""

    name = "SamplePlugin"
    description = "Counts the words and lines of a text file."
    input_schema = {
        "type": "object",
        "properties": {"file_path": {"type": "string", "description": "absolute, or relative to the working directory"}},
        "required": ["file_path"],
        "additionalProperties": False,
    }
    output_schema = {"type": "object", "required": ["words", "lines"]}
    permission = "path"
    rule_name = "Read"
    rule_field = "file_path"

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def prepare_input(self, input: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return {**input, "file_path": str(Path(context.cwd, input["file_path"]))}

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        try:
            text = Path(input["file_path"]).read_text("utf-8", "replace")
        except OSError as error:
            raise ToolError("not_found", f"{input['file_path']}: {error.strerror}") from None
        count = {"words": len(text.split()), "lines": len(text.splitlines())}
        return ToolResult(content=f"{count['words']} words in {count['lines']} lines", structured=count)
