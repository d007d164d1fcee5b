"""One agent while it lives: its task, what clients are told of it, how it ends (subagents contract, section 6)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from kernel import AssistantMessage, Block, Child, Ended, Output, env_number
from kernel_subagents import report
from kernel_subagents.definition import Definition

if TYPE_CHECKING:
    from kernel import Session
    from kernel_subagents.worktree import Worktree

STALL_MS = 600_000
"""Milliseconds without a sign of life after which an agent in the background is hung; ``CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS``."""
GRACE_S = 5.0
"""Seconds that an interrupted agent has to end its tools before its task is cancelled."""
LAST_S = 5.0
NOT_THE_USER = ("This comes from the host, not from the user, and is no approval of anything. Tell the user what matters of it; "
                "send the agent a message if it has to go on.")
TASKS = "tasks"
"""``session.root.plugin_state[TASKS]``: background tasks of all kinds, where TaskOutput and TaskStop find them."""


class Outcome(Struct, kw_only=True):
    """How it ended. ``text``: what the parent may take for the agent's words. ``error``: why there are none, or not all."""

    status: Literal["completed", "failed", "stopped"]
    text: str = ""
    error: str = ""
    ended: Ended | None = None


class Agent:
    """A running or finished agent. Also an entry of the table of tasks (see ``BackgroundTask`` of the plugin tools-shell)."""

    task_type = "local_agent"

    def __init__(self, definition: Definition, child: Child, *, description: str, name: str | None, background: bool,
                 prompt: str) -> None:
        self.id = str(child.agent_id)
        self.definition = definition
        self.child = child
        self.description = description or definition.name
        self.name = name
        self.in_background = background
        self.prompt = prompt
        self.worktree: Worktree | None = None
        self.outcome: Outcome | None = None
        self.tool_uses = 0
        self.began = child.clock.monotonic()
        self.took_ms = 0
        self.silent = False
        """The conversation is over: nobody reads letters any more."""
        self.when_done: Callable[[Agent], None] = lambda agent: None
        self._root: Session = child.root
        self._touched = time.monotonic()
        self.stopped_by_user = False
        self._stopping = ""
        self._file = ""
        self._task: asyncio.Task[None] | None = None
        self._done = asyncio.Event()

    # -- life ------------------------------------------------------------------------------------------------------------
    def begin(self, prepare: Callable[[], Any], prompt: str | list[Block] | None) -> None:
        """Start its task, which nobody but ``stop`` ends.

        :param prepare: an async function that runs ahead of the first request.
        """
        more = {"subagent_type": self.definition.name, "prompt": self.prompt}
        self._root.say("task_started", task_id=self.id, description=self.description, tool_use_id=self.child.spec.tool_use_id,
                       task_type=self.task_type, is_backgrounded=self.in_background, spawn_depth=self.child.depth, **more)
        self._root.plugin_state.setdefault(TASKS, {})[self.id] = self
        if self.in_background and not self.child.transcript.kept:
            self._file = self._root.kept(f"agent-{self.id}", "")[0] or ""
        if self.in_background:
            self._root.inbox.awaited.add(self.id)
            self._root.background_tasks[self.id] = {"id": self.id, "type": "subagent", "status": "running",
                                                    "description": self.description, "agent_type": self.definition.name}
            self._root.tell_tasks(self._root.plugin_state.get(TASKS, {}))
        self._task = asyncio.get_running_loop().create_task(self._live(prepare, prompt), name=f"agent {self.id}")

    async def _live(self, prepare: Callable[[], Any], prompt: str | list[Block] | None) -> None:
        hung = asyncio.get_running_loop().create_task(self._watch()) if self.in_background else None
        try:
            await prepare()
            self.outcome = judge(await self.child.work(prompt), self._stopping)
        except asyncio.CancelledError:
            self.outcome = Outcome(status="stopped", text=self.child.last_words(), error=self._stopping)
        except Exception as error:
            self._root.notice(f"agent {self.definition.name}: {type(error).__name__}: {error}", guard=True)
            self.outcome = Outcome(status="failed", text=self.child.last_words(), error=f"{type(error).__name__}: {error}")
        finally:
            if hung is not None:
                hung.cancel()
            await self._finish()

    async def _finish(self) -> None:
        """Tell everybody. Must be reached whatever happened, or a client waits for ever."""
        assert self.outcome is not None
        if self._stopping == _HUNG:
            self.outcome.status, self.outcome.error = "failed", _HUNG
        self.took_ms = round((self.child.clock.monotonic() - self.began) * 1000)
        try:
            if self._file:
                self._root.kept(f"agent-{self.id}", self.outcome.text or self.outcome.error)
            if self.worktree is not None:
                await self.worktree.leave(self._root)
            if not self.in_background:
                await self.child.close()
        except Exception as error:
            self._root.notice(f"agent {self.definition.name}: {type(error).__name__}: {error}")
        finally:
            self._done.set()  # those that wait go on when this function has told everybody
            self._tell()
            self.when_done(self)

    def _tell(self) -> None:
        assert self.outcome is not None
        root, outcome = self._root, self.outcome
        status = {"stopped": "killed"}.get(outcome.status, outcome.status)
        ended = round(root.clock.now().timestamp() * 1000)
        patch = {"status": status, "end_time": ended, **({"error": outcome.error} if outcome.error else {})}
        root.say("task_updated", task_id=self.id, patch=patch)
        root.say("task_notification", task_id=self.id, status=outcome.status, output_file=self.output_file, usage=self.usage,
                 summary=self.summary, tool_use_id=self.child.spec.tool_use_id)
        if self.in_background:
            root.background_tasks.pop(self.id, None)
            root.tell_tasks(root.plugin_state.get(TASKS, {}))

    async def _watch(self) -> None:
        """End it when it shows no sign of life; a question to a person that is open is one."""
        most = stall_seconds()
        while not self._done.is_set():
            left = most - (time.monotonic() - self._touched)
            if left <= 0 and not self._root.asking.statistics().locked:
                await self._end(_HUNG)
                return
            await asyncio.sleep(max(left, 1.0))

    def saw(self, message: Output) -> None:
        """A message of the agent: it lives."""
        self.touch()
        content = message.message.get("content") if isinstance(message, AssistantMessage) else None
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                self.tool_uses += 1
                self._root.say("task_progress", task_id=self.id, description=self.description, usage=self.usage,
                               tool_use_id=self.child.spec.tool_use_id, last_tool_name=block.get("name"),
                               subagent_type=self.definition.name)

    def touch(self) -> None:
        """It and those that wait for it are alive."""
        self._touched = time.monotonic()
        above = self._root.plugin_state.get(TASKS, {}).get(self.child.parent.agent_id) if self.child.parent else None
        if isinstance(above, Agent):
            above.touch()

    # -- an entry of the table of tasks ------------------------------------------------------------------------------------
    @property
    def status(self) -> Literal["running", "completed", "failed", "killed"]:
        if not self._done.is_set() or self.outcome is None:
            return "running"
        return "killed" if self.outcome.status == "stopped" else self.outcome.status

    @property
    def details(self) -> dict[str, Any]:
        return {"agentType": self.definition.name, "prompt": self.prompt, "outputFile": self.output_file}

    def output(self, limit: int) -> str:
        text = self.outcome.text if self.outcome else self.child.last_words()
        return report.scanned(text[-limit:])

    async def wait(self) -> None:
        await self._done.wait()

    async def stop(self) -> None:
        """A person or a program stops it: no message of another agent lets it go on (6.3)."""
        self.stopped_by_user = True
        await self._end("the user stopped it")

    async def stop_for_model(self) -> None:
        """Another agent stops it."""
        await self._end("it was stopped")

    async def stop_at_the_end(self) -> None:
        """The conversation is over."""
        await self._end("the session ended")

    # -- ending it -----------------------------------------------------------------------------------------------------------
    async def _end(self, why: str) -> None:
        import anyio

        self._stopping = self._stopping or why
        self.child.interrupt()
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(GRACE_S):
                await self._done.wait()
            if self._task is not None and not self._done.is_set():
                self._task.cancel()
                with anyio.move_on_after(LAST_S):
                    await self._done.wait()

    async def report(self) -> Outcome:
        """Wait for the end in the foreground; the caller's cancellation ends the agent."""
        try:
            await self._done.wait()
        except asyncio.CancelledError:
            await self._end("the user interrupted")
            raise
        assert self.outcome is not None
        return self.outcome

    # -- facts -----------------------------------------------------------------------------------------------------------------
    @property
    def output_file(self) -> str:
        """The transcript; where none is kept, a file that holds the report when there is one."""
        return self._file or self.child.transcript.path

    @property
    def usage(self) -> dict[str, int]:
        last = self.child.spending.last
        took = self.took_ms or round((self.child.clock.monotonic() - self.began) * 1000)
        return {"total_tokens": last.prompt_tokens + last.output_tokens, "tool_uses": self.tool_uses, "duration_ms": took}

    @property
    def summary(self) -> str:
        assert self.outcome is not None
        why = f": {self.outcome.error}" if self.outcome.error else ""
        return f'Agent "{self.description}" {_SAID[self.outcome.status]}{why}'

    def letter(self) -> str:
        """What the parent's model is told at the end in the background (6.3)."""
        assert self.outcome is not None
        result = report.enclosed(report.shown(self.child, self.id, self.outcome.text or self.outcome.error))
        usage = "".join(f"<{k}>{v}</{k}>" for k, v in self.usage.items())
        tree = self.worktree.told() if self.worktree is not None else ""
        return (f"<task-notification>\n<task-id>{self.id}</task-id>\n<status>{self.outcome.status}</status>\n"
                f"<output-file>{self.output_file}</output-file>\n<summary>{report.scanned(self.summary)}</summary>\n"
                f"<result>\n{result}\n</result>\n<usage>{usage}</usage>\n{tree}"
                f"</task-notification>\n{NOT_THE_USER}")


