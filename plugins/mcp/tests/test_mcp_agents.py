"""Subagents share the connections of the session, and may bring servers of their own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kernel.testing import call, text

if TYPE_CHECKING:
    from conftest import Bench

PROGRAM = str(Path(__file__).with_name("mcp_good_server.py"))


def agent(folder: Path, **fields: Any) -> None:
    """A definition in the project."""
    place = folder / ".claude" / "agents"
    place.mkdir(parents=True)
    lines = [f"{key}: {json.dumps(value)}" for key, value in {"name": "helper", "description": "Helps.", **fields}.items()]
    (place / "helper.md").write_text("---\n" + "\n".join(lines) + "\n---\nYou help.\n")


def starting(**more: Any) -> Any:
    return call("Agent", "a1", description="help", prompt="help", subagent_type="helper", run_in_background=False, **more)


def test_a_subagent_calls_a_servers_tool(bench: Bench, tmp_path: Path) -> None:
    agent(tmp_path)
    done = bench.run(bench.kit(starting(), call("mcp__good__echo", "c1", text="from the agent"), text("ok"), text("done"),
                               installed=("subagents",)))
    assert done.result_of("c1")["content"] == "from the agent"
    assert any(t["name"] == "mcp__good__echo" for t in done.requests[1]["tools"])


def test_a_subagent_starts_with_nothing_loaded(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "true")
    agent(tmp_path)
    done = bench.run(bench.kit(call("ToolSearch", "s1", query="select:mcp__good__echo"), starting(), text("ok"), text("done"),
                               installed=("subagents", "tools-user")))
    mine = [[t["name"] for t in r["tools"] if t["name"].startswith("mcp__")] for r in done.requests]
    assert mine[1] == ["mcp__good__always", "mcp__good__echo"] and mine[2] == ["mcp__good__always"]


@pytest.mark.parametrize(("tools", "offered"), [
    ("mcp__good__echo", ["mcp__good__echo"]), ("mcp__good", None), ("Read", []), ("mcp__good__echo, ToolSearch", ["ToolSearch"])])
def test_the_tools_of_a_definition_hold_for_servers_too(tools: str, offered: list[str] | None, bench: Bench, tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ToolSearch in its list nothing is deferred for an agent: it could not load it."""
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "true")
    agent(tmp_path, tools=tools)
    done = bench.run(bench.kit(starting(), call("mcp__good__echo", "c1", text="inside"), text("ok"), text("done"),
                               installed=("subagents", "tools-user", "tools-files")))
    names = [t["name"] for t in done.requests[1]["tools"]]
    if offered is None:
        assert len(names) > 5 and all(n.startswith("mcp__good__") for n in names)
    else:
        assert [n for n in names if n != "Read"] == offered
    assert ("No such tool" in str(done.result_of("c1")["content"])) is (tools == "Read")


def test_a_server_of_a_definition_lives_as_long_as_its_agent(bench: Bench, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    entry = {"command": "/bin/sh", "args": ["-c", f"echo $$ > {pid}; exec {sys.executable} -S -E {PROGRAM}"]}
    agent(tmp_path, mcpServers=["good", {"own": entry}])
    done = bench.run(bench.kit(starting(), call("mcp__own__echo", "c1", text="mine"), text("ok"), text("done"),
                               installed=("subagents",)))
    assert done.result_of("c1")["content"] == "mine"
    assert not any(t["name"].startswith("mcp__own__") for t in done.requests[-1]["tools"])
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


@pytest.mark.parametrize(("trusted", "strict", "there"), [(True, False, True), (False, False, False), (True, True, False)])
def test_servers_of_the_main_agent_come_with_its_first_prompt(trusted: bool, strict: bool, there: bool, bench: Bench,
                                                              tmp_path: Path) -> None:
    """A project's wait for trust; ``--strict-mcp-config`` holds for them, too."""
    agent(tmp_path, mcpServers=[{"own": {"command": sys.executable, "args": ["-S", "-E", PROGRAM]}}])
    kit = bench.kit(text("done"), installed=("subagents",), extra={"agent": "helper", "strict_mcp_config": strict})
    kit.harness.settings.trusted = trusted
    done = bench.run(kit)
    assert any(t["name"].startswith("mcp__own__") for t in done.requests[0]["tools"]) is there


def test_a_persons_own_agent_brings_its_servers_into_any_folder(bench: Bench, tmp_path: Path) -> None:
    kit = bench.kit(starting(), text("ok"), text("done"), installed=("subagents",))
    kit.harness.settings.trusted = False
    agent(kit.harness.settings.config_dir, mcpServers=[{"own": {"command": sys.executable, "args": ["-S", "-E", PROGRAM]}}])
    (kit.harness.settings.config_dir / ".claude/agents").rename(kit.harness.settings.config_dir / "agents")
    done = bench.run(kit)
    assert any(t["name"].startswith("mcp__own__") for t in done.requests[1]["tools"])
