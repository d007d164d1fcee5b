"""The workflow of a run on Temporal: a book that one process at a time writes to. It runs in whatever process has a worker."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

ALIVE = "kernel.alive"
"""The activity that a process is busy with as long as it has a run."""
HEARTBEAT = timedelta(seconds=5)
"""A process that is not heard of for so long is lost."""


@workflow.defn(name="kernel.run", sandboxed=False)
class Book:
    """Steps, answers, and who may write. Deterministic: nothing but what updates and signals bring."""

    def __init__(self) -> None:
        self._spec = ""
        self._steps: dict[str, str] = {}
        self._owner = ""
        self._result: str | None = None

    @workflow.run
    async def run(self, spec: str) -> str:
        self._spec = spec
        await workflow.wait_condition(lambda: self._result is not None and workflow.all_handlers_finished())
        return self._result or ""

    @workflow.query
    def look(self) -> str:
        """All of it, as JSON."""
        return json.dumps({"spec": json.loads(self._spec), "steps": self._steps, "owner": self._owner})

    # -- who has the run ---------------------------------------------------------------------------------------------------
    @workflow.update
    def hold(self, owner: str) -> dict[str, str]:
        """Have the run; what is recorded."""
        self._owner = owner
        self._watch = asyncio.create_task(self._until_lost(owner))
        return self._steps

    @hold.validator
    def _free(self, owner: str) -> None:
        if self._owner:
            raise ApplicationError("held", type="held")
        if self._result is not None:
            raise ApplicationError("over", type="over")

    async def _until_lost(self, owner: str) -> None:
        """The server itself finds out that a process is gone: its activity does not beat any more."""
        try:
            await workflow.execute_activity(ALIVE, workflow.info().workflow_id, task_queue=owner, heartbeat_timeout=HEARTBEAT,
                                            start_to_close_timeout=timedelta(days=3650), schedule_to_start_timeout=4 * HEARTBEAT,
                                            retry_policy=RetryPolicy(maximum_attempts=1))
        except Exception:
            workflow.logger.info("the process that had the run is lost")
        if self._owner == owner:
            self._owner = ""

    @workflow.update
    def leave(self, owner: str) -> None:
        if self._owner == owner:
            self._owner = ""

    # -- what is written ---------------------------------------------------------------------------------------------------
    @workflow.update
    def record(self, owner: str, key: str, value: str) -> None:
        self._steps.setdefault(key, value)

    @record.validator
    def _mine(self, owner: str, key: str, value: str) -> None:
        if self._owner != owner:
            raise ApplicationError("lost", type="lost")

    @workflow.signal
    def answer(self, question: str, answer: str) -> None:
        self._steps.setdefault(f"answer {question}", answer)

    @workflow.update
    def finish(self, owner: str, result: str) -> None:
        self._result = result
        self._owner = ""

    @finish.validator
    def _mine_still(self, owner: str, result: str) -> None:
        self._mine(owner, "", result)

