"""The same without an event loop: in a thread of its own, inside a running loop, closed with the program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_embed import Interrupted, TurnFailed, tool

from kernel import ResultMessage, UsageError
from kernel.testing import call, text

Make = Callable[..., Any]


def test_ask_stream_and_text(scripted: Make) -> None:
    agent, _ = scripted(text("one"), text("two"), [text("three"), call("nothing")], text("four"))
    with agent.sync() as sync:
        assert sync.ask("a").text == "one"
        turn = sync.stream("b")
        assert isinstance(list(turn)[-1], ResultMessage) and turn.reply().text == "two"
        assert "".join(sync.stream("c").text_stream) == "three\n\nfour"
        sync.set_model("scripted:other")
        assert sync.settle() == [] and not sync.interrupt() and sync.session_id == sync.session.id
    sync.close()
    with pytest.raises(UsageError, match="closed"):
        sync.ask("more")


def test_failures_reach_the_caller(scripted: Make) -> None:
    agent, _ = scripted(call("nothing"), call("nothing"), max_turns=1)
    with agent.sync() as sync, pytest.raises(TurnFailed, match="maximum number"):
        list(sync.stream("a"))
    agent, _ = scripted(model="scriptet:any")
    with pytest.raises(UsageError, match="did you mean"):
        agent.sync()


def test_another_thread_interrupts(scripted: Make) -> None:
    entered = threading.Event()

    @tool(permission="free")
    async def wait_long() -> str:
        """Waits."""
        entered.set()
        await anyio.sleep_forever()
        return ""

    agent, _ = scripted(call("wait_long"), text("and on"), tools=[wait_long])
    with agent.sync() as sync:
        def interrupt() -> None:
            entered.wait(20)
            sync.interrupt()

        threading.Thread(target=interrupt).start()
        with pytest.raises(Interrupted):
            sync.ask("go")
        assert sync.ask("go on").text == "and on"
        with sync.stream("left early") as turn:
            next(turn)


def test_it_works_where_a_loop_runs_already(scripted: Make) -> None:
    """As in a notebook: the cell is a coroutine's frame, and blocks."""
    async def cell() -> str:
        agent, _ = scripted(text("from inside"))
        with agent.sync() as sync:
            answer: str = sync.ask("go").text
        return answer

    assert anyio.run(cell) == "from inside"


PROGRAM = """
import sys
from kernel_embed import Agent, hook, tool

@hook("SessionEnd")
def ended(event):
    print("ended", flush=True)

@tool(permission="free")
def sleep_long() -> str:
    "Sleeps in a thread."
    import time
    print("asleep", flush=True)
    time.sleep(0 if "short" in sys.argv else 3)
    return "awake"

agent = Agent(model="script:script.yaml", tools=[sleep_long], hooks=[ended], persist=False).sync()
try:
    print(agent.ask("go").text, flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    print(agent.ask("go on").text, flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    (tmp_path / "script.yaml").write_text("turns:\n  - calls: [{tool: sleep_long}]\n  - {text: done, repeat: true}\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    return [sys.executable, "program.py"]


def environment(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def test_a_program_that_closes_nothing_ends_and_closes_it(program: list[str], tmp_path: Path) -> None:
    done = subprocess.run([*program, "short"], cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.split() == ["asleep", "done", "ended"], done.stderr


def test_ctrl_c_interrupts_the_turn_and_the_agent_goes_on(program: list[str], tmp_path: Path) -> None:
    with subprocess.Popen(program, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "asleep\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().split() == ["interrupted", "done", "ended"]
    assert process.returncode == 0
