"""The Skill tool: how the model loads a skill (tools contract, 14.2)."""

from __future__ import annotations

from typing import Any, Literal

from kernel import Session, Tool, ToolContext, ToolError, ToolResult
from kernel_skills import invoke, state
from kernel_skills.catalogue import Skill
from kernel_skills.render import SkillError

MANUAL = """# Skill
A skill is a text of instructions for one kind of task, written by the user, the project or a plugin; a list of names and
descriptions tells which there are. When a task fits a description, load the skill before you do anything else about the task,
and then follow it. Its files (references, scripts, assets) are named in its text; read them when they are needed, relative to
its base directory.
- `skill` is the name from the list, with its prefix (`plugin:name`); `args` is text for it, as a person would type it.
- Use only names that were listed or that the user named with a slash. Do not guess names.
- Do not load a skill again whose text is already here; follow it.
- Built-in commands such as /help or /clear are no skills.
"""


class SkillTool(Tool):
    name = "Skill"
    aliases = ("SlashCommand",)
    description = "Loads a skill or a command: instructions for one kind of task, under its listed name."
    input_schema = {
        "type": "object",
        "properties": {
            "skill": {"type": "string", "description": "Name of the skill, as listed: \"review\" or \"plugin:review\"."},
            "args": {"type": "string", "description": "Text for the skill, as a person would type it behind the name."},
        },
        "required": ["skill"],
        "additionalProperties": False,
    }
    output_schema = {
        "type": "object",
        "properties": {"success": {"type": "boolean"}, "commandName": {"type": "string"},
                       "allowedTools": {"type": "array", "items": {"type": "string"}}, "model": {"type": "string"},
                       "status": {"type": "string"}},
        "required": ["success", "commandName"],
    }
    permission = "ask"
    rule_field = "skill"

    def prompt(self) -> str:
        return MANUAL

    def is_enabled(self, session: Session) -> bool:
        return not session.options.extra.get("disable_slash_commands")

    def repair_input(self, input: dict[str, Any]) -> dict[str, Any]:
        """Names of other days: ``command`` held the slash command with its arguments, ``name`` is a guess often made."""
        input = dict(input)
        if "skill" not in input:
            for key in ("command", "name", "skill_name"):
                if isinstance(input.get(key), str):
                    name, _, args = input.pop(key).strip().partition(" ")
                    input["skill"] = name
                    if args:
                        input.setdefault("args", args)
                    break
        if "args" not in input and isinstance(input.get("arguments"), str):
            input["args"] = input.pop("arguments")
        return input

    def prepare_input(self, input: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """Rules and hooks see the full name."""
        skill = state.of(context.session).catalogue.get(input["skill"])
        return {**input, "skill": skill.name if skill else input["skill"].strip().removeprefix("/")}

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        self._find(input, context)

    def check_permissions(self, input: dict[str, Any], context: ToolContext) -> Literal["allow", "deny", "ask"] | None:
        """A skill that brings text and nothing else needs no approval."""
        skill = state.of(context.session).catalogue.get(input["skill"])
        return "allow" if skill is not None and not skill.needs_approval else None

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        skill = self._find(input, context)
        session, skills = context.session, state.of(context.session)
        args = input.get("args") or ""
        try:
            if skill.fork:
                return await invoke.fork(skill, args, session, skills, context.call_id)
            made = await invoke.inline(skill, args, session, skills)
        except SkillError as error:
            raise ToolError("skill_failed", str(error), retryable=False) from None
        structured: dict[str, Any] = {"success": True, "commandName": skill.name, "status": "inline"}
        if skill.allowed:
            structured["allowedTools"] = list(invoke.granted(skill, session))
        if skill.model:
            structured["model"] = skill.model
        return ToolResult(content=f"Launching skill: {skill.name}" + (f". {made.note}" if made.note else ""),
                          structured=structured, new_messages=() if made.note else tuple(made.blocks()))

    def from_structured(self, structured: Any) -> str:
        return f"Launching skill: {structured['commandName']}"

    def _find(self, input: dict[str, Any], context: ToolContext) -> Skill:
        """The skill that is meant.

        :raises ToolError: there is none, or the model may not use it.
        """
        skills = state.of(context.session)
        skill = skills.catalogue.get(input["skill"])
        if skill is None or (not skill.by_model and not skill.by_user) or not skills.chosen(skill):
            raise ToolError("unknown_skill", invoke.unknown(input["skill"].strip(), skills), retryable=True)
        if not skill.by_model:
            raise ToolError("skill_disabled", invoke.refusal(skill), retryable=False)
        return skill
