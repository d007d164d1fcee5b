"""DBOS on SQLite or PostgreSQL: one workflow for each run, one of its steps for each step.

The loop stays where it is, in the session's own tasks. The workflow is the run's book: it waits for finished steps and keeps each
by ``DBOS.run_step`` under its key. Who may write is DBOS's affair: every execution of a workflow has a token, and a process whose
run was taken up by another one is refused. A run is taken up as DBOS recovers: it is put into a queue that this process alone
listens to, and begins again there. Importing this imports ``dbos``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, TypeVar
from uuid import uuid4

import anyio
import anyio.to_thread
from dbos import DBOS, DBOSClient, Serializer, SetWorkflowID, error as dbos_error
from sqlalchemy.exc import DBAPIError

from kernel_durable.engine import DurableError, Held, Lost, RunInfo
from kernel_durable.holding import FileHolder, Holder, ServerHolder

T = TypeVar("T")
WORKFLOW = "kernel.run"
APPLICATION = "kernel"
VERSION = "kernel-durable-1"
"""What DBOS calls the application's version: of the book, not of the loop. The loop's own changes are found step by step."""
OVER = frozenset({"SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"})
PATIENCE_S = 60.0
LOOK_S = 0.5
"""Seconds between two looks: for an answer, and whether the session's loop is still there."""
ANSWER = "answer "


class Json(Serializer):
    """All that is kept is JSON; an exception becomes its text."""

    def serialize(self, data: Any) -> str:
        return json.dumps(data, default=lambda value: f"{type(value).__name__}: {value}")

    def deserialize(cls, serialized_data: str) -> Any:  # as the base has it
        return json.loads(serialized_data)

    def name(self) -> str:
        return "kernel_json"


class Left(BaseException):
    """Ends a workflow's body without an outcome, so that it can be taken up. An ``Exception`` would be its outcome."""


class DbosRun:
    """See ``engine.Run``."""

    def __init__(self, engine: DbosEngine, run_id: str, spec: dict[str, Any]) -> None:
        self.id = run_id
        self.spec = spec
        self.recorded: dict[str, str] = {}
        self._engine = engine
        self._jobs: asyncio.Queue[tuple[Callable[[], Any], Future[Any]]] = asyncio.Queue()
        self._session = asyncio.get_running_loop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.begun: Future[None] = Future()
        self._result: str | None = None
        self._left = False

    # -- in DBOS's thread ------------------------------------------------------------------------------------------------
    async def serve(self) -> str:
        """The workflow's body: keep what comes, until the run is over or left."""
        self._loop = asyncio.get_running_loop()
        self.begun.set_result(None)
        while self._result is None:
            try:
                job, future = await asyncio.wait_for(self._jobs.get(), LOOK_S)
            except TimeoutError:
                if self._session.is_closed():  # ended without a word: its threads must not keep the process
                    raise Left from None
                continue
            try:
                future.set_result(await job())
            except BaseException as error:  # DBOS says with one that another execution has the workflow
                future.set_exception(error)
                raise Left from error
        return self._result

    async def _keep(self, key: str, value: str) -> None:
        await DBOS.run_step_async({"name": key}, _same, value)

    async def _skip(self, last: int) -> None:
        """Behind the steps that are there."""
        while last >= 0 and DBOS.reserve_step().step_id < last:
            pass

    async def _end(self, result: str) -> None:
        self._result = result

    async def _leave(self) -> None:
        raise Left

    # -- in the session's thread -----------------------------------------------------------------------------------------
    async def _do(self, job: Callable[[], Any]) -> None:
        """Have the workflow do something; not to be torn by a cancellation."""
        if self._loop is None or self._left:
            raise Lost(f"the run {self.id} is not this process's any more")
        future: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._jobs.put_nowait, (job, future))
        with anyio.CancelScope(shield=True):
            await asyncio.wrap_future(future)

    async def record(self, key: str, value: str) -> None:
        try:
            await self._do(partial(self._keep, key, value))
        except (dbos_error.DBOSException, dbos_error.DBOSBaseException) as error:
            self._left = True
            raise Lost(f"the run {self.id} was taken up by another process", context=self._engine.shown,
                       hint="what this process does for it does not count") from error
        self.recorded[key] = value

    async def skip(self, last: int) -> None:
        await self._do(partial(self._skip, last))

    async def answer(self, question: str) -> dict[str, Any]:
        while True:
            (info,) = await self._engine.statuses(run_id=self.id)
            if (found := (info.attributes or {}).get(ANSWER + question)) is not None:
                return dict(found)
            await anyio.sleep(LOOK_S)

    async def finish(self, result: dict[str, Any]) -> None:
        await self._do(partial(self._end, json.dumps(result)))
        with anyio.CancelScope(shield=True), anyio.move_on_after(PATIENCE_S):
            while (await self._engine.statuses(run_id=self.id))[0].status not in OVER:  # noqa: ASYNC110  # it is a database
                await anyio.sleep(0.005)
        self._left = True
        await self._engine.let_go(self)

    async def leave(self) -> None:
        if self._loop is not None and not self._left:
            with suppress(Left):
                await self._do(self._leave)
            self._left = True
        await self._engine.let_go(self)


