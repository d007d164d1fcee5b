"""``kernel context show``: every part of the first request, with its size and source; nothing is sent (issue of this plugin)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .memory_place import write


@pytest.fixture
def project(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    write(work, "CLAUDE.md", "Project word.\n@more.md\n")
    write(work, "more.md", "More.\n")
    write(work, ".claude/skills/s/SKILL.md", "---\ndescription: Does s.\n---\nStep.\n")
    write(work, ".claude/settings.json", json.dumps({"hooks": {"SessionStart": [{"hooks": [
        {"type": "command", "command": f"touch {tmp_path}/hook-ran; echo Hook word."}]}]}}))
    write(tmp_path, "home/.claude/CLAUDE.md", "User word.\n")
    server = f"import sys, json\nopen({str(tmp_path / 'server-ran')!r}, 'w')\n" + SERVER
    write(tmp_path, "server.py", server)
    write(tmp_path, "home/.claude.json", json.dumps({"mcpServers": {"small": {
        "command": sys.executable, "args": [str(tmp_path / "server.py")]}}}))
    return work


SERVER = """
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    result = {"initialize": {"protocolVersion": asked.get("params", {}).get("protocolVersion"), "capabilities": {"tools": {}},
                             "serverInfo": {"name": "small", "version": "1"}},
              "tools/list": {"tools": [{"name": "peek", "description": "Peeks.", "inputSchema": {"type": "object"}}]}}
    method = asked["method"]
    answer = {"result": result[method]} if method in result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def show(project: Path, *args: str, url: str = "http://127.0.0.1:9") -> subprocess.CompletedProcess[str]:
    """The real command. The address of the model leads nowhere: a request would fail and be seen."""
    environment = {"HOME": str(project.parent / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ANTHROPIC_API_KEY": "k",
                   "ANTHROPIC_BASE_URL": url, "CLAUDE_CODE_MAX_RETRIES": "0", "ENABLE_TOOL_SEARCH": "0"}
    return subprocess.run([sys.executable, "-m", "kernel", "context", "show", *args], cwd=project, env=environment, check=False,
                          capture_output=True, text=True, timeout=120)


def parts(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["parts"]
    return found


def test_every_part_is_there_with_its_source_and_the_sizes_add_up(project: Path, tmp_path: Path) -> None:
    done = show(project, "--json", "Hello there.")
    found = parts(done)
    by = {(p["group"], p["name"]): p for p in found}
    assert by["system, fixed", "role"]["source"] == "kernel" and by["system, fixed", "Bash"]["source"] == "tools-shell"
    assert by["system, this session", "memory"]["source"] == "memory" and by["tools", "Agent"]["source"] == "subagents"
    files = [p["file"] for p in found if p["file"]]
    assert files == [str(tmp_path / "home/.claude/CLAUDE.md"), str(project / "more.md"), str(project / "CLAUDE.md")]
    sources = [p["source"] for p in found if p["group"] == "first message"]
    assert "skills" in sources and "subagents" in sources
    prompt = found[-1]
    assert (prompt["name"], prompt["characters"], prompt["tokens"]) == ("prompt", 12, 3)
    whole = json.loads(done.stdout)
    assert whole["tokens"] == sum(p["tokens"] for p in found) and whole["characters"] == sum(p["characters"] for p in found)
    assert whole["ended"] == "" and all("text" not in p for p in found)


def test_nothing_is_sent_kept_or_run_but_servers(project: Path, tmp_path: Path) -> None:
    done = show(project)
    assert done.returncode == 0 and "no request would be sent" not in done.stdout
    assert not list((tmp_path / "home/.claude").rglob("*.jsonl")) and not (tmp_path / "hook-ran").exists()
    with_hooks = show(project, "--hooks", "--full")
    assert (tmp_path / "hook-ran").exists() and "Hook word." in with_hooks.stdout and "Project word." in with_hooks.stdout


def test_mcp_tools_stand_with_their_server_or_are_known_by_name(project: Path) -> None:
    whole = json.loads(show(project, "--json").stdout)
    shown = {p["name"]: p["source"] for p in whole["parts"] if p["group"] == "tools"}
    assert shown.get("mcp__small__peek") == "MCP server small" or "mcp__small__peek" in whole["later"]


def test_what_a_person_must_see_is_on_stderr(project: Path, tmp_path: Path) -> None:
    write(tmp_path, "server.py", "raise SystemExit(3)\n")
    write(project, "CLAUDE.md", b"\0")
    done = show(project)
    assert done.returncode == 0 and "small" in done.stderr and "is binary" in done.stderr


def test_what_asks_no_model_says_so_and_wrong_usage_is_two(project: Path) -> None:
    assert show(project, "--nonsense").returncode == 2
    table = show(project, "--block", "skills", "--block", "mcp").stdout
    assert "in all" in table and "skills " not in table.split("first message")[1]


def test_the_model_is_not_asked_when_a_skill_changes_it(project: Path) -> None:
    """A skill may switch to another model before the request; that one is not asked either."""
    write(project, ".claude/skills/m/SKILL.md", "---\ndescription: d\nmodel: haiku\n---\nSkill word.\n")
    done = show(project, "--json", "--full", "/m")
    assert any("Skill word." in p["text"] for p in parts(done)) and json.loads(done.stdout)["ended"] == ""
