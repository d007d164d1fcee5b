"""Failing inputs of public fault reports about tools and permissions, played with the real policy and the real tools.

Each report is data beside the repository; here it says how its lines are checked. What belongs to hooks is tested beside
the hooks.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernel.testing import Kit, Run, Turn, alive, call, text

SHARED = Path(os.environ.get("KERNEL_SHARED") or Path(__file__).resolve().parents[2] / "shared")
FILE = SHARED / "cases" / "field-reports.yaml"
REPORTS: dict[str, dict[str, Any]] = {
    c["id"]: c for c in yaml.safe_load(FILE.read_text("utf-8"))["cases"]} if FILE.is_file() else {}
OPEN: dict[str, str] = yaml.safe_load((Path(__file__).parent / "field_reports_open.yaml").read_text("utf-8"))
KINDS = frozenset(("permission-shell", "permission-path", "trust-config", "process-signals", "resources", "subagent", "encoding"))
ALSO = frozenset(("FR-015", "FR-041", "FR-043"))
"""Reports of other kinds whose subject is a tool or a rule."""

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not REPORTS, reason=f"the field reports are not at {FILE}")]
for _plugin in ("kernel_permissions", "kernel_tools_files", "kernel_tools_shell", "kernel_tools_web", "kernel_command_hooks"):
    pytest.importorskip(_plugin, reason="a plugin that the reports are about is not installed")

PROGRAMS = {
    "mark": '#!/bin/sh\necho "$*" >> "{root}/marker.log"\n',
    "decide": """#!{python}
import json, sys
print(json.dumps({{"hookSpecificOutput": {{"hookEventName": "PreToolUse", "permissionDecision": sys.argv[1]}}}}))
""",
    "allow-with": """#!{python}
