"""``kernel mcp ...`` through the public door, and the harness as a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_mcp.command import McpCommand

from kernel.testing import Kit

PROGRAM = str(Path(__file__).with_name("mcp_good_server.py"))


class Place:
    """A project and a home; commands run in it."""

    def __init__(self, root: Path) -> None:
        self.cwd = root / "project"
        self.config = root / "config"
        self.cwd.mkdir()
        self.config.mkdir()
        self.env = {**os.environ, "CLAUDE_CONFIG_DIR": str(self.config), "NO_COLOR": "1"}

    def run(self, *args: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "kernel", "mcp", *args],
            cwd=self.cwd,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    @property
    def global_config(self) -> Any:
        return json.loads((self.config / ".claude.json").read_text())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_servers_are_added_listed_and_removed(place: Place) -> None:
    """The life of an entry in every scope; keys that we do not know stay."""
    (place.config / ".claude.json").write_text(json.dumps({"theirs": [1], "mcpServers": {"old": {"command": "x"}}}))
    assert place.run("add", "good", "-e", "A=b=c", "--", sys.executable, "-S", PROGRAM, "--tools", "1")[0] == 0
    assert place.run("add", "-t", "http", "-s", "user", "-H", "X-Key: a: b", "web", "http://127.0.0.1:9/mcp?key=s3cret")[0] == 0
    assert place.run("add-json", "shared", '{"command": "no-such-program"}', "-s", "project")[0] == 0
    config = place.global_config
    mine = config["projects"][str(place.cwd)]["mcpServers"]["good"]
    assert config["theirs"] == [1] and mine["args"] == ["-S", PROGRAM, "--tools", "1"] and mine["env"] == {"A": "b=c"}
    assert config["mcpServers"]["web"]["headers"] == {"X-Key": "a: b"} and "old" in config["mcpServers"]

    code, out, _ = place.run("list")
    assert code == 1 and "good (local)" in out and "- connected" in out and "web (user): http://127.0.0.1:9/mcp" in out
    assert "failed: ConnectError" in out
    undecided = "shared (project): no-such-program - pending approval: an interactive session asks first, kernel -p "
    assert f"{undecided}connects it without asking" in out
    (place.config / "settings.json").write_text('{"kernel": {"mcp": {"require_approval_in_print_mode": true}}}')
    assert f"{undecided}leaves it out" in place.run("get", "shared", "--no-check")[1]
    assert "s3cret" not in out and "b=c" not in out and "a: b" not in out
    code, out, _ = place.run("get", "good", "--json")
    assert code == 0 and "extra_0" in json.loads(out)[0]["tools"] and json.loads(out)[0]["config"]["env"] == {"A": "***"}

    assert place.run("remove", "web")[0] == place.run("remove", "good")[0] == place.run("remove", "shared")[0] == 0
    assert "web" not in place.global_config["mcpServers"] and json.loads((place.cwd / ".mcp.json").read_text()) == {
        "mcpServers": {}
    }


@pytest.mark.parametrize(
    ("args", "code", "piece"),
    [
        (("add", "a b", "http://x"), 2, "no name for a server"),
        (("add", "workspace", "http://x"), 2, "reserved"),
        (("add", "s", "-s", "planet", "http://x"), 2, "expected one of local, project, user"),
        (("add", "s", "-t", "ws", "ws://x"), 2, "expected one of stdio"),
        (("add", "s", "-t", "stdio", "http://x"), 2, "is an address"),
        (("add", "s", "-t", "http", "cmd"), 2, "is no address"),
        (("add", "s", "-e", "NAME", "--", "cmd"), 2, "expected NAME=VALUE"),
        (("add", "s", "-H", "a: b", "--", "cmd"), 2, "--header is for"),
        (("add", "s", "-e", "A=b", "http://x"), 2, "--env is for"),
        (("add-json", "s", "{"), 2, "not valid JSON"),
        (("add-json", "s", '{"url": "http://x"}'), 2, 'needs "type"'),
        (("remove", "s"), 1, "there is no MCP server 's'"),
        (("get", "s"), 1, "there is no MCP server 's'"),
        (("login", "s"), 1, "there is no MCP server 's'"),
        (("nonsense",), 2, "nonsense"),
        (("add", "s"), 2, "target"),
    ],
)
def test_what_cannot_be_done_is_said(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], code: int,
    piece: str,
) -> None:
    monkeypatch.chdir(place.cwd)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place.config))
    assert McpCommand().run(list(args)) == code
    assert piece in capsys.readouterr().err


def test_a_name_is_added_once_in_a_scope(place: Place) -> None:
    assert place.run("add", "s", "http://x")[0] == 0 and place.run("add", "s", "-s", "user", "http://x")[0] == 0
    code, _, error = place.run("add", "s", "http://y")
    assert code == 1 and "already" in error
    code, _, error = place.run("remove", "s")
    assert code == 2 and "local, user" in error
    assert place.run("remove", "s", "-s", "user")[0] == 0


def test_a_broken_config_is_left_as_it_is(place: Place) -> None:
    (place.cwd / ".mcp.json").write_text("{ broken")
    code, _, error = place.run("add", "s", "-s", "project", "http://x")
    assert code == 2 and "not valid JSON" in error and (place.cwd / ".mcp.json").read_text() == "{ broken"


def test_choices_about_the_projects_servers_are_forgotten(place: Place) -> None:
    local = place.cwd / ".claude" / "settings.local.json"
    local.parent.mkdir()
    local.write_text(json.dumps({"enabledMcpjsonServers": ["a"], "disabledMcpjsonServers": ["b"], "model": "x"}))
    assert place.run("reset-project-choices")[0] == 0 and json.loads(local.read_text()) == {"model": "x"}


def test_many_writers_lose_nothing(place: Place) -> None:
    """Eight commands at once; every entry is there afterwards."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "kernel", "mcp", "add", f"s{n}", "-s", "user", f"http://x/{n}"],
            cwd=place.cwd,
            env=place.env,
            stdout=subprocess.DEVNULL,
        )
        for n in range(8)
    ]
    assert [p.wait(60) for p in started] == [0] * 8
    assert set(place.global_config["mcpServers"]) == {f"s{n}" for n in range(8)}
    assert (place.config / ".claude.json").stat().st_mode & 0o777 == 0o600


