"""A session's start and end: what a person must know is said, and what was put is exported before the process ends."""

from __future__ import annotations

from functools import partial
from typing import Any

from kernel import Extension, Session
from kernel_telemetry.recorder import STATE, quietly


class Life(Extension):
    """Says what turns out not to be exported, and flushes at the end, within the limit."""

    name = "telemetry"

    async def before_prompt(self, session: Session) -> None:
        _say(session)

    async def close(self, session: Session) -> None:
        watch = _watch(session)
        if watch is None:
            return
        quietly(session, watch.asks.give_up)
        quietly(session, watch.calls.cancel)
        if session.parent is not None:
            return
        import anyio

        switches, pipeline = watch.recorder.switches, watch.recorder.pipeline
        seconds = (switches.shutdown_ms if session.options.print_mode else switches.flush_ms) / 1000
        pipeline.users -= 1
        flush = partial(pipeline.flush, seconds, last=pipeline.users <= 0)
        done = await anyio.to_thread.run_sync(flush, abandon_on_cancel=True)
        if not done:
            session.debug(f"telemetry: not everything was exported within {seconds:g} s")
        _say(session)


def _watch(session: Session) -> Any:
    return session.plugin_state.get(STATE)


def _say(session: Session) -> None:
    """What the pipeline's thread found out meanwhile, on stderr in print mode."""
    watch = _watch(session)
    failures = watch.recorder.pipeline.failures if watch is not None and session.parent is None else []
    while failures:
        session.harness.announce(failures.pop(0))