import json, sys
answer = {{"behavior": "allow", "updatedInput": {{sys.argv[1]: sys.argv[2]}}}}
print(json.dumps({{"hookSpecificOutput": {{"hookEventName": "PermissionRequest", "decision": answer}}}}))
"""}


class Play:
    """One report: its files, its settings, its turns."""

    def __init__(self, id: str, root: Path) -> None:
        self.report = REPORTS[id]
        self.setup: dict[str, Any] = self.report["setup"]
        self.top = root / "top"
        self.cwd = self.top / self.setup["cwd"] if "cwd" in self.setup else self.top / "project"
        self.cwd.mkdir(parents=True)
        self._programs(root / "bin")
        for folder, files in self.setup.get("layout", {}).items():
            for name, content in files.items():
                self._file(self.top / folder / name, content)
        for name, content in self.setup.get("files", {}).items():
            self._file(self.cwd / name, content)

    def _programs(self, folder: Path) -> None:
        folder.mkdir()
        for name, content in PROGRAMS.items():
            (folder / name).write_text(content.format(root=self.cwd, python=sys.executable))
            (folder / name).chmod(0o755)
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"  # put back by the fixture own_home

    def _file(self, path: Path, content: Any) -> None:
        if path.name == "" or content == {}:
            path.mkdir(parents=True, exist_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            path.symlink_to(content["symlink"])
        else:
            path.write_text(content)

    @property
    def turns(self) -> list[Any]:
        model = self.setup["model"]
        if isinstance(model, dict):
            commands = [("Bash", {"command": c}) for c in model.get("each_command", ())]
            tools = [(t["name"], t["input"]) for t in model.get("each_tool", ())]
            return [*(call(name, f"t{n}", **input) for n, (name, input) in enumerate([*commands, *tools])), text("done")]
        return [[call(t["name"], t["id"], **t["input"]) for t in turn["tools"]] if "tools" in turn else text(turn["text"])
                for turn in model]

    async def run(self, turns: list[Any] | None = None, settings: dict[str, Any] | None = None) -> Run:
        given = {**self.setup.get("settings", {}), **(settings or {})}
        kit = Kit(self.cwd, self.turns if turns is None else turns, settings=given or {"x": 1},
                  installed=["permissions", "tools-files", "tools-shell", "tools-web", "command-hooks"])
        run = await kit.run("go")
        await run.session.close()
        return run

    def exists(self, *names: str) -> bool:
        return any((self.cwd / name).exists() for name in names)


def denials(run: Run) -> int:
    return len(run.result.permission_denials)


def said(run: Run) -> str:
    return json.dumps(run.requests, ensure_ascii=False)


def paired(request: dict[str, Any]) -> bool:
    messages = request["messages"]
    for place, message in enumerate(messages):
        calls = [b["id"] for b in message["content"] if isinstance(b, dict) and b.get("type") == "tool_use"]
        if calls:
            results = [b["tool_use_id"] for b in messages[place + 1]["content"] if b.get("type") == "tool_result"]
            assert results == calls
    return True


PLAYED: dict[str, Callable[..., Any]] = {}


def plays(id: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def keep(test: Callable[..., Any]) -> Callable[..., Any]:
        PLAYED[id] = test
        return test
    return keep


def test_every_report_about_tools_and_permissions_is_played_or_listed() -> None:
    """The list of those that are not played may only shrink."""
    wanted = {id for id, r in REPORTS.items() if r["kind"] in KINDS} | ALSO
    assert wanted == set(PLAYED) | set(OPEN)
    assert not set(PLAYED) & set(OPEN), "played and still listed as open"
    assert not OPEN, "all of them are played"


# -- rules for commands ----------------------------------------------------------------------------------------------------
@plays("FR-030")
async def test_a_rule_for_one_command_covers_no_other(tmp_path: Path) -> None:
    play = Play("FR-030", tmp_path)
    (play.cwd / "sub").mkdir()
    run = await play.run()
    assert denials(run) == 4 and not play.exists("m1", "m2", "m3", "m4", "sub/m1")


@plays("FR-031")
async def test_no_spelling_of_a_denied_command_runs(tmp_path: Path) -> None:
    play = Play("FR-031", tmp_path)
    run = await play.run()
    assert denials(run) == len(play.setup["model"]["each_command"]) and not play.exists("m")


@plays("FR-032")
async def test_programs_that_write_or_run_are_asked_about(tmp_path: Path) -> None:
    play = Play("FR-032", tmp_path)
    run = await play.run()
    assert denials(run) == len(play.setup["model"]["each_command"])
    assert not play.exists("m", "../m") and play.exists("a.txt")


# -- paths and hosts -----------------------------------------------------------------------------------------------------------
@plays("FR-033")
async def test_a_sibling_with_the_same_prefix_is_outside(tmp_path: Path) -> None:
    play = Play("FR-033", tmp_path)
    (play.top / "app-secrets" / "k").write_text("S3CRET")
    run = await play.run()
    assert denials(run) == 1 and "S3CRET" not in said(run)


@plays("FR-034")
async def test_a_denied_file_is_denied_by_every_way(tmp_path: Path) -> None:
    play = Play("FR-034", tmp_path)
    (play.cwd / ".env").write_text("S3CRET")
    run = await play.run()
    assert denials(run) == len(play.setup["model"]["each_tool"]) and "S3CRET" not in said(run)


class Canary:
    """A web server for every host of the report; ``strangers`` are the hosts that were asked for beside the good one."""

    def __init__(self) -> None:
        self.strangers: list[str] = []
        self.asked = 0
        canary = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                host = str(self.headers.get("host")).partition(":")[0]
                canary.asked += 1
                if host != "docs.good.test":
                    canary.strangers.append(host)
                self.send_response(302 if self.path == "/redirect-to-evil" else 200)
                self.send_header("location", f"http://evil.test:{canary.port}/")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Canary]:
    made = Canary()
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *args, **more: real(
        "127.0.0.1" if host and os.fsdecode(host).endswith(".test") else host, *args, **more))
    for name in [n for n in os.environ if n.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    yield made
    made.server.shutdown()
    made.server.server_close()


@plays("FR-035")
async def test_no_spelling_of_a_url_reaches_another_host(tmp_path: Path, canary: Canary) -> None:
    play = Play("FR-035", tmp_path)
    turns = json.loads(json.dumps(play.turns).replace(".test/", f".test:{canary.port}/"))
    hosts = ["docs.good.test", "evil.test", "docs.good.test.evil.test"]
    web = {"allowPrivate": [f"{h}:{canary.port}" for h in hosts], "extract": False}
    run = await play.run(turns, settings={"kernel": {"web": web}})
    assert canary.strangers == [] and canary.asked == 1, "the redirection was answered and not followed"
    assert paired(run.requests[-1]) and denials(run) >= 1


# -- hooks do not outrank rules ----------------------------------------------------------------------------------------------
@plays("FR-037")
async def test_deny_outranks_a_hook_and_a_rewritten_input_is_checked_again(tmp_path: Path) -> None:
    play = Play("FR-037", tmp_path)
    await play.run()
    assert play.exists("a.txt") and play.exists("b.txt")


async def test_a_rewrite_by_a_permission_hook_meets_the_deny_rules(tmp_path: Path) -> None:
    """The same report with a command that is asked about, so that the hook of PermissionRequest does answer."""
    play = Play("FR-037", tmp_path)
    hooks = {"PermissionRequest": play.setup["settings"]["hooks"]["PermissionRequest"]}
    run = await play.run([call("Bash", "t1", command="make"), text("done")], settings={"hooks": hooks})
    assert play.exists("b.txt") and "Bash(rm *)" in str(run.result_of("t1")["content"])


# -- settings -----------------------------------------------------------------------------------------------------------------
def kernel(cwd: Path, turns: list[dict[str, Any]], *args: str) -> subprocess.Popen[bytes]:
    (cwd / "script.yaml").write_text(json.dumps({"name": "x", "turns": turns}))
    return subprocess.Popen([sys.executable, "-m", "kernel", "-p", "go", "--model", "script:script.yaml", *args], cwd=cwd,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True)


@plays("FR-015")
def test_a_comma_too_many_opens_nothing(tmp_path: Path) -> None:
    pytest.importorskip("kernel_model_script", reason="a script plays the model")
    play = Play("FR-015", tmp_path)
    (play.cwd / ".claude").mkdir()
    (play.cwd / ".claude" / "settings.json").write_text(play.setup["settings_raw"])
    read = {"tool": "Read", "id": "t1", "input": {"file_path": ".env"}}
    process = kernel(play.cwd, [{"calls": [read]}, {"text": "{{last_result}}"}])
    out, err = process.communicate(timeout=60)
    assert b"K=1" not in out and b"denied" in out
    assert b".claude/settings.json" in err and b"line 1, column 40" in err


class Asked:
    """A model server that refuses every request and counts them."""

    def __init__(self) -> None:
        self.count = 0
        asked = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked.count += 1
                self.send_response(401)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def end(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@plays("FR-036")
def test_nothing_of_a_folder_counts_before_it_is_trusted(tmp_path: Path) -> None:
    for needed in ("kernel_terminal", "kernel_model_anthropic"):
        pytest.importorskip(needed, reason="the trust question is asked on a terminal")
    play, canary, server = Play("FR-036", tmp_path), Asked(), Asked()
    (play.cwd / ".claude").mkdir()
    settings = json.dumps(play.setup["settings"]).replace("http://canary.test", canary.url)
    (play.cwd / ".claude" / "settings.json").write_text(settings)
    main, terminal = os.openpty()
    process = subprocess.Popen([sys.executable, "-m", "kernel"], cwd=play.cwd, stdin=terminal, stdout=terminal, stderr=terminal,
                               start_new_session=True, env={**os.environ, "TERM": "dumb", "ANTHROPIC_API_KEY": "k",
                                                            "ANTHROPIC_BASE_URL": server.url})
    os.close(terminal)
    seen = b""

    def until(*texts: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 60
        while not all(text in seen for text in texts):
            assert time.monotonic() < end, seen.decode("utf-8", "replace")
            if select.select([main], [], [], 1)[0]:
                seen += os.read(main, 65_536)

    until(b"Do you trust this folder?", b"SessionStart: mark s", b"Type a number from 1 to 3")
    os.write(main, b"2\n")
    until(b"Mode: default")
    os.write(main, b"go\n")
    until(b"Error: ")
    os.write(main, b"\x04")
    assert process.wait(timeout=60) == 0
    os.close(main)
    canary.end()
    server.end()
    assert not play.exists("marker.log") and canary.count == 0 and server.count > 0


# -- streams ---------------------------------------------------------------------------------------------------------------------
@plays("FR-041")
async def test_a_write_that_was_cut_off_writes_nothing(tmp_path: Path) -> None:
    play = Play("FR-041", tmp_path)
    cut = Turn(blocks=[{**call("Write", "t1"), "raw_input": '{"file_path":"a.txt"'}], stop_reason="max_tokens")
    run = await play.run([cut, text("done")])
    assert (play.cwd / "a.txt").read_text() == "keep me\n"
    blocks = [b for m in run.requests[-1]["messages"] for b in m["content"]]
    calls = [b for b in blocks if b.get("type") == "tool_use"]
    assert all(isinstance(b["input"], dict) for b in calls) and paired(run.requests[-1])
    assert not calls or "cut off" in said(run)


@plays("FR-043")
async def test_calls_of_unknown_tools_get_errors_and_hold_nothing_up(tmp_path: Path) -> None:
    run = await Play("FR-043", tmp_path).run()
    assert [bool(run.result_of(t).get("is_error")) for t in ("t1", "t2", "t3")] == [True, False, True]
    assert "1" in str(run.result_of("t2")["content"]) and paired(run.requests[-1])


async def test_a_lone_surrogate_reaches_no_request(tmp_path: Path) -> None:
    """The half of FR-057 that needs no MCP server."""
    play = Play("FR-030", tmp_path)
    raw = {**call("Bash", "t2"), "raw_input": '{"command":"echo \\ud99c"}'}
    run = await play.run([raw, text("done")])
    assert run.result.subtype == "success" and paired(run.requests[-1])
    json.dumps(run.requests).encode().decode("utf-8")
    assert not any("\ud800" <= c <= "\udfff" for c in said(run))


SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    answer = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "s", "version": "1"}},
              "tools/list": {"tools": [{"name": "bad", "inputSchema": {"type": "object"}}]}}.get(message.get("method"), {})
    if "id" in message:
        raw = RAW if message["method"] == "tools/call" else json.dumps(answer)
        print('{"jsonrpc": "2.0", "id": %s, "result": %s}' % (json.dumps(message["id"]), raw), flush=True)
"""


