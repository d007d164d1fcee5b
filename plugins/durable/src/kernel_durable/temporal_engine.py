"""Temporal: one workflow for each run, which keeps each step by an update. Importing this imports ``temporalio``.

Whether a process is alive is the server's affair: a process that has a run is busy with an activity of the run's workflow, and
beats. When the beats stay away, the workflow gives the run up. Every process that uses this engine serves workflows as well.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import anyio
from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError
from temporalio.worker import Worker

from kernel_durable.engine import DurableError, Held, Lost, RunInfo
from kernel_durable.temporal_book import ALIVE, HEARTBEAT, Book

QUEUE = "kernel-durable"
KEY = "TEMPORAL_API_KEY"
LOOK_S = 0.5
_RUNTIME = Runtime(telemetry=TelemetryConfig(logging=None))
"""Says nothing by itself: what matters is raised, and said by who knows the run."""
logging.getLogger("temporalio").setLevel(logging.CRITICAL)


class TemporalRun:
    """See ``engine.Run``."""

    def __init__(self, engine: TemporalEngine, handle: WorkflowHandle[Any, Any], spec: dict[str, Any]) -> None:
        self.id = handle.id
        self.spec = spec
        self.recorded: dict[str, str] = {}
        self._engine = engine
        self._handle = handle
        self._over = False

    async def hold(self) -> None:
        """:raises Held: another process has it. :raises DurableError: it is over, or there is none."""
        self._engine.held[self.id] = asyncio.Event()
        try:
            self.recorded = dict(await self._handle.execute_update(Book.hold, self._engine.me))
        except (WorkflowUpdateFailedError, RPCError) as error:
            del self._engine.held[self.id]
            why = _type_of(error)
            if why == "held":
                raise Held(f"the run {self.id} is held by a process that is alive") from None
            raise DurableError(f"the run {self.id} is over, or there is none", context=self._engine.shown) from None

    async def record(self, key: str, value: str) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self._handle.execute_update(Book.record, args=[self._engine.me, key, value])
            except (WorkflowUpdateFailedError, RPCError) as error:
                if _type_of(error) == "lost" or isinstance(error, RPCError):
                    self._let_go()
                    raise Lost(f"the run {self.id} was taken up by another process", context=self._engine.shown,
                               hint="what this process does for it does not count") from error
                raise
        self.recorded[key] = value

    async def answer(self, question: str) -> dict[str, Any]:
        while True:
            if (found := (await looked(self._handle))["steps"].get(f"answer {question}")) is not None:
                return dict(json.loads(found))
            await anyio.sleep(LOOK_S)

    async def finish(self, result: dict[str, Any]) -> None:
        with anyio.CancelScope(shield=True):
            await self._handle.execute_update(Book.finish, args=[self._engine.me, json.dumps(result)])
        self._let_go()

    async def leave(self) -> None:
        if not self._over:
            self._let_go()
            with anyio.CancelScope(shield=True):
                await self._handle.execute_update(Book.leave, self._engine.me)

    def _let_go(self) -> None:
        self._over = True
        if (event := self._engine.held.pop(self.id, None)) is not None:
            event.set()


async def looked(handle: WorkflowHandle[Any, Any]) -> dict[str, Any]:
    """What the book holds."""
    book: dict[str, Any] = json.loads(await handle.query(Book.look))
    return book


def _type_of(error: BaseException) -> str:
    cause = error.cause if isinstance(error, WorkflowUpdateFailedError) else None
    return str(cause.type) if isinstance(cause, ApplicationError) else ""


class TemporalEngine:
    """See ``engine.StepEngine``.

    :param url: ``temporal://HOST:PORT/NAMESPACE``; ``?tls=1`` for TLS, with the API key of ``TEMPORAL_API_KEY`` where it is set.
    """

    name = "temporal"

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.shown = f"temporal://{parts.hostname or '127.0.0.1'}:{parts.port or 7233}/{parts.path.strip('/') or 'default'}"
        self.me = f"kernel-{os.getpid()}-{uuid4().hex[:12]}"
        self.held: dict[str, asyncio.Event] = {}
        self._tls = parse_qs(parts.query).get("tls") == ["1"]
        self._client: Client | None = None
        self._workers: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    async def _served(self) -> Client:
        """The client, with workers beside it."""
        if self._client is None or self._loop is not asyncio.get_running_loop():
            where = urlsplit(self.shown)
            try:
                self._client = await Client.connect(where.netloc, namespace=where.path.strip("/"), tls=self._tls,
                                                    api_key=os.environ.get(KEY), runtime=_RUNTIME)
            except RuntimeError as error:
                raise DurableError(f"the server cannot be reached: {error}", context=self.shown) from None
            self._loop = asyncio.get_running_loop()
            soon = timedelta(seconds=1)
            books = Worker(self._client, task_queue=QUEUE, workflows=[Book], sticky_queue_schedule_to_start_timeout=soon)
            beats = Worker(self._client, task_queue=self.me, activities=[self._activity()], graceful_shutdown_timeout=soon)
            self._workers = [asyncio.create_task(worker.run()) for worker in (books, beats)]
        return self._client

    def _activity(self) -> Any:
        @activity.defn(name=ALIVE)
        async def alive(run_id: str) -> None:
            released = self.held.get(run_id)
            while released is not None and not released.is_set():
                activity.heartbeat()
                try:
                    await asyncio.wait_for(released.wait(), HEARTBEAT.total_seconds() / 4)
                except TimeoutError:
                    continue

        return alive

    async def begin(self, run_id: str, spec: dict[str, Any]) -> TemporalRun:
        client = await self._served()
        try:
            handle = await client.start_workflow(Book.run, json.dumps(spec), id=run_id, task_queue=QUEUE,
                                                 task_timeout=timedelta(seconds=2))
        except WorkflowAlreadyStartedError:
            raise Held(f"the run {run_id} is there already") from None
        run = TemporalRun(self, handle, spec)
        await run.hold()
        return run

    async def take(self, run_id: str) -> TemporalRun:
        client = await self._served()
        run = TemporalRun(self, client.get_workflow_handle(run_id), {})
        await run.hold()
        run.spec = (await looked(client.get_workflow_handle(run_id)))["spec"]
        return run

    async def runs(self, *, run_id: str = "", done: bool = True) -> list[RunInfo]:
        client = await self._served()
        found: list[RunInfo] = []
        query = 'WorkflowType = "kernel.run"' + ("" if done else ' AND ExecutionStatus = "Running"')
        async for execution in client.list_workflows(query):
            if not execution.id.startswith(run_id):
                continue
            handle = client.get_workflow_handle(execution.id)
            book = await looked(handle)
            over = execution.status is not WorkflowExecutionStatus.RUNNING
            result = json.loads(await handle.result()) if execution.status is WorkflowExecutionStatus.COMPLETED else None
            found.append(RunInfo(id=execution.id, state="done" if over else "running" if book["owner"] else "pending",
                                 spec=book["spec"], steps=book["steps"], created=execution.start_time.timestamp(),
                                 changed=(execution.close_time or execution.start_time).timestamp(), result=result))
        return sorted(found, key=lambda info: -info.created)

    async def send(self, run_id: str, question: str, answer: dict[str, Any]) -> None:
        client = await self._served()
        await client.get_workflow_handle(run_id).signal(Book.answer, args=[question, json.dumps(answer)])

    async def prune(self, before: float) -> int:
        client = await self._served()
        old = [info.id for info in await self.runs() if info.state == "done" and info.changed < before]
        for run_id in old:
            await client.workflow_service.delete_workflow_execution(DeleteWorkflowExecutionRequest(
                namespace=client.namespace, workflow_execution=WorkflowExecution(workflow_id=run_id)))
        return len(old)

    async def close(self) -> None:
        if self.held:
            return
        for task in self._workers:
            task.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers, self._client = [], None


