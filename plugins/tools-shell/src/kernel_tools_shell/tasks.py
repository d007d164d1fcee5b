"""Commands that go on without their call: what they are told apart by, and how their end is announced.

``session.root.plugin_state["tasks"]`` maps ids to background tasks of all kinds. A plugin that has others (agents, for
example) puts its own objects there, with the members of ``BackgroundTask``; TaskOutput and TaskStop then serve them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from kernel import Session
    from kernel_tools_shell.command import Command

Status = Literal["running", "completed", "failed", "killed"]
_NOTICE = {"completed": "completed", "failed": "failed", "killed": "stopped"}
_NOTED_S = 1.0
_NOT_THE_USER = "This comes from the host, not from the user. Read the output file if you need to know more."


class BackgroundTask(Protocol):
    """Anything that goes on beside the conversation."""

    id: str
    task_type: str
    description: str

    @property
    def status(self) -> Status: ...

    @property
    def details(self) -> dict[str, Any]:
        """Further fields of TaskOutput's ``task`` object, for example ``exitCode``."""

    def output(self, limit: int) -> str:
        """What it gave so far, at most about so many characters."""

    async def wait(self) -> None:
        """Until it ended."""

    async def stop(self) -> None:
        """End it, and tell clients. A task that tells apart who ends it has ``stop_for_model`` beside it, for TaskStop."""


def table(session: Session) -> dict[str, BackgroundTask]:
    found: dict[str, BackgroundTask] = session.root.plugin_state.setdefault("tasks", {})
    return found


class ShellTask:
    """A background command. ``call_id`` is the tool call that started it."""

    task_type = "local_bash"

    def __init__(self, session: Session, id: str, command: Command, text: str, description: str, call_id: str) -> None:
        self.id = id
        self.command = command
        self.text = text
        self.description = description or text.strip().split("\n", 1)[0][:200]
        self.call_id = call_id
        self.path = str(command.sink.path)
        self._session = session
        self._stopped = False
        self._announced = False

    def begin(self) -> None:
        """Enter the table, tell clients, and have the end announced in the session's own thread."""
        self.command.sink.keep()
        table(self._session)[self.id] = self
        self._session.background_tasks[self.id] = {"id": self.id, "type": "shell", "status": "running",
                                                   "description": self.description, "command": self.text}
        self._session.say("task_started", task_id=self.id, description=self.description, tool_use_id=self.call_id,
                          task_type=self.task_type, is_backgrounded=True)
        self._session.tell_tasks(table(self._session))
        post = _poster()
        self.command.when_ended(lambda: post(self.announce))

    @property
    def status(self) -> Status:
        code = self.command.exit_code
        if code is None:
            return "running"
        if self._stopped or self.command.cut:
            return "killed"
        return "failed" if code else "completed"

    @property
    def details(self) -> dict[str, Any]:
        code = self.command.exit_code
        return {"command": self.text, "outputFile": self.path} | ({} if code is None else {"exitCode": code})

    def output(self, limit: int) -> str:
        from kernel_tools_shell.report import shortened

        return shortened(self.command.sink, limit)

    async def wait(self) -> None:
        await self.command.wait()

    async def stop(self) -> None:
        self._stopped = True
        await end_commands([self.command])
        self.announce()

    def let_go(self) -> None:
        """The session ends: if it still runs, it is about to be stopped."""
        self._stopped = self._stopped or self.status == "running"

    def announce(self) -> None:
        """Tell clients that it ended, and the model unless it was stopped on purpose. Once; a later call does nothing."""
        if self._announced or self.status == "running":
            return
        self._announced = True
        session, status, summary = self._session, self.status, self.summary()
        ended = round(session.clock.now().timestamp() * 1000)
        session.say("task_updated", task_id=self.id, patch={"status": status, "end_time": ended})
        session.say("task_notification", task_id=self.id, status=_NOTICE[status], output_file=self.path, summary=summary,
                    tool_use_id=self.call_id)
        session.background_tasks.pop(self.id, None)
        session.tell_tasks(table(session))
        if not self._stopped:
            self._tell(
                f"<task-notification>\n<task-id>{self.id}</task-id>\n<status>{_NOTICE[status]}</status>\n"
                f"<output-file>{self.path}</output-file>\n<summary>{summary}</summary>\n</task-notification>\n{_NOT_THE_USER}")

    def _tell(self, text: str) -> None:
        """The model learns of it; a run begins for that unless the program is about to end (headless contract, section 9)."""
        if self._session.options.print_mode and self._session.options.input_format == "text":
            self._session.add_context(text)
        else:
            self._session.inbox.post(text)

    def summary(self) -> str:
        name, code = f'Background command "{self.description}"', self.command.exit_code
        if self.command.cut:
            why = "wrote too much output" if self.command.cut == "output" else "reached its time limit"
            return f"{name} was ended: it {why}"
        if self._stopped:
            return f"{name} was stopped"
        return f"{name} failed with exit code {code}" if code else f"{name} completed (exit code 0)"


async def end_commands(commands: list[Command], mark: str | None = None) -> bool:
    """End process trees; shielded and bounded (``processes.end``)."""
    import anyio
    import anyio.to_thread

    from kernel_tools_shell.processes import end

    with anyio.CancelScope(shield=True):
        gone = await anyio.to_thread.run_sync(end, commands, mark)
        with anyio.move_on_after(_NOTED_S):  # until the exit codes are known
            for command in commands:
                await command.wait()
    return gone


def _poster() -> Callable[[Callable[[], None]], None]:
    """Runs a function in the session's event loop, from any thread; at once where that loop is gone."""
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # another loop: the message then comes from the command's thread
        return lambda function: function()

    def post(function: Callable[[], None]) -> None:
        try:
            loop.call_soon_threadsafe(function)
        except RuntimeError:
            function()
    return post
