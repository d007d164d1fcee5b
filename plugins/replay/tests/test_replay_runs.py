"""Runs of the real command with its real plugins, recorded and replayed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel_replay.recording import RecordingError, load
from kernel_replay.setting import surroundings

from kernel.testing import installed

from .conftest import Place, call, needs
from .test_replay_file import summed

pytestmark = needs
BYPASS = ("--permission-mode", "bypassPermissions")
HOOK = """
import json, sys
event = json.load(sys.stdin)
print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "%s",
                                         "permissionDecisionReason": "because of " + event["tool_name"]}}))
"""


def hook(place: Place, answer: str) -> dict[str, Any]:
    (place.root / "hook.py").write_text(HOOK % answer)
    return {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
        {"type": "command", "command": f"{sys.executable} -S {place.root}/hook.py"}]}]}}


def same(report: Any, lines: list[str]) -> Any:
    assert report.difference is None, "\n".join(report.difference.lines())
    assert [line.decode() for line in report.lines] == lines
    assert report.events == report.of
    return report


def test_what_was_written_is_written_again(place: Place, again: Callable[..., Any]) -> None:
    place.script({"text": "I look.", "calls": [call("Read", file_path="a.txt"), call("Bash", command="date +%N; echo $RANDOM")]},
                 {"fail": {"status": 529}}, {"calls": [call("Bash", command="echo later", run_in_background=True)]},
                 {"text": "Done."})
    path, lines = place.record("go", *BYPASS)
    (place.root / "a.txt").unlink()                      # nothing is read again
    (place.home / "projects").rename(place.home / "gone")
    report = same(again(path), lines)
    assert report.requests == 4
    assert not (place.home / "projects").exists() and not (place.root / "a.txt").exists()


def test_the_command(place: Place) -> None:
    place.script({"text": "Hello."})
    path, lines = place.record("go")
    assert place.kernel("replay", str(path), "--output").splitlines() == lines
    told = json.loads(place.kernel("replay", str(path), "--json"))
    assert told["equal"] and told["events"] == told["of"] and told["difference"] is None
    assert "cut" in place.kernel("replay", str(path), "--json", "--until", "4")
    assert place.kernel("replay", str(path), "--block", "tools-user", code=1).splitlines()[0] == "plugin tools-user is not there"
    assert "unusable" in json.loads(place.kernel("replay", str(place.root / "a.txt"), "--json", code=2))
    place.kernel("-p", "go", "--model", "script:talk.yaml", "--record", str(path), code=1)  # never over another one


def test_a_hook_that_was_changed_is_asked_and_named(place: Place, again: Callable[..., Any]) -> None:
    place.script({"calls": [call("Bash", "c1", command="echo one")]}, {"text": "Done."})
    place.settings(**hook(place, "allow"))
    path, lines = place.record("go")
    same(again(path), lines)
    place.settings(**hook(place, "deny"))
    same(again(path), lines)  # the script of the hook is no part of the settings: it is not asked
    report = again(path, live=["hooks"])
    assert report.difference.plugin == "command-hooks" and report.difference.wire()["step"] == "hooks of PreToolUse c1"
    assert report.difference.expected == "allow" and report.difference.got == "deny"
    place.settings(**{**hook(place, "deny"), "hooks": {"PreToolUse": [{"matcher": "Ba.*", "hooks": [
        {"type": "command", "command": f"{sys.executable} -S {place.root}/hook.py"}]}]}})
    report = same(again(path), lines)  # other settings: said, and nothing is run for it
    assert "command-hooks differs" in report.changed and any("command-hooks has changed" in n for n in report.notes)


def test_a_rule_that_was_changed_is_named(place: Place, again: Callable[..., Any]) -> None:
    place.script({"calls": [call("Bash", "c1", command="echo one")]}, {"text": "Done."})
    place.settings(permissions={"allow": ["Bash(echo *)"]})
    path, lines = place.record("go")
    same(again(path), lines)
    place.settings(permissions={"allow": ["Bash(echo *)"], "deny": ["Bash(echo one)"]})
    report = again(path)
    assert report.difference.plugin == "permissions" and report.difference.wire()["step"] == "permission decision on Bash c1"
    assert (report.difference.path, report.difference.got) == ("$.result.behavior", "deny")


def test_instructions_that_were_changed_are_seen_where_they_are_asked_for(place: Place, again: Callable[..., Any]) -> None:
    if not installed("memory"):
        pytest.skip("needs the plugin memory")
    (place.root / "CLAUDE.md").write_text("Be brief.\n")
    place.script({"text": "Done."})
    path, lines = place.record("go")
    (place.root / "CLAUDE.md").write_text("Be long.\n")
    same(again(path), lines)
    report = again(path, live=["parts"])
    assert report.difference is not None and "long" in str(report.difference.got)


def test_a_run_that_is_killed_replays_up_to_then(place: Place, again: Callable[..., Any]) -> None:
    place.script({"text": "I wait.", "calls": [call("Bash", command="sleep 30")]}, {"text": "Done."})
    path = place.root.parent / "run.jsonl"
    process = place.start("-p", "go", *BYPASS, "--model", "script:talk.yaml", "--record", str(path), "--output-format",
                          "stream-json", "--verbose", start_new_session=True)
    assert process.stdout is not None
    lines = [process.stdout.readline().decode().rstrip("\n") for _ in range(3)]
    while b'"tool","","Bash' not in path.read_bytes() and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    report = again(path)
    assert report.difference is None and report.cut == "the run was ended before it was over"
    assert [line.decode() for line in report.lines] == lines and report.events == report.of
    path.write_bytes(path.read_bytes()[:-20])  # and where its last line was torn
    report = again(path)
    assert report.difference is None and "torn" in report.cut


def test_a_conversation_over_the_protocol(place: Place, again: Callable[..., Any]) -> None:
    """Prompts, a permission question that is answered, an interrupt, another mode."""
    if not installed("control"):
        pytest.skip("needs the plugin control")
    place.script({"calls": [call("Bash", "c1", command="rm -f nothing")]}, {"text": "One."},
                 {"calls": [call("Bash", "c2", command="sleep 30")]}, {"text": "Three."})
    path = place.root.parent / "run.jsonl"
    process = place.start("-p", "--model", "script:talk.yaml", "--record", str(path), "--output-format", "stream-json",
                          "--verbose", "--input-format", "stream-json", "--permission-prompt-tool", "stdio",
                          stdin=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None

    def say(**frame: Any) -> None:
        process.stdin.write(json.dumps(frame).encode() + b"\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]

    def prompt(text: str) -> None:
        say(type="user", message={"role": "user", "content": text})

    say(type="control_request", request_id="r0", request={"subtype": "initialize"})
    prompt("one")
    lines, results = [], 0
    for raw in process.stdout:
        frame = json.loads(raw)
        if not frame["type"].startswith("control"):
            lines.append(raw.decode().rstrip("\n"))
        if frame["type"] == "control_request":
            say(type="control_response", response={"subtype": "success", "request_id": frame["request_id"], "response": {
                "behavior": "allow", "updatedInput": {**frame["request"]["input"], "description": "changed"}}})
        elif frame["type"] == "assistant" and '"c2"' in raw.decode():
            say(type="control_request", request_id="r2", request={"subtype": "interrupt"})
        elif frame["type"] == "result":
            results += 1
            if results == 1:
                say(type="control_request", request_id="r1",
                    request={"subtype": "set_permission_mode", "mode": "bypassPermissions"})
                prompt("two")
            elif results == 2:
                prompt("three")
            else:
                process.stdin.close()
    assert process.wait() == 0 and results == 3
    report = same(again(path), lines)
    assert report.requests == 4


def test_a_conversation_that_is_taken_up(place: Place, again: Callable[..., Any]) -> None:
    place.script({"text": "One."}, {"text": "Two."})
    first, lines = place.record("first prompt")
    id = json.loads(lines[0])["session_id"]
    same(again(first), lines)
    second, lines = place.record("second prompt", "--resume", id, name="second.jsonl")
    for kept in (place.home / "projects").rglob("*.jsonl"):
        kept.unlink()
    assert same(again(second), lines).requests == 1
    assert b"first prompt" in second.read_bytes()


def test_structured_output(place: Place, again: Callable[..., Any]) -> None:
    if not installed("structured-output"):
        pytest.skip("needs the plugin structured-output")
    place.script({"calls": [call("StructuredOutput", n="x")]}, {"calls": [call("StructuredOutput", n=3)]}, {"text": "Done."})
    schema = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    path, lines = place.record("go", "--json-schema", schema)
    assert json.loads(lines[-1])["structured_output"] == {"n": 3}
    same(again(path), lines)


def test_a_call_that_is_put_off_and_taken_up(place: Place, again: Callable[..., Any]) -> None:
    place.script({"calls": [call("Bash", "c1", command="echo one")]}, {"text": "Done."})
    place.settings(**hook(place, "defer"))
    path, lines = place.record("go")
    assert json.loads(lines[-1])["terminal_reason"] == "tool_deferred"
    same(again(path), lines)
    (place.root / "hook.py").write_text(HOOK % "allow")
    second, lines = place.record("--resume", json.loads(lines[0])["session_id"], name="second.jsonl")
    same(again(second), lines)


def test_agents_beside_each_other_and_in_the_background(place: Place, again: Callable[..., Any]) -> None:
    if not installed("subagents"):
        pytest.skip("needs the plugin subagents")

    def task(n: int, **more: Any) -> dict[str, Any]:
        return call("Agent", description="a task", prompt=f"task {n}", subagent_type="general-purpose", **more)

    agents: list[dict[str, Any]] = []
    for n in range(3):
        when = {"first_contains": f"task {n}"}
        agents += [{"when": when, "delay": 0.05 * (3 - n), "calls": [call("Read", file_path="a.txt")]},
                   {"when": when, "text": f"Report {n}."}]
    place.script({"calls": [task(0), task(1), task(2, run_in_background=True)]}, {"text": "I wait."}, {"text": "All came."},
                 *agents)
    path, lines = place.record("go", *BYPASS)
    assert sum("Report" in line for line in lines) >= 3
    same(again(path), lines)


SERVER = """
import random
from mcp.server.mcpserver import MCPServer
server = MCPServer("dice")
@server.tool()
def roll(sides: int) -> str:
    "Rolls a die."
    return f"{random.random()} of {sides}"
