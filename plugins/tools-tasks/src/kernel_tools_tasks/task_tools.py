"""TaskCreate, TaskGet, TaskUpdate and TaskList (tools contract, 13.3)."""

from __future__ import annotations

from typing import Any, ClassVar

from kernel import Merged, Session, TaskCompleted, TaskCreated, Tool, ToolContext, ToolError, ToolResult
from kernel_tools_tasks import manuals
from kernel_tools_tasks.offer import is_offered
from kernel_tools_tasks.state import Task, Tasks, line, refusal, tasks

_ID = {"type": "string", "description": "The task's id."}
_IDS = {"type": "array", "items": {"type": "string"}}
_STATUS = {"type": "string", "enum": ["pending", "in_progress", "completed"]}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


class TaskTool(Tool):
    """What the four have in common."""

    permission = "free"
    manual: ClassVar[str]

    def prompt(self) -> str:
        return self.manual

    def is_enabled(self, session: Session) -> bool:
        return is_offered("tasks", session)

    def repair_input(self, input: dict[str, Any]) -> dict[str, Any]:
        """``id`` and ``task_id`` are taken for ``taskId``, ``active_form`` for ``activeForm`` (3.4); numbers for ids."""
        known = self.input_schema["properties"]
        fixed: dict[str, Any] = {}
        for key, value in input.items():
            meant = {"id": "taskId", "task_id": "taskId", "active_form": "activeForm"}.get(key, key)
            name = meant if key not in known and meant in known and meant not in input else key
            if name in ("taskId", "addBlocks", "addBlockedBy"):
                value = [_text(v) for v in value] if isinstance(value, list) else _text(value)
            fixed[name] = value
        return fixed


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _reasons(merged: Merged) -> str:
    return merged.block_reason or "no reason was given"


class TaskCreate(TaskTool):
    name = "TaskCreate"
    description = "Puts a task on the session's task list."
    manual = manuals.CREATE
    input_schema = _object({
        "subject": {"type": "string", "minLength": 1, "description": "What is to be done, short and imperative."},
        "description": {"type": "string", "description": "All that is needed to do it, and when it is done."},
        "activeForm": {"type": "string", "description": "The subject while it runs, for example 'Running the tests'."},
        "metadata": {"type": "object", "description": "Anything to keep with the task."},
    }, "subject", "description")
    output_schema = _object({"task": _object({"id": _ID, "subject": {"type": "string"}}, "id", "subject")}, "task")

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        if not input["subject"].strip():
            raise ToolError("invalid_arguments", "subject: expected what is to be done, received blank text")

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        session, store = context.session, tasks(context.session)
        task = await store.change(lambda found: found.add(
            subject=input["subject"], description=input["description"], active_form=input.get("activeForm"),
            metadata={k: v for k, v in (input.get("metadata") or {}).items() if v is not None}))
        kept = False
        try:  # the task is there while hooks look at it, and gone again where one refuses or the run is interrupted
            merged = await session.fire(session.make(
                TaskCreated, task_id=task.id, task_subject=task.subject, task_description=task.description or None))
            kept = not merged.blocked  # continue: false has no effect here (hooks contract, 18.16)
        finally:
            if not kept:
                await _undo(context, task)
        if merged.blocked:
            raise ToolError("hook_blocked", "The task was not created. A TaskCreated hook refused it: "
                                            f"{session.cap(_reasons(merged))}")
        structured = {"task": {"id": task.id, "subject": task.subject}}
        return ToolResult(content=f"Task #{task.id} created: {task.subject}", structured=structured)

    def from_structured(self, structured: Any) -> str:
        return f"Task #{structured['task']['id']} created: {structured['task']['subject']}"


async def _undo(context: ToolContext, task: Task) -> None:
    import anyio

    with anyio.CancelScope(shield=True):
        await tasks(context.session).change(lambda found: found.remove(task.id))


class TaskGet(TaskTool):
    name = "TaskGet"
    description = "Gives one task of the list with all that is known of it."
    manual = manuals.GET
    polling = True
    input_schema = _object({"taskId": _ID}, "taskId")
    output_schema = _object({"task": {"anyOf": [{"type": "null"}, _object(
        {"id": _ID, "subject": {"type": "string"}, "description": {"type": "string"}, "status": _STATUS, "blocks": _IDS,
         "blockedBy": _IDS}, "id", "subject", "description", "status", "blocks", "blockedBy")]}}, "task")

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        found = tasks(context.session).read()
        task = found.find(input["taskId"])
        if task is None:
            return ToolResult(content=f"There is no task {input['taskId'][:100]!r}.", structured={"task": None}, status="empty")
        structured = {"task": {"id": task.id, "subject": task.subject, "description": task.description, "status": task.status,
                               "blocks": list(task.blocks), "blockedBy": list(task.blocked_by)}}
        more = [f"owner: {task.owner}"] if task.owner else []
        more += [f"metadata: {task.metadata}"] if task.metadata else []
        return ToolResult(content="\n".join([self.from_structured(structured), *more]), structured=structured)

    def from_structured(self, structured: Any) -> str:
        task = structured["task"]
        if task is None:
            return "There is no such task."
        lines = [f"#{task['id']} [{task['status']}] {task['subject']}", task["description"]]
        lines += [f"{label}: {', '.join(f'#{b}' for b in ids)}"
                  for label, ids in (("blocks", task["blocks"]), ("blocked by", task["blockedBy"])) if ids]
        return "\n".join(text for text in lines if text)