class DbosEngine:
    """See ``engine.StepEngine``.

    :param url: ``sqlite:////PATH`` or ``postgresql://...``.
    """

    name = "dbos"
    _launched: ClassVar[DbosEngine | None] = None

    def __init__(self, url: str) -> None:
        from sqlalchemy.engine import make_url

        address = make_url(url)
        self.shown = address.render_as_string(hide_password=True)
        self._url = url
        self._path = Path(address.database or "") if address.get_backend_name() == "sqlite" else None
        self._me = f"kernel-{os.getpid()}-{uuid4().hex[:12]}"
        self._runs: dict[str, DbosRun] = {}
        self._holder: Holder | None = None
        self._client: DBOSClient | None = None
        self._listens = False
        self._workflow: Any = None
        self._one = RLock()
        """Sessions of one process share the engine, each from threads of its own."""

    # -- the engine's own life; all of it blocks -------------------------------------------------------------------------
    def _there(self) -> bool:
        return self._path is None or self._path.exists()

    def _make(self) -> None:
        """The file before SQLite makes it: private, and with a write-ahead log, so that a step is one write to the disk."""
        if self._path is not None and not self._path.exists():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            connection = sqlite3.connect(self._path, timeout=30)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.close()

    def _held(self) -> Holder:
        with self._one:
            if self._holder is None:
                self._holder = ServerHolder(self._url) if self._path is None else FileHolder(self._path.with_suffix(".lock"))
            return self._holder

    def _ask(self) -> DBOSClient:
        with self._one:
            if self._client is None:
                self._client = DBOSClient(system_database_url=self._url, serializer=Json(), application_name=APPLICATION,
                                          retry_connection_errors=False)
            return self._client

    def _launch(self) -> None:
        with self._one:
            if DbosEngine._launched is not self:
                self._launched_now()

    def _launched_now(self) -> None:
        if DbosEngine._launched is not None:  # DBOS is one of a kind in a process
            DBOS.destroy(destroy_registry=True)
        self._make()
        DBOS(config={"name": APPLICATION, "system_database_url": self._url, "application_version": VERSION,
                     "executor_id": self._me, "log_level": "CRITICAL", "serializer": Json(),
                     "scheduler_polling_interval_sec": 3600.0})
        self._workflow = DBOS.workflow(name=WORKFLOW)(self._body())
        DBOS.listen_queues([self._me])
        DBOS.launch()
        DbosEngine._launched = self

    def _body(self) -> Callable[[str], Any]:
        async def book(spec: str) -> str:
            run = self._runs.get(str(DBOS.workflow_id))
            if run is None:  # nobody here waits for it: it stays as it is
                raise Left
            return await run.serve()

        return book

    async def statuses(self, *, run_id: str = "") -> list[Any]:
        return await _in_thread(partial(self._statuses, run_id, load=True))

    def _statuses(self, run_id: str, *, load: bool) -> list[Any]:
        if not self._there():
            return []
        try:
            found: list[Any] = self._ask().list_workflows(name=WORKFLOW, workflow_id_prefix=run_id or None, sort_desc=True,
                                                          load_input=load, load_output=load)
        except DBAPIError as error:
            if "no such table" in str(error.orig) or getattr(error.orig, "sqlstate", None) in ("42P01", "3F000"):
                return []  # nothing was ever kept there
            raise DurableError(f"the database cannot be asked: {str(error.orig).splitlines()[0]}", context=self.shown) from None
        return found

    # -- runs --------------------------------------------------------------------------------------------------------------
    async def begin(self, run_id: str, spec: dict[str, Any]) -> DbosRun:
        run = DbosRun(self, run_id, spec)
        await _in_thread(self._begin, run)
        with anyio.fail_after(PATIENCE_S):
            await asyncio.wrap_future(run.begun)
        return run

    def _begin(self, run: DbosRun) -> None:
        self._make()
        if not self._held().hold(run.id):
            raise Held(f"the run {run.id} is held by another process")
        try:
            self._launch()
            self._runs[run.id] = run
            with SetWorkflowID(run.id):
                DBOS.start_workflow(self._workflow, json.dumps(run.spec))
        except BaseException:
            self._runs.pop(run.id, None)
            self._held().release(run.id)
            raise

    async def take(self, run_id: str) -> DbosRun:
        run = DbosRun(self, run_id, {})
        await _in_thread(self._take, run)
        try:
            with anyio.fail_after(PATIENCE_S):
                await asyncio.wrap_future(run.begun)
            run.recorded, last = await _in_thread(self._steps, run_id)
            await run.skip(last)
        except BaseException:
            await run.leave()
            raise
        return run

    def _take(self, run: DbosRun) -> None:
        run_id = run.id
        if not self._there():
            raise DurableError(f"there is no run {run_id}", context=self.shown)
        if not self._held().hold(run_id):
            raise Held(f"the run {run_id} is held by a process that is alive")
        try:
            found = self._statuses(run_id, load=True)
            if len(found) != 1 or found[0].status in OVER:
                raise DurableError(f"the run {run_id} is over" if found else f"there is no run {run_id}", context=self.shown)
            run.spec = json.loads(found[0].input["args"][0])
            self._runs[run_id] = run
            if not self._listens:
                self._ask().register_queue(self._me, polling_interval_sec=0.05, application_name=APPLICATION)
                self._listens = True
            self._launch()
            self._ask().resume_workflow(run_id, queue_name=self._me)
        except BaseException:
            self._runs.pop(run_id, None)
            self._held().release(run_id)
            raise

    def _steps(self, run_id: str) -> tuple[dict[str, str], int]:
        steps = self._ask().list_workflow_steps(run_id)
        return {s["function_name"]: str(s["output"]) for s in steps}, max((s["function_id"] for s in steps), default=-1)

    async def let_go(self, run: DbosRun) -> None:
        if self._runs.pop(run.id, None) is not None:
            await _in_thread(self._held().release, run.id)

    async def runs(self, *, run_id: str = "", done: bool = True) -> list[RunInfo]:
        return await _in_thread(self._list, run_id, done)

    def _list(self, run_id: str, done: bool) -> list[RunInfo]:
        found: list[RunInfo] = []
        for status in self._statuses(run_id, load=True):
            over = status.status in OVER
            if over and not done:
                continue
            steps = {} if over and not run_id else self._steps(status.workflow_id)[0]
            answers = {k: json.dumps(v) for k, v in (status.attributes or {}).items() if k.startswith(ANSWER)}
            found.append(RunInfo(
                id=status.workflow_id, state="done" if over else "running" if self._is_held(status.workflow_id) else "pending",
                spec=json.loads(status.input["args"][0]), created=(status.created_at or 0) / 1000,
                changed=(status.updated_at or 0) / 1000, steps={**steps, **answers},
                result=json.loads(status.output) if isinstance(status.output, str) else None))
        return found

    def _is_held(self, run_id: str) -> bool:
        if run_id in self._runs:
            return True
        if not self._held().hold(run_id):
            return True
        self._held().release(run_id)
        return False

    async def send(self, run_id: str, question: str, answer: dict[str, Any]) -> None:
        await _in_thread(partial(self._send, run_id, question, answer))

    def _send(self, run_id: str, question: str, answer: dict[str, Any]) -> None:
        self._ask().update_workflow_attributes(run_id, {ANSWER + question: answer}, merge=True)

    async def prune(self, before: float) -> int:
        return await _in_thread(self._prune, before)

    def _prune(self, before: float) -> int:
        ids = [s.workflow_id for s in self._statuses("", load=False) if s.status in OVER and (s.updated_at or 0) < before * 1000]
        for start in range(0, len(ids), 100):
            self._ask().delete_workflows(ids[start:start + 100])
        used = {s.queue_name for s in self._statuses("", load=False)}
        for queue in self._ask().list_queues(application_name=APPLICATION) if self._there() else ():
            if queue.name.startswith("kernel-") and queue.name not in used:
                self._ask().delete_queue(queue.name)
        return len(ids)

    async def close(self) -> None:
        if not self._runs:
            await _in_thread(self._close)

    def _close(self) -> None:
        if self._listens:
            with suppress(Exception):
                self._ask().delete_queue(self._me)
            self._listens = False
        if self._client is not None:
            self._client.destroy()
            self._client = None
        if self._holder is not None:
            self._holder.close()
            self._holder = None


async def _in_thread(call: Callable[..., T], *args: Any) -> T:
    done: list[T] = []
    with anyio.CancelScope(shield=True):
        done.append(await anyio.to_thread.run_sync(call, *args))
    return done[0]


def _same(value: str) -> str:
    return value