@plays("FR-057")
async def test_no_half_of_a_pair_that_a_server_or_the_model_sent_reaches_a_request(tmp_path: Path) -> None:
    """Nor does it hold up the session when it is taken up again."""
    for plugin in ("kernel_mcp", "kernel_sessions"):
        pytest.importorskip(plugin)
    play = Play("FR-057", tmp_path)
    (tmp_path / "server.py").write_text(SERVER.replace("RAW", repr(play.setup["mcp"]["s"]["bad_raw_json"])))
    config = {"mcpServers": {"s": {"command": sys.executable, "args": [str(tmp_path / "server.py")]}}}
    raw = play.setup["model"][1]["events"]
    assert raw[0]["tool_start"]["name"] == "Bash"
    turns = [call("mcp__s__bad", "t1"), {**call("Bash", "t2"), "raw_input": raw[1]["json"]}, text("done"), text("again")]
    settings = {"permissions": {"allow": ["mcp__s", "Bash"]}, "x": 1}
    options: dict[str, Any] = {"settings": settings, "installed": ["permissions", "tools-shell", "mcp", "sessions"],
                               "extra": {"mcp_config": [json.dumps(config)]}, "persist": True}
    kit = Kit(play.cwd, turns, **options)
    first = await kit.run("go")
    await first.session.close()
    assert re.search(r"a[?\ufffd]b", str(first.result_of("t1")["content"])) and first.result.subtype == "success"
    second = await Kit(play.cwd, [text("again")], resume=first.session.id, **options).run("again")
    await second.session.close()
    assert second.result.result == "again" and len(second.requests[-1]["messages"]) > 2
    for run in (first, second):
        assert paired(run.requests[-1])
        said(run).encode()  # no half of a pair