def test_the_harness_is_a_server_with_the_same_gates(place: Place) -> None:
    """Another session of ours uses it: a read inside the folder is free, a write is refused, a rule allows it."""
    (place.cwd / "note.txt").write_text("hello from a file")

    async def use(*flags: str) -> list[tuple[str, bool]]:
        entry = {
            "command": sys.executable,
            "args": ["-m", "kernel", "mcp", "serve", *flags],
            "env": {"CLAUDE_CONFIG_DIR": str(place.config)},
        }
        made = Kit(place.cwd, installed=["mcp"], extra={"mcp_config": [json.dumps({"mcpServers": {"self": entry}})]})
        session = made.open()
        await session.start()
        bridge = session.plugin_state["mcp"]
        assert bridge.status() == [{"name": "self", "status": "connected"}], bridge.report()
        path = str(place.cwd / "new.txt")
        said = [
            await bridge.call("self", "Read", {"file_path": str(place.cwd / "note.txt")}),
            await bridge.call("self", "Write", {"file_path": path, "content": "x"}),
            await bridge.call("self", "Nothing", {}),
        ]
        await session.close()
        return said

    read, write, nothing = anyio.run(use)
    assert "hello from a file" in read[0] and not read[1]
    assert write[1] and "Permission to use Write was not given" in write[0] and not (place.cwd / "new.txt").exists()
    assert nothing[1] and "No such tool" in nothing[0]
    assert anyio.run(use, "--allowedTools", "Write")[1][1] is False and (place.cwd / "new.txt").read_text() == "x"


def test_nothing_heavy_is_imported_without_a_server(place: Place) -> None:
    """A run without servers pays for no package of the protocol."""
    code = (
        "import sys, anyio; from pathlib import Path; from kernel.testing import Kit, text\n"
        "async def main():\n"
        "    session = Kit(Path.cwd(), [text('done')], installed=['mcp']).open()\n"
        "    await session.start(); await session.close()\n"
        "anyio.run(main)\n"
        "heavy = 'mcp', 'mcp_types', 'pydantic', 'httpx2', 'kernel_mcp.bridge', 'kernel_mcp.link'\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=place.cwd, env=place.env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
