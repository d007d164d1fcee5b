"""What Glob and Grep have in common: they search below ``path``, or below the working directory."""

from __future__ import annotations

from typing import Any

from kernel import ToolContext
from kernel_tools_files.paths import FileTool


class FolderTool(FileTool):
    """Base of the two. ``path`` is always set when rules are applied."""

    rule_name = "Read"
    rule_field = "path"

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def prepare_input(self, input: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        return super().prepare_input({**input, "path": input.get("path") or context.cwd}, context)
