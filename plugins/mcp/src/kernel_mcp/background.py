"""A call that takes long goes on without the conversation, which is told when it ends (MCP contract, section 5).

After two minutes, in the main conversation; in print mode only with ``CLAUDE_AUTO_BACKGROUND_TASKS=1``. A call during which
a person is asked stays where it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from kernel import ToolError, ToolResult, env_number, env_switch

if TYPE_CHECKING:
    from kernel import Session, ToolContext
    from kernel_mcp.link import Link

AFTER_MS = 120_000
TASKS = "tasks"
"""``session.root.plugin_state[TASKS]``: what goes on in the background, by id, for TaskOutput and TaskStop."""
NOT_THE_USER = "This comes from the host, not from the user."


def after(context: ToolContext) -> float | None:
    """Seconds until a call is moved; ``None``: never."""
    session = context.session
    wait = env_number("CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS", AFTER_MS, least=0)
    if not wait or session.parent is not None:
        return None
    if session.options.print_mode and not env_switch("CLAUDE_AUTO_BACKGROUND_TASKS"):
        return None
    return wait / 1000


async def run(context: ToolContext, link: Link, work: Callable[[], Coroutine[Any, Any, ToolResult]]) -> ToolResult:
    """The call's result, or the news that it goes on in the background."""
    limit = after(context)
    if limit is None:
        return await work()
    task = asyncio.get_running_loop().create_task(work(), name=f"mcp call {context.call_id}")
    try:
        while True:
            done, _ = await asyncio.wait({task}, timeout=limit)
            if done:
                return task.result()
            if not link.host.waiting_for_person:
                return Moved(context, link, task).begin()
    except asyncio.CancelledError:
        task.cancel()
        with suppress(asyncio.CancelledError, ToolError):
            await task  # the server is told before the call counts as over
        raise


class Moved:
    """A call in the background, with the members that TaskOutput and TaskStop need."""

    task_type = "mcp_call"

    def __init__(self, context: ToolContext, link: Link, task: asyncio.Task[ToolResult]) -> None:
        self.id = f"m{context.call_id[-8:]}"
        self.description = f"{context.tool_name} of the MCP server {link.server.name}"
        self._session = context.session.root
        self._call_id = context.call_id
        self._task = task
        self._stopped = False

    def begin(self) -> ToolResult:
        """Enter the table and say so."""
        session = self._session
        session.plugin_state.setdefault(TASKS, {})[self.id] = self
        session.background_tasks[self.id] = {"id": self.id, "type": self.task_type, "status": "running",
                                             "description": self.description}
        session.inbox.awaited.add(self.id)
        session.say("task_started", task_id=self.id, description=self.description, tool_use_id=self._call_id,
                    task_type=self.task_type, is_backgrounded=True)
        session.tell_tasks(session.plugin_state.get(TASKS, {}))
        self._task.add_done_callback(lambda task: self._ended())
        return ToolResult(content=f"The call takes long and goes on in the background as {self.id}. You are told when it ends; "
                          "go on with other work, and do not repeat the call.", status="partial",
                          structured={"backgroundTaskId": self.id})

    @property
    def status(self) -> Literal["running", "completed", "failed", "killed"]:
        if not self._task.done():
            return "running"
        if self._stopped or self._task.cancelled():
            return "killed"
        return "failed" if self._task.exception() is not None or self._task.result().failed else "completed"

    @property
    def details(self) -> dict[str, Any]:
        return {}

    def output(self, limit: int) -> str:
        """The text of the result, once there is one."""
        if not self._task.done():
            return ""
        if self._task.cancelled():
            return "The call was stopped."
        if (error := self._task.exception()) is not None:
            return str(error)[:limit]
        content = self._task.result().content
        text = content if isinstance(content, str) else "\n".join(str(b.get("text", f"[{b.get('type')}]")) for b in content)
        return text if len(text) <= limit else f"{text[:limit]}\n... ({len(text)} characters in all)"

    async def wait(self) -> None:
        await asyncio.wait({self._task})

    async def stop(self) -> None:
        self._stopped = True
        self._task.cancel()
        await self.wait()

    def _ended(self) -> None:
        session, status = self._session, self.status
        session.background_tasks.pop(self.id, None)
        said = {"killed": "stopped"}.get(status, status)
        ended = round(session.clock.now().timestamp() * 1000)
        session.say("task_updated", task_id=self.id, patch={"status": status, "end_time": ended})
        session.say("task_notification", task_id=self.id, status=said, output_file="", summary=f"{self.description}: {said}",
                    tool_use_id=self._call_id)
        session.tell_tasks(session.plugin_state.get(TASKS, {}))
        if not self._stopped:
            text = session.cap(self.output(1_000_000))
            session.inbox.post(f"<task-notification>\n<task-id>{self.id}</task-id>\n<status>{said}</status>\n"
                               f"<summary>{self.description}</summary>\n<result>{text}</result>\n</task-notification>\n"
                               f"{NOT_THE_USER}")
        session.inbox.settle(self.id)


async def stop_all(session: Session) -> None:
    """End the calls that still run: the session is over."""
    for task in list(session.root.plugin_state.get(TASKS, {}).values()):
        if isinstance(task, Moved) and task.status == "running":
            await task.stop()
