"""Seats on a Ray cluster: an actor each, which holds a worker of its node. Ray places them, watches them and carries the jobs."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

import msgspec

from kernel import UsageError
from kernel_fleet.seats import Seat, WorkerDied, environment
from kernel_fleet.worker import Ended, Job

LOCAL = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "XDG_")
"""What a node has of its own, and is not taken along from here."""


class Remote:
    """The actor. Its worker ends with it."""

    def __init__(self, taken_along: dict[str, str]) -> None:
        from kernel_fleet.seats import LocalSeat

        self._seat = LocalSeat({**environment([]), **taken_along})

    def run(self, job: bytes) -> tuple[bytes, str]:
        """The answer, or why the worker died."""
        try:
            return msgspec.json.encode(self._seat.run(msgspec.json.decode(job, type=Job))), ""
        except WorkerDied as error:
            return b"", str(error)

    def stop(self) -> None:
        self._seat.stop()

    def place(self) -> tuple[str, int]:
        """Node id and process id."""
        import ray

        return ray.get_runtime_context().get_node_id(), os.getpid()


class RaySeat:
    """One CPU of the cluster."""

    def __init__(self, taken_along: dict[str, str]) -> None:
        self._taken_along = taken_along
        self._actor: Any = None
        self._stopped = False
        self._lock = threading.Lock()

    def start(self) -> Any:
        """The actor; a new one where there is none. Ray starts it when a CPU is free."""
        import ray

        with self._lock:
            if self._actor is None and not self._stopped:
                made = ray.remote(Remote).options(num_cpus=1, max_restarts=0, max_concurrency=3, scheduling_strategy="SPREAD")
                self._actor = made.remote(self._taken_along)
            return self._actor

    def run(self, job: Job) -> Ended:
        import ray

        actor = self.start()
        if actor is None:
            return Ended(stopped=True)
        try:
            answer, died = ray.get(actor.run.remote(msgspec.json.encode(job)))
        except ray.exceptions.RayError as error:
            self._actor = None
            if self._stopped:
                return Ended(stopped=True)
            raise WorkerDied(f"Ray: {type(error).__name__}: {str(error).strip().splitlines()[0]}") from None
        if died:
            raise WorkerDied(died)
        return msgspec.json.decode(answer, type=Ended)

    def stop(self) -> None:
        import ray

        with self._lock:
            self._stopped, actor = True, self._actor
        if actor is not None:
            with suppress(ray.exceptions.RayError):
                ray.get(actor.stop.remote(), timeout=15)
            with suppress(Exception):
                ray.kill(actor)


class OnRay:
    """A cluster that runs, by its address, or one of this machine alone."""

    name = "ray"

    def __init__(self, named: list[str], address: str | None) -> None:
        self._taken_along = {k: v for k, v in environment(named).items() if not k.startswith(LOCAL) or k in named}
        self._address = address
        self._seats: list[RaySeat] = []

    def open(self, count: int | None) -> list[Seat]:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError:
            raise UsageError("--executor ray needs Ray", hint="pip install 'kernel-fleet[ray]'") from None
        if not ray.is_initialized():
            own: dict[str, Any] = {"address": self._address} if self._address else {"num_cpus": count, "include_dashboard": False}
            try:
                ray.init(log_to_driver=False, logging_level="ERROR", configure_logging=True, namespace="kernel-fleet", **own)
            except (ConnectionError, ValueError, RuntimeError, OSError) as error:
                raise UsageError(f"no Ray cluster: {error}", context="kernel fleet run --address",
                                 hint="ray start --head starts one") from None
        wanted = count or int(ray.cluster_resources().get("CPU", 0)) or 1
        self._seats = [RaySeat(self._taken_along) for _ in range(wanted)]
        return [*self._seats]

    def close(self) -> None:
        import ray

        for seat in self._seats:
            seat.stop()
        ray.shutdown()