# -- subagents -----------------------------------------------------------------------------------------------------------------
@plays("FR-054")
async def test_rules_and_hooks_hold_inside_a_subagent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kernel_subagents")
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")  # its report is the result of the call
    play = Play("FR-054", tmp_path)
    for_agent = [turn for given, turn in zip(play.setup["model"], play.turns, strict=True) if given.get("agent")]
    for_main = [turn for given, turn in zip(play.setup["model"], play.turns, strict=True) if not given.get("agent")]
    asked: dict[bool, list[dict[str, Any]]] = {True: [], False: []}

    def answer(request: dict[str, Any]) -> Any:
        inside = '"go"' not in json.dumps(request["messages"][0])
        asked[inside].append(request)
        return (for_agent if inside else for_main).pop(0)

    kit = Kit(play.cwd, [answer] * 5, settings=play.setup["settings"],
              installed=["permissions", "tools-files", "tools-shell", "command-hooks", "subagents"])
    run = await kit.run("go")
    await run.session.close()
    assert not play.exists("m") and (play.cwd / "marker.log").read_text() == "pre\n"
    assert run.result.result == "done" and len(asked[True]) == len(asked[False]) == 2
    last = json.dumps(asked[False][-1])
    assert "sub done" in last and "touch m" not in last and all(paired(request) for request in run.requests)


