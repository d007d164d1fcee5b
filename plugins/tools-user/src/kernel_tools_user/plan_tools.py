"""EnterPlanMode and ExitPlanMode (tools contract, 14.4)."""

from __future__ import annotations

from typing import Any

from kernel import Session, Tool, ToolContext, ToolError, ToolResult
from kernel_tools_user import manuals, plan
from kernel_tools_user.looks import looks


class EnterPlanMode(Tool):
    name = "EnterPlanMode"
    description = "Switches to plan mode: look and think, change nothing, and write a plan that the person approves."
    permission = "free"
    input_schema = {"type": "object", "properties": {}, "additionalProperties": False}
    output_schema = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"],
                     "additionalProperties": False}

    def prompt(self) -> str:
        return manuals.ENTER

    def is_enabled(self, session: Session) -> bool:
        return session.agent_id is None

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return False  # what runs beside it would be decided in the old mode

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        session = context.session
        if session.agent_id is not None:
            raise ToolError("not_available", "A subagent cannot enter plan mode. Report what you found instead.")
        plan.enter(session)
        message = plan.RULES.format(path=plan.plan_file(session))
        return ToolResult(content=message, structured={"message": message})

    def from_structured(self, structured: Any) -> str:
        return str(structured["message"])


class ExitPlanMode(Tool):
    """The host puts the plan into the input, so hooks and people see what they approve."""

    name = "ExitPlanMode"
    aliases = ("exit_plan_mode",)
    description = "Shows the finished plan to the person and asks for approval; with it plan mode ends."
    input_schema = {
        "type": "object",
        "properties": {"plan": {"type": ["string", "null"], "description": "Leave it out: the plan is read from the plan file."}},
    }
    output_schema = {
        "type": "object",
        "properties": {
            "plan": {"type": ["string", "null"]}, "isAgent": {"type": "boolean"}, "filePath": {"type": "string"},
            "hasTaskTool": {"type": "boolean"}, "planWasEdited": {"type": "boolean"},
            "awaitingLeaderApproval": {"type": "boolean"}, "requestId": {"type": "string"}},
        "required": ["plan", "isAgent"],
    }
    permission = "ask"

    def prompt(self) -> str:
        return manuals.EXIT

    def is_enabled(self, session: Session) -> bool:
        return session.agent_id is None or plan.is_on(session)

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return False

    def prepare_input(self, input: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        """The model's own ``planFilePath`` does not count; its ``plan`` does, as older models send it."""
        session, seen = context.session, looks(context)
        if context.call_id in seen:  # rewritten; an approval may have set another mode by now
            return input
        if not plan.is_on(session):
            raise ToolError("not_in_plan_mode", "Plan mode is not on, so there is no plan to approve. Go on with the work.")
        given = input.get("plan")
        text = given[:plan.PLAN_CHARS] if isinstance(given, str) and given.strip() else plan.read_plan(session)
        seen[context.call_id] = text
        return {**input, "plan": text, "planFilePath": str(plan.plan_file(session))}

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        session = context.session
        shown: str | None = looks(context).get(context.call_id)
        text = input.get("plan") or shown
        if text is not None and text != plan.read_plan(session):
            plan.write_plan(session, text)
        structured: dict[str, Any] = {"plan": text, "isAgent": session.agent_id is not None,
                                      "filePath": str(plan.plan_file(session))}
        if "Agent" in session.toolbox.by_name:
            structured["hasTaskTool"] = True
        if text != shown:
            structured["planWasEdited"] = True
        plan.leave(session)
        return ToolResult(content=self.from_structured(structured), structured=structured)

    def from_structured(self, structured: Any) -> str:
        path = structured.get("filePath")
        if not structured["plan"]:
            return f"Leaving plan mode was approved. There is no plan in {path}. You can start to change things."
        text = f"The plan was approved. You can start to change things. The plan is in {path}; look at it when in doubt."
        return f"{text}\n\nApproved plan:\n{structured['plan']}" if structured.get("planWasEdited") else text
