"""TodoWrite, the older form: one list that each call replaces (tools contract, 13.2)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from kernel import Session, Tool, ToolContext, ToolError, ToolResult
from kernel_tools_tasks import manuals
from kernel_tools_tasks.offer import is_offered
from kernel_tools_tasks.store import Store

_ENTRIES = {"type": "array", "items": {
    "type": "object",
    "properties": {
        "content": {"type": "string", "minLength": 1, "description": "What is to be done, imperative."},
        "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
        "activeForm": {"type": "string", "description": "The same while it runs."},
    },
    "required": ["content", "status", "activeForm"],
    "additionalProperties": False,
}}


class Todos(Struct):
    todos: list[dict[str, str]] = field(default_factory=list)


class TodoWrite(Tool):
    name = "TodoWrite"
    description = "Replaces the list of what is to be done in this session."
    permission = "free"
    input_schema = {"type": "object", "properties": {"todos": _ENTRIES}, "required": ["todos"], "additionalProperties": False}
    output_schema = {"type": "object", "properties": {"oldTodos": _ENTRIES, "newTodos": _ENTRIES},
                     "required": ["oldTodos", "newTodos"], "additionalProperties": False}

    def prompt(self) -> str:
        return manuals.TODO

    def is_enabled(self, session: Session) -> bool:
        return is_offered("todo", session)

    def repair_input(self, input: dict[str, Any]) -> dict[str, Any]:
        """``active_form`` is taken for ``activeForm`` (3.4)."""
        entries = input.get("todos")
        if not isinstance(entries, list):
            return input
        return {**input, "todos": [
            {("activeForm" if k == "active_form" and "activeForm" not in e else k): v for k, v in e.items()}
            if isinstance(e, dict) else e for e in entries]}

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        for n, entry in enumerate(input["todos"]):
            if not entry["content"].strip():
                raise ToolError("invalid_arguments", f"todos.{n}.content: expected what is to be done, received blank text")

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        new: list[dict[str, str]] = input["todos"]

        def replace(found: Todos) -> list[dict[str, str]]:
            old, done = found.todos, all(e["status"] == "completed" for e in new)
            found.todos = [] if done else new
            return old

        agent = context.session.agent_id if context.session.parent is not None else None
        old = await Store(context.session, f"todos-{agent}" if agent else "todos", Todos).change(replace)
        structured = {"oldTodos": old, "newTodos": new}
        return ToolResult(content=self.from_structured(structured), structured=structured)

    def from_structured(self, structured: Any) -> str:
        entries = structured["newTodos"]
        counts = {s: sum(e["status"] == s for e in entries) for s in ("completed", "in_progress", "pending")}
        return (f"The list was replaced: {len(entries)} entries, " + ", ".join(f"{n} {s}" for s, n in counts.items())
                + ". Go on with the entry that is in progress, if there is one.")