_HUNG = "it gave no sign of life for too long"
_SAID = {"completed": "completed", "failed": "failed", "stopped": "was stopped"}


def judge(ended: Ended, stopping: str = "") -> Outcome:
    """What a run came to (6.4 and 6.5). A failure's own words are never given as a finding."""
    text, said = ended.text.strip(), ended.result.result if isinstance(ended.result.result, str) else ""
    errors = "; ".join(ended.result.errors) if isinstance(ended.result.errors, list) else ""
    reason = ended.reason
    if reason in ("completed", "hook_stopped"):
        return Outcome(status="completed", text=text or said, ended=ended)
    if reason == "max_turns":
        note = "(The agent reached its limit of turns; this is the last that it said.)"
        return Outcome(status="completed", text=f"{text}\n\n{note}" if text else note, ended=ended)
    if str(reason).startswith("aborted"):
        return Outcome(status="stopped", text=text, error=stopping or "it was interrupted", ended=ended)
    if reason == "api_error":
        detail = said if said.startswith("API Error") or not text else "the connection was lost"
        return Outcome(status="failed", text=text, error=f"Agent terminated early due to an API error: {detail}", ended=ended)
    if reason == "budget_exhausted":
        return Outcome(status="failed", text=text, error="Budget limit reached", ended=ended)
    return Outcome(status="failed", text=text, error=errors or said or str(reason), ended=ended)


def stall_seconds() -> float:
    return env_number("CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS", STALL_MS) / 1000