server.run()
"""


def test_tools_of_an_mcp_server(place: Place, again: Callable[..., Any]) -> None:
    if not installed("mcp"):
        pytest.skip("needs the plugin mcp")
    (place.root / "server.py").write_text(SERVER)
    config = json.dumps({"mcpServers": {"dice": {"command": sys.executable, "args": [str(place.root / "server.py")]}}})
    place.script({"calls": [call("ToolSearch", query="select:mcp__dice__roll")]}, {"calls": [call("mcp__dice__roll", sides=6)]},
                 {"text": "Done."})
    path, lines = place.record("go", *BYPASS, "--mcp-config", config)
    assert any(" of 6" in line for line in lines)
    (place.root / "server.py").write_text(f"open({str(place.root / 'started')!r}, 'w')\n{SERVER}")
    with pytest.raises(RecordingError, match=r"used MCP servers(.|\n)*--live mcp"):
        again(path)
    said = place.kernel("replay", str(path), "--json", code=2)
    assert "--live tools" in said and not (place.root / "started").exists()
    same(again(path, live=["mcp"]), lines)
    assert (place.root / "started").exists()


def test_no_server_is_started_that_the_folder_has_got_since(place: Place, again: Callable[..., Any]) -> None:
    if not installed("mcp"):
        pytest.skip("needs the plugin mcp")
    place.script({"text": "Done."})
    place.settings(enableAllProjectMcpServers=True)
    path, lines = place.record("go", *BYPASS)
    (place.root / "server.py").write_text(f"open({str(place.root / 'started')!r}, 'w')\n{SERVER}")
    (place.root / ".mcp.json").write_text(json.dumps({"mcpServers": {
        "dice": {"command": sys.executable, "args": [str(place.root / "server.py")]}}}))
    same(again(path), lines)
    assert not (place.root / "started").exists()
    forged(path, lambda header: header["options"]["extra"].update(
        agents=json.dumps({"a": {"description": "a", "prompt": "a", "mcpServers": [{"dice": {"command": "true"}}]}})))
    with pytest.raises(RecordingError, match="used MCP servers"):
        again(path)


def forged(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the header, with checksums that fit."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(lines[0])
    path.write_bytes(summed(lines))


def test_nothing_is_run_for_a_digest_that_differs(place: Place, again: Callable[..., Any]) -> None:
    place.script({"calls": [call("Bash", "c1", command="echo once >> ran.txt")]}, {"text": "Done."})
    (place.root / "hook.py").write_text("open('hooked.txt', 'a').write('once')\n")
    place.settings(hooks={"PreToolUse": [{"hooks": [
        {"type": "command", "command": f"cd {place.root} && {sys.executable} -S hook.py"}]}]})
    path, lines = place.record("go", *BYPASS)
    ran, hooked = place.root / "ran.txt", place.root / "hooked.txt"
    assert ran.read_text() == "once\n" and hooked.read_text() == "once"

    def other(header: dict[str, Any]) -> None:
        for plugin in header["plugins"].values():
            plugin["digest"] = "0" * 32

    forged(path, other)
    report = same(again(path), lines)
    assert "tools-shell differs" in report.changed and any("tools-shell has changed" in n for n in report.notes)
    assert ran.read_text() == "once\n" and hooked.read_text() == "once"
    forged(path, lambda header: header["plugins"].clear())  # all of them are new
    same(again(path), lines)
    assert ran.read_text() == "once\n" and hooked.read_text() == "once"
    again(path, live=["tools"])
    assert ran.read_text() == "once\nonce\n" and hooked.read_text() == "once"
    again(path, live=["hooks"])
    assert ran.read_text() == "once\nonce\n" and hooked.read_text() == "onceonce"


def test_a_header_brings_no_code_and_no_path(place: Place, again: Callable[..., Any]) -> None:
    place.script({"text": "Done."})
    path, lines = place.record("go")
    folder = place.root / "evil"
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / "evil.py").write_text(f"open({str(place.root / 'run')!r}, 'w')\n")
    (folder / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": "evil", "version": "1.0.0", "metadata": {
        "kernel": {"requires": ">=0", "module": "evil", "implements": ["*"]}}}))
    given = {"PATH": str(folder), "LD_PRELOAD": "x.so", "PYTHONPATH": str(folder), "GIT_SSH": "x", "HOME": str(folder),
             "KERNEL_HARNESS": "x", "CLAUDE_CODE_SHELL_PREFIX": "x", "CLAUDE_CODE_PLUGIN_CACHE_DIR": "x",
             "CLAUDE_CODE_MAX_TURNS": "9"}

    def other(header: dict[str, Any]) -> None:
        header["environment"].update(given)
        header["keys"].append("EDITOR")
        header["options"].update(plugin_dirs=[str(folder)], harness=str(folder / "h.yaml"), settings='{"env":{"A":"b"}}')

    forged(path, other)
    before = dict(os.environ)
    report = same(again(path), lines)
    said = "\n".join(report.notes)
    assert all(flag in said for flag in ("--plugin-dir", "--harness", "--settings", "EDITOR", *list(given)[:-1])), said
    assert "MAX_TURNS" not in said and not (place.root / "run").exists() and dict(os.environ) == before
    with surroundings(load(path)):
        assert {n: os.environ.get(n) for n in given} == {**{n: before.get(n) for n in given}, "CLAUDE_CODE_MAX_TURNS": "9"}
    home = place.root.parent / "another"
    home.mkdir()
    (home / "settings.json").write_text("{}")
    forged(path, lambda header: header.update(home=str(home)))
    with surroundings(load(path)) as stand_ins:
        assert not list(Path(stand_ins[str(home)]).iterdir())


@pytest.mark.parametrize("change", [{"environment": {"A=B": "x"}}, {"keys": ["X=Y"]}, {"environment": {"": "x"}},
                                    {"environment": {"CLAUDE_A": "\0"}}])
def test_a_variable_that_cannot_be_set_is_said(place: Place, change: dict[str, Any]) -> None:
    place.script({"text": "Done."})
    path, _ = place.record("go")
    forged(path, lambda header: header.update(change))
    assert "cannot be set" in json.loads(place.kernel("replay", str(path), "--json", code=2))["unusable"]
