"""Servers that misbehave, each in its own way: what becomes of them, and that nobody else notices.

They run side by side in three sessions, with a good server in each; limits are short, so that a hang would be seen. Some ninety
processes on a busy machine need room: what is over its limit by less than ``SLACK_S`` is late and does not hang.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from runpy import run_path
from typing import Any

import anyio
import pytest
from kernel_mcp.calls import call_tool
from kernel_mcp.extension import STATE, VIEWS

from kernel import ToolError
from kernel.testing import Kit

PROGRAM = str(Path(__file__).with_name("mcp_bad_server.py"))
MODES: dict[str, Any] = run_path(PROGRAM)["MODES"]
START_S = 12.0
CALL_MS = 3000
CLOSE_S = 8.0
SLACK_S = 20.0

FAILED: dict[str, str] = {
    "exits at once": "exit code 3", "exits at once, without an error": "", "is killed at once": "exit code -9",
    "hangs before it reads": "not ready", "never answers initialize": "not ready", "hangs in initialize": "not ready",
    "dies in initialize": "exit code 7", "sends half an answer and ends": "", "drips an answer for ever": "not ready",
    "floods stdout with noise": "", "closes stdout and lives": "", "closes stdin and lives": "",
    "refuses initialize": "not today", "speaks a version that nobody knows": "1999-01-01", "has a version that is a number": "",
    "answers initialize with a list": "not ready", "answers initialize with null": "not ready", "has no capabilities": "",
    "has capabilities that are text": "", "answers initialize under another id": "not ready", "answers in a batch": "not ready",
    "hangs in tools/list": "not ready", "dies in tools/list": "exit code 7", "refuses tools/list": "no list",
    "lists no tools key": "", "lists null": "", "dies after its lists": "exit code 7",
}
"""Those that cannot be used, and a piece of what is said about them."""

CALLS: dict[str, str] = {
    "hangs in prompts/list": "mcp_timeout",
    "hangs in a call": "mcp_timeout", "dies in a call": "mcp_disconnected", "answers a call under another id": "mcp_timeout",
    "answers with 100 MB": "mcp_protocol: more than 32 MiB", "answers with 100 MB and no end": "mcp_timeout",
    "answers with an error of a megabyte": "mcp_protocol", "answers with content that is text": "mcp_protocol",
    "answers a call with null": "mcp_timeout", "answers with content of an unknown kind": "hologram",
    "answers without content": "",
    "says error without a text": "", "sends an image that is none": "",
    "asks for something that does not exist": "-32601", "asks whether we live": "{}", "asks a person": "cancel",
    "asks for a password": "decline", "asks for a model": "",
}
"""What a call of ``work`` comes to, where it is not "done": the code, or a piece of the text."""

OTHER = {mode for mode in MODES if mode.startswith("has a ") and "version" not in mode} - {
    "has a tool that is text", "has a schema of great depth"} | {
    "has two tools of one name", "has two names that become one", "has annotations that are text"}
"""Those whose second tool is there all the same."""


def entry(mode: str) -> dict[str, Any]:
    """Storms and floods are work and no silence: on a busy machine they may take their time."""
    patient = "times" in mode or "lines" in mode or mode == "answers with 100 MB"
    return {"command": sys.executable, "args": ["-S", "-E", PROGRAM, mode], "timeout": CALL_MS * (8 if patient else 1)}


def living_groups() -> set[int]:
    """The process groups that hold a process which is no zombie."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, group = stat.read_text().rpartition(") ")[2].split()[:3]
            if state != "Z":
                found.add(int(group))
    return found


async def outcome(link: Any, name: str = "work") -> str:
    try:
        result = await call_tool(link, name, {})
    except ToolError as error:
        return f"{error.code}: {error}"
    return " ".join(getattr(block, "text", block.type) for block in result.content)


