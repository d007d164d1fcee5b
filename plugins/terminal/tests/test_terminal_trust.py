"""What a folder brings is asked about as what will really run, whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel_terminal import brought, trust
from kernel_terminal.lines import text_of

from kernel import Settings

Put = Callable[[str, Any], None]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))

    def write(name: str, value: Any) -> None:
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return write


def asked(tmp_path: Path) -> str:
    (tmp_path / "project").mkdir(exist_ok=True)
    return "\n".join(text_of(line) for line in trust.question(Settings.load(tmp_path / "project")).body)


def hook(**handler: Any) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [handler]}]}}


def test_a_long_hook_has_no_hidden_end(tmp_path: Path, put: Put) -> None:
    put(".claude/settings.json", hook(type="command", command=f"true {'x' * 3_000}; steal"))
    assert "; steal" in asked(tmp_path) and "not shown" not in asked(tmp_path)


def test_what_is_beyond_the_bounds_is_said_beside_the_choices(tmp_path: Path, put: Put) -> None:
    put(".claude/settings.json", {**hook(type="command", command="x" * 5_000), "env": {f"V{n}": "1" for n in range(60)}})
    shown = asked(tmp_path)
    assert "1,019 more characters of it that are not shown" in shown and "10 more that are not shown" in shown
    last = shown.splitlines()[-1]
    assert "Not all of it is shown" in last and str(tmp_path / "project" / ".claude" / "settings.json") in last


@pytest.mark.parametrize(
    ("handler", "told"),
    [
        ({"type": "command", "command": "echo", "args": ["a b", "$(x)"]}, "echo 'a b' '$(x)'"),
        ({"type": "command", "command": "/bin/sh", "args": ["-c", "steal"], "url": "http://fine"}, "/bin/sh -c steal"),
        ({"type": "http", "url": "http://there?a=b", "command": "echo fine"}, "sends what happens to http://there?a=b"),
        ({"type": "prompt", "prompt": "Is it so?", "command": "echo fine"}, "asks a model: Is it so?"),
        ({"type": "agent", "prompt": "Look"}, "starts an agent: Look"),
        ({"type": "mcp_tool", "server": "s", "tool": "t", "input": [1]}, "calls the tool t of the MCP server s with [1]"),
    ],
)
def test_a_hook_is_told_as_its_type_runs_it(tmp_path: Path, put: Put, handler: dict[str, Any], told: str) -> None:
    put(".claude/settings.json", hook(**handler))
    assert f"    PreToolUse (Bash): {told}" in asked(tmp_path).splitlines()


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ({"type": "stdio", "url": "http://fine", "command": "sh", "args": ["-c", "a b"]}, "runs sh -c 'a b'"),
        ({"url": "http://fine", "command": "sh"}, "runs sh"),
        ({"command": "node", "args": ["x.js"], "env": {"PATH": "bin", "T": "1"}}, "runs node x.js; sets the variables PATH, T"),
        ({"type": "http", "url": "http://there", "command": "fine", "headersHelper": "get"}, "http, http://there; runs get"),
        ({"url": "http://there"}, 'cannot be used: {"url": "http://there"}'),
        (7, "cannot be used: 7"),
    ],
)
def test_a_server_is_told_as_it_is_started(tmp_path: Path, put: Put, entry: Any, told: str) -> None:
    put(".mcp.json", {"mcpServers": {"name": entry}})
    lines = asked(tmp_path).splitlines()
    assert lines[-2:] == ["  MCP servers (asked about one by one):", f"    name: {told}"]


@pytest.mark.parametrize("settings", [{"enableAllProjectMcpServers": True}, {"enabledMcpjsonServers": ["one", "later"]}])
def test_servers_that_nobody_will_ask_about_are_told(tmp_path: Path, put: Put, settings: Any) -> None:
    put(".mcp.json", {"mcpServers": {"one": {"command": "first"}, "two": {"command": "second"}}})
    put(".claude/settings.json", settings)
    found = dict(brought.brought(Settings.load(tmp_path / "project")))
    at_once = found["MCP servers that start without a further question"]
    every = "enableAllProjectMcpServers" in settings
    assert ("one: runs first" in at_once, "two: runs second" in at_once) == (True, every)
    assert ("MCP servers (asked about one by one)" in found) is not every
    assert ("enableAllProjectMcpServers" if every else "later: ") in at_once[-1]


def test_skills_commands_and_agents_that_run_something_are_told(tmp_path: Path, put: Put) -> None:
    put(".claude/skills/a/SKILL.md", "---\nname: a\nallowed-tools: Bash(*)\n---\nText")
    put(".claude/commands/b.md", "Look: !`steal me`\n```!\nand this\n```\n")
    put(".claude/agents/c.md", "---\nname: c\nhooks:\n  Stop:\n  - hooks:\n    - type: command\n      command: run it\n---\nText")
    put(".claude/skills/d/SKILL.md", "---\nname: d\n---\nHarmless: `ls`!")
    lines = asked(tmp_path).splitlines()
    assert lines[1:] == ["  Skills, commands and agents that run something or widen rights:",
                         "    skill a (.claude/skills/a/SKILL.md): allows Bash(*)",
                         "    command b (.claude/commands/b.md): runs steal me; runs and this",
                         "    agent c (.claude/agents/c.md): hook Stop: run it"]


def test_a_folder_without_anything_says_so(tmp_path: Path, put: Put) -> None:
    put(".claude/skills/d/SKILL.md", "---\nname: d\n---\nHarmless.")
    assert "It brings no settings" in asked(tmp_path)
