"""A KeyboardInterrupt in a tool: a person's ends the run, a tool's own fails the call."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from kernel.interrupt import by_signal
from kernel.testing import Kit, call, text


def interrupts(*_: Any) -> None:
    raise KeyboardInterrupt("mine")


def test_a_tool_that_raises_it_fails_its_call_and_no_more(tmp_path: Path, probe: Any) -> None:
    async def main() -> Any:
        return await Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=interrupts)]).run("go")

    run = asyncio.run(main())
    block = run.result_of("call_1")
    assert block["is_error"] and "KeyboardInterrupt" in block["content"] and run.result.result == "done"


def test_a_real_one_ends_the_run(tmp_path: Path, probe: Any) -> None:
    """The second SIGINT under ``asyncio.Runner`` raises at once, in whatever runs."""
    def kill(*_: Any) -> str:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        return "not reached"

    async def main() -> Any:
        return await Kit(tmp_path, [call("Probe"), text("done")], tools=[probe(run=kill)]).run("go")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it from the start
    try:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(main())
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("handler", "expected"), [
    (signal.default_int_handler, True), (signal.SIG_IGN, False), (lambda *_: None, False)])
def test_what_cannot_be_told_counts_as_real(handler: Any, expected: bool) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            interrupts()
        assert by_signal(caught.value) is expected
    finally:
        signal.signal(signal.SIGINT, before)


def test_one_that_a_handler_raised_is_real() -> None:
    before = signal.signal(signal.SIGINT, interrupts)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            os.kill(os.getpid(), signal.SIGINT)
        assert by_signal(caught.value)
    finally:
        signal.signal(signal.SIGINT, before)