async def session_with(folder: Path, modes: list[str]) -> dict[str, dict[str, Any]]:
    """One session with these servers and a good one; what became of each."""
    import json

    folder.mkdir(parents=True)
    config = {"mcpServers": {**{f"s{n}": entry(mode) for n, mode in enumerate(modes)}, "good": entry("answers initialize late")}}
    kit = Kit(folder, installed=["mcp"], extra={"mcp_config": [json.dumps(config)]})
    session = kit.open()
    began = time.monotonic()
    await session.start()
    start_s = time.monotonic() - began
    bridge = session.plugin_state[STATE]
    await bridge.wait(START_S * 2)
    for view in session.plugin_state[VIEWS]:
        view.sync()
    await anyio.sleep(0.3)  # "dies after its lists" has died by then
    found: dict[str, dict[str, Any]] = {}
    waits: list[float] = []

    async def one(number: int, mode: str) -> None:
        link = bridge.links[f"s{number}"]
        status, error = link.status, link.error
        began = time.monotonic()
        said = await outcome(link)
        took = time.monotonic() - began
        names = [t.name for t in link.lists.tools]
        found[mode] = {"status": status, "error": error, "call": said, "took": took, "names": names, "start": start_s,
                       "tools": [n for n in session.toolbox.by_name if n.startswith(f"mcp__s{number}__")]}

    async def good() -> None:
        for _ in range(10):
            began = time.monotonic()
            assert await outcome(bridge.links["good"]) == "done"
            waits.append(time.monotonic() - began)

    async with anyio.create_task_group() as group:
        group.start_soon(good)
        for number, mode in enumerate(modes):
            group.start_soon(one, number, mode)
    pids = [link.child.process.pid for link in bridge.links.values() if link.child is not None]
    began = time.monotonic()
    await session.close()
    for facts in found.values():
        facts.update(close=time.monotonic() - began, good=max(waits), groups=pids)
    return found


async def side_by_side(folder: Path, parts: list[list[str]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}

    async def one(number: int, modes: list[str]) -> None:
        found.update(await session_with(folder / str(number), modes))

    async with anyio.create_task_group() as group:
        for number, modes in enumerate(parts):
            group.start_soon(one, number, modes)
    return found


@pytest.fixture(scope="module")
def all_of_them(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    patch = pytest.MonkeyPatch()
    patch.setenv("MCP_TIMEOUT", str(int(START_S * 1000)))
    patch.setenv("ENABLE_TOOL_SEARCH", "false")
    patch.setenv("MCP_CONNECT_TIMEOUT_MS", "1000")
    modes = list(MODES)
    try:
        return anyio.run(side_by_side, tmp_path_factory.mktemp("bad"), [modes[part::3] for part in range(3)])
    finally:
        patch.undo()


def test_there_are_at_least_sixty_of_them() -> None:
    assert len(MODES) >= 60


@pytest.mark.parametrize("mode", list(MODES))
def test_a_bad_server_is_contained(all_of_them: dict[str, dict[str, Any]], mode: str) -> None:
    """It is what the table says; start, call and end stay within their limits; the good server answers in between."""
    facts = all_of_them[mode]
    assert facts["start"] < START_S + SLACK_S, "the start waited longer than its limit"
    assert facts["took"] < entry(mode)["timeout"] / 1000 + SLACK_S, "a call waited longer than its limit"
    assert facts["close"] < CLOSE_S + SLACK_S, "the end waited longer than its limit"
    assert facts["good"] < SLACK_S, "the good server was held up"
    if mode in FAILED:
        assert facts["status"] == "failed" and FAILED[mode] in facts["error"], facts
        assert facts["call"].startswith("mcp_disconnected"), facts
        return
    assert facts["status"] == "connected", facts
    code, _, piece = CALLS.get(mode, "done").partition(": ")
    assert code in facts["call"] and piece in facts["call"], facts["call"][:500]
    assert len(facts["call"]) < 1_100_000
    if mode in OTHER:
        assert any(name.endswith("__other") for name in facts["tools"]), facts["names"][:5]


def test_nothing_of_them_is_left(all_of_them: dict[str, dict[str, Any]]) -> None:
    """Every process group is gone with its session, also where a server ignored every request to end."""
    groups = {p for facts in all_of_them.values() for p in facts["groups"]}
    assert len(groups) > 60
    assert not groups & living_groups()


def test_lists_have_an_end(all_of_them: dict[str, dict[str, Any]]) -> None:
    assert len(all_of_them["pages without end"]["names"]) == 100
    assert len(all_of_them["pages in a circle"]["names"]) <= 3
    assert len(all_of_them["has 11,000 tools"]["names"]) == 10_000


def test_names_are_made_fit(all_of_them: dict[str, dict[str, Any]]) -> None:
    assert all(len(n) <= 64 for facts in all_of_them.values() for n in facts["tools"])
    assert len([n for n in all_of_them["has two names that become one"]["tools"] if n.endswith("__a_b")]) == 1
    assert len([n for n in all_of_them["has two tools of one name"]["tools"] if n.endswith("__other")]) == 1