# -- processes -----------------------------------------------------------------------------------------------------------------
def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@plays("FR-058")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")
def test_sigterm_ends_commands_and_keeps_the_session(tmp_path: Path) -> None:
    pytest.importorskip("kernel_model_script", reason="a script plays the model")
    play = Play("FR-058", tmp_path)
    command = play.setup["model"][0]["tools"][0]["input"]["command"]
    args = ("--session-id", "11111111-1111-4111-8111-111111111111", "--allowedTools", "Bash")
    process = kernel(play.cwd, [{"calls": [{"tool": "Bash", "id": "t1", "input": {"command": command}}]}], *args)
    pid_file = play.cwd / "c.pid"
    wait_for(lambda: pid_file.exists() and pid_file.read_text().strip().isdigit())
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert process.returncode == 143
    wait_for(lambda: not alive(int(pid_file.read_text())), 5)
    resumed = kernel(play.cwd, [{"text": "result: {{last_result}}"}], "--resume", args[1], "--output-format", "json")
    out, _ = resumed.communicate(timeout=60)
    result = json.loads(out)
    assert result["is_error"] is False and "interrupted" in result["result"] and "effect is unknown" in result["result"]
    transcript = next(Path(os.environ["HOME"]).rglob(f"{args[1]}.jsonl")).read_text().splitlines()
    entries = [json.loads(line) for line in transcript]
    blocks = [b for e in entries if isinstance(e.get("message"), dict) and isinstance(e["message"].get("content"), list)
              for b in e["message"]["content"]]
    assert [b["id"] for b in blocks if b.get("type") == "tool_use"] == ["t1"]


@plays("FR-060")
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc")
async def test_turns_leave_no_files_and_no_processes_behind(tmp_path: Path) -> None:
    """The report's thousand turns in small; time and memory are the benchmark's: ``python -m benchmarks``."""
    play = Play("FR-060", tmp_path)
    command = play.setup["model"]["each"]["tools"][0]["input"]["command"]
    seen: dict[int, tuple[int, int]] = {}

    def turn(n: int) -> Callable[[Any], Any]:
        def play_turn(body: Any) -> Any:
            seen[n] = (len(os.listdir("/proc/self/fd")), len(children()))
            return call("Bash", f"c{n}", command=command)
        return play_turn

    turns = [*(turn(n) for n in range(60)), text("done")]
    run = await play.run(turns, settings={"permissions": {"allow": ["Bash"]}})
    assert run.result.subtype == "success" and "x" * 1000 in str(run.result_of("c59")["content"])
    assert seen[59][0] <= seen[10][0] and seen[59][1] <= seen[10][1]


def children() -> list[int]:
    return [int(p) for p in Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split() if alive(int(p))]