class TaskList(TaskTool):
    name = "TaskList"
    description = "Lists the session's tasks with their status."
    manual = manuals.LIST
    polling = True
    input_schema = _object({})
    output_schema = _object({"tasks": {"type": "array", "items": _object(
        {"id": _ID, "subject": {"type": "string"}, "status": _STATUS, "owner": {"type": "string"}, "blockedBy": _IDS},
        "id", "subject", "status", "blockedBy")}}, "tasks")

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        found = tasks(context.session).read()
        structured = {"tasks": [
            {"id": t.id, "subject": t.subject, "status": t.status, **({"owner": t.owner} if t.owner else {}),
             "blockedBy": found.open_blockers(t)} for t in found.tasks]}
        text = "\n".join(line(found, t) for t in found.tasks)
        return ToolResult(content=text or "The list is empty.", structured=structured, status="success" if text else "empty")


class TaskUpdate(TaskTool):
    name = "TaskUpdate"
    description = "Changes a task of the list: its status, texts, owner, or what it waits for."
    manual = manuals.UPDATE
    input_schema = _object({
        "taskId": _ID,
        "status": {"type": "string", "enum": ["pending", "in_progress", "completed", "deleted"]},
        "subject": {"type": "string", "minLength": 1},
        "description": {"type": "string"},
        "activeForm": {"type": "string"},
        "addBlocks": {**_IDS, "description": "Tasks that wait for this one."},
        "addBlockedBy": {**_IDS, "description": "Tasks that this one waits for."},
        "owner": {"type": "string", "description": "Who works on it; empty for nobody."},
        "metadata": {"type": "object", "description": "Merged into what is there; null removes a key."},
    }, "taskId")
    output_schema = _object({
        "success": {"type": "boolean"}, "taskId": _ID, "updatedFields": {"type": "array", "items": {"type": "string"}},
        "error": {"type": "string"},
        "statusChange": _object({"from": {"type": "string"}, "to": {"type": "string"}}, "from", "to"),
    }, "success", "taskId", "updatedFields")

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        store, id = tasks(context.session), input["taskId"]
        before = store.read()
        task = before.get(id)
        if input.get("status") == "completed" and task.status != "completed":
            apply(before, input)  # on the copy: an update that cannot be made raises no event
            await self._gate(context, task)
        structured = await store.change(lambda found: apply(found, input))
        return ToolResult(content=self.from_structured(structured), structured=structured,
                          status="success" if structured["updatedFields"] else "empty")

    async def _gate(self, context: ToolContext, task: Task) -> None:
        """:raises ToolError: ``hook_blocked``: a TaskCompleted hook keeps the task open (hooks contract, 18.17)."""
        session = context.session
        merged = await session.fire(session.make(
            TaskCompleted, task_id=task.id, task_subject=task.subject, task_description=task.description or None))
        if merged.blocked:
            text = f"Task #{task.id} was not marked completed. A TaskCompleted hook refused it: {session.cap(_reasons(merged))}"
            raise ToolError("hook_blocked", text, structured=refusal(task.id, text))

    def from_structured(self, structured: Any) -> str:
        if not structured["success"]:
            return str(structured.get("error") or "Nothing was changed.")
        if not structured["updatedFields"]:
            return f"Task #{structured['taskId']} was like that already; nothing was changed."
        change = structured.get("statusChange")
        status = f" ({change['from']} -> {change['to']})" if change else ""
        return f"Task #{structured['taskId']} updated: {', '.join(structured['updatedFields'])}{status}"


def apply(found: Tasks, input: dict[str, Any]) -> dict[str, Any]:
    """Change the list as the input says and return the output object.

    :raises ToolError: a task does not exist, or tasks would wait for each other.
    """
    task = found.get(input["taskId"])
    before, status = task.status, input.get("status")
    changed: list[str] = []
    for key, field in (("subject", "subject"), ("description", "description"), ("activeForm", "active_form"), ("owner", "owner")):
        if key in input and (getattr(task, field) or "") != input[key]:
            setattr(task, field, input[key] or (None if field == "owner" else ""))
            changed.append(key)
    if "metadata" in input:
        merged = {k: v for k, v in {**task.metadata, **input["metadata"]}.items() if v is not None}
        changed += ["metadata"] if merged != task.metadata else []
        task.metadata = merged
    for key, pairs in (("addBlocks", [(task.id, b) for b in input.get("addBlocks", ())]),
                       ("addBlockedBy", [(b, task.id) for b in input.get("addBlockedBy", ())])):
        new = [found.link(found.get(first), found.get(second)) for first, second in pairs]
        changed += [key] if any(new) else []
    output: dict[str, Any] = {"success": True, "taskId": task.id, "updatedFields": changed}
    if status is not None and status != before:
        changed.append("status")
        output["statusChange"] = {"from": before, "to": status}
        if status == "deleted":
            found.remove(task.id)
        else:
            task.status = status
    return output
