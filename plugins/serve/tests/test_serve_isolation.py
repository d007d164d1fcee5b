"""What one session has, no other one sees: variables, settings, permissions, trust, hooks, folders, servers, state."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kernel_serve import surroundings
from kernel_serve.client import Rejected

SERVER = r'''
import json, os, sys
for line in sys.stdin:
    ask = json.loads(line)
    if "id" not in ask:
        continue
    kind = ask["method"]
    if kind == "initialize":
        answer = {"protocolVersion": ask["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "mood", "version": "1"}}
    elif kind == "tools/list":
        answer = {"tools": [{"name": "mood", "inputSchema": {"type": "object"}}]}
    else:
        seen = [os.environ.get(n, "-") for n in ("MOOD", "MINE", "ONLY_SERVER")]
        answer = {"content": [{"type": "text", "text": " ".join([*seen, os.getcwd()])}]}
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": answer}), flush=True)
'''
SHOW = 'echo "$MOOD $MINE ${ONLY_SERVER:--} $(pwd)" | tee shown'
TURNS = """
name: NAME
turns:
- calls: [{tool: Bash, input: {command: sh show.sh}}]
- text: '{{last_result}}'
- calls: [{tool: mcp__mood__mood, input: {}}]
- text: '{{last_result}}'
- calls: [{tool: Edit, input: {file_path: note.txt, old_string: a note, new_string: changed}}]
- text: '{{last_result}}'
""" + 40 * """
- calls: [{tool: Bash, input: {command: sh show.sh}}]
- text: '{{last_result}}'
"""


class Person:
    """A home, a project and variables of one name."""

    def __init__(self, world: Any, name: str, *, trusted: bool = True, allowed: bool = True, servers: bool = True) -> None:
        self.name = name
        self.world = world
        self.home = world.folder(f"home-{name}")
        self.project = world.folder(f"project-{name}")
        (self.project / ".claude").mkdir()
        self.settings = {
            "env": {"MOOD": f"mood-{name}", f"ONLY_{name.upper()}": "1"},
            "permissions": {"allow": ["Bash(sh show.sh)", "mcp__mood__*"] if allowed else []},
            "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{
                "type": "command", "command": f'echo "$MOOD $MINE $CLAUDE_PROJECT_DIR" >> "{self.project}/hooked"'}]}]}}
        self.write()
        if trusted:
            projects = {str(self.project): {"hasTrustDialogAccepted": True}}
            (self.home / ".claude.json").write_text(json.dumps({"projects": projects}))
        (self.home / ".claude").mkdir()
        (self.home / ".claude" / "settings.json").write_text(json.dumps(
            {"permissions": {"defaultMode": "acceptEdits" if name == "b" else "default"}}))
        (self.project / ".mcp.json").write_text(json.dumps({"mcpServers": {} if not servers else {
            "mood": {"command": sys.executable, "args": [str(self.project / "server.py")], "env": {"MINE": "${MINE}"}}}}))
        (self.project / "server.py").write_text(SERVER)
        (self.project / "note.txt").write_text("a note")
        (self.project / "show.sh").write_text(SHOW)
        (self.project / "s.yaml").write_text(TURNS.replace("NAME", name))
        self.id = ""
        self.heard: Any = None

    def write(self) -> None:
        (self.project / ".claude" / "settings.json").write_text(json.dumps(self.settings))

    def open(self) -> None:
        env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "MINE": f"mine-{self.name}", "ENABLE_TOOL_SEARCH": "0",
               "MCP_CONNECTION_NONBLOCKING": "0", "MCP_TIMEOUT": "60000", "MCP_CONNECT_TIMEOUT_MS": "60000"}
        self.id = self.world.create(self.project, environment=env, options={"model": "script:s.yaml"})["id"]
        self.heard = self.world.listen(self.id)

    def ask(self, number: int) -> str:
        self.world.post(self.id, "messages", prompt=f"turn {number}")
        return str(self.heard.results(number)[number - 1]["result"]).strip()


NAMES = ("a", "b", "stranger", "bare")


def together(people: list[Person], work: Any) -> list[Any]:
    with ThreadPoolExecutor(len(people)) as pool:
        return list(pool.map(work, people))


def test_sessions_see_nothing_of_each_other(world: Any) -> None:
    world.serve(MOOD="mood-server", ONLY_SERVER="secret", MINE="mine-server")
    a, b = Person(world, "a"), Person(world, "b")
    stranger = Person(world, "stranger", trusted=False)
    bare = Person(world, "bare", allowed=False, servers=False)
    people = [a, b, stranger, bare]
    together(people, Person.open)

    said = dict(zip(NAMES, together(people, lambda p: p.ask(1)), strict=True))
    assert said["a"] == f"mood-a mine-a - {a.project}" and said["b"] == f"mood-b mine-b - {b.project}"
    for person in (stranger, bare):  # an untrusted project allows nothing; the other one allows nothing itself
        assert "mood-" not in said[person.name] and not (person.project / "shown").exists(), said

    said = dict(zip(NAMES, together(people, lambda p: p.ask(2)), strict=True))
    assert said["a"] == f"mood-a mine-a - {a.project}" and said["b"] == f"mood-b mine-b - {b.project}"
    assert "mood-" not in said["stranger"] and "mood-" not in said["bare"]

    said = dict(zip(NAMES, together(people, lambda p: p.ask(3)), strict=True))
    assert b.heard.messages[0]["permissionMode"] == "acceptEdits" and a.heard.messages[0]["permissionMode"] == "default"
    for person in people:
        assert (person.project / "note.txt").read_text() == "a note", "nobody read it, so nobody edits it"

    a.settings["env"]["MOOD"] = "another"
    a.write()
    for number in range(4, 40):  # the file is looked at now and then
        if (seen := a.ask(number)).startswith("another mine-a "):
            break
        time.sleep(0.25)
    assert seen.startswith("another mine-a ") and b.ask(4).startswith("mood-b mine-b ")

    hooked = {p.name: (p.project / "hooked").read_text().splitlines() if (p.project / "hooked").exists() else [] for p in people}
    assert hooked["a"][0] == f"mood-a mine-a {a.project}" and hooked["a"][-1] == f"another mine-a {a.project}"
    assert hooked["b"] == [f"mood-b mine-b {b.project}"] * 2
    assert all(line.split()[-2:] == [f"mine-{p.name}", str(p.project)] for p in people for line in hooked[p.name])
    models = {p.name: p.heard.messages[0]["model"] for p in people}
    assert models == {p.name: f"script:{p.name}" for p in people}
    servers = {p.name: p.heard.messages[0]["mcp_servers"] for p in people}
    assert servers["a"] == servers["b"] == [{"name": "mood", "status": "connected"}] and servers["bare"] == []
    for person in people:
        assert world.client().request("DELETE", f"/v1/sessions/{person.id}")["state"] == "closed"
    # the server itself, and a session that brings no variables, see what they saw before
    world.script(TURNS.replace("NAME", "s"))
    (world.project / "show.sh").write_text(SHOW)
    plain = world.talk("turn 1", options={"model": "script:s.yaml", "allowed_tools": ["Bash"]})
    assert plain.results()[0]["result"].strip() == f"mood-server mine-server secret {world.project}"


def test_a_control_request_is_served_with_the_sessions_variables(world: Any) -> None:
    """It comes through the server's thread, whose variables are others."""
    world.serve(ANTHROPIC_DEFAULT_OPUS_MODEL="the-servers")
    mine = {**world.env, "ANTHROPIC_DEFAULT_OPUS_MODEL": "the-sessions"}
    row = world.create(environment=mine, options={"model": "anthropic:sonnet"})
    heard = world.listen(row["id"])
    world.post(row["id"], "control", type="control_request", request_id="r",
               request={"subtype": "set_model", "model": "anthropic:opus"})
    assert heard.answer_to("r")["subtype"] == "success"
    assert world.client().request("GET", f"/v1/sessions/{row['id']}")["model"] == "the-sessions"


PLUGIN = '''
import os, subprocess, threading, time
from kernel import hookimpl, UserPromptSubmitResult

@hookimpl
def user_prompt_submit(event, session):
    if "block" in event.prompt:
        time.sleep(3600)
    if "exit" in event.prompt:
        raise SystemExit(7)
    if "look" in event.prompt:
        seen = [os.environ.get("MINE")]
        thread = threading.Thread(target=lambda: seen.append(os.environ.get("MINE")))
        thread.start()
        thread.join()
        seen.append(subprocess.run(["sh", "-c", "echo $MINE; pwd"], capture_output=True, text=True).stdout.split())
        seen.append(os.path.expanduser("~"))
        os.environ["MADE"] = event.prompt
        time.sleep(0.2)
        seen.append(os.environ["MADE"])
        return UserPromptSubmitResult(additional_context=repr(seen))
'''


@pytest.fixture
def hooked(world: Any, tmp_path_factory: Any) -> Any:
    """A server whose sessions have a plugin in Python that does what its prompt says."""
    place = tmp_path_factory.mktemp("site")
    package = place / "blunt"
    (package / ".claude-plugin").mkdir(parents=True)
    (package / ".claude-plugin" / "plugin.json").write_text(json.dumps({
        "name": "blunt", "version": "1",
        "metadata": {"kernel": {"requires": ">=0.1,<1", "implements": ["user_prompt_submit"]}}}))
    (package / "__init__.py").write_text("")
    (package / "plugin.py").write_text(PLUGIN)
    info = place / "blunt-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: blunt\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[kernel.plugins]\nblunt = blunt.plugin\n")
    world.serve(PYTHONPATH=str(place))
    return world


def test_a_hook_that_blocks_or_exits_hurts_no_other_session(hooked: Any) -> None:
    model = hooked.script()
    stuck = hooked.create(options={"model": model}, prompt="block")
    gone = hooked.create(options={"model": model}, prompt="exit", end=True)
    left = hooked.listen(gone["id"])
    left.named("end")
    for _ in range(3):
        assert hooked.talk("hi", options={"model": model}).results()[0]["result"] == "hello"
    assert hooked.client().request("GET", f"/v1/sessions/{stuck['id']}")["state"] == "running"
    assert hooked.client().request("GET", "/v1/status")["running"] == 1
    for _ in range(256):  # nobody hears them, and they do not pile up for ever
        hooked.post(stuck["id"], "messages", prompt="more")
    with pytest.raises(Rejected, match="too many prompts wait"):
        hooked.post(stuck["id"], "messages", prompt="more")
    began = time.monotonic()
    assert hooked.end() == 0, "the end waits for it, but not for ever"
    assert time.monotonic() - began < 30


def test_threads_and_children_of_a_plugin_belong_to_their_session(hooked: Any) -> None:
    found: dict[str, str] = {}

    def one(name: str) -> None:
        home, folder = hooked.folder(f"h-{name}"), hooked.folder(f"p-{name}")
        hooked.script("name: s\nturns:\n- text: done\n", folder=folder)
        heard = hooked.talk(f"look {name}", folder, environment={**hooked.env, "MINE": name, "HOME": str(home)},
                            options={"model": "script:s.yaml"})
        transcript = next((home / ".claude" / "projects").rglob(f"{heard.id}.jsonl")).read_text()
        found[name] = next(line for line in transcript.splitlines() if "MINE" in line or f"'{name}'" in line)
        expected = repr([name, name, [name, str(folder)], str(home), f"look {name}"])
        assert expected in found[name].replace('\\"', '"'), found[name]

    names = [f"n{number}" for number in range(8)]
    threads = [threading.Thread(target=one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == names


def test_the_window(tmp_path: Path) -> None:
    """``os.environ`` in a process of its own: a mapping like any other, inside and outside of sessions."""
    program = '''
import contextvars, os, subprocess, sys
held = os.environ
os.environ["BEFORE"] = "server"
from kernel_serve import surroundings
surroundings.install()
assert os.environ is held

def session():
    surroundings.enter({"A": "1", "bad=name": "x", "nul": "a\\0b"}, "/")
    assert dict(os.environ) == {"A": "1"} == os.environ.copy() and len(os.environ) == 1 and list(held) == ["A"]
    assert os.getenv("BEFORE") is None and os.environb[b"A"] == b"1"
    os.environ |= {"B": "2"}
    os.environ.setdefault("C", "3")
    os.environb[b"D"] = b"4"
    os.putenv  # what asks C is not reached
    assert {**os.environ} == {"A": "1", "B": "2", "C": "3", "D": "4"}
    del os.environ["A"]
    assert os.environ.pop("B") == "2" and "B" not in os.environ and "environ({" in repr(os.environ)
    for name, text, error in (("x", 5, TypeError), (5, "x", TypeError), ("a=b", "x", ValueError), ("a", "\\0", ValueError)):
        try:
            os.environ[name] = text
        except error:
            continue
        raise AssertionError((name, text))
    try:
        os.environ["nothing"]
    except KeyError:
        pass
    assert subprocess.run([sys.executable, "-c", "import os; print(sorted(os.environ.items()), os.getcwd())"],
                          capture_output=True, text=True).stdout.startswith("[('C', '3'), ('D', '4')")
    os.environ.clear()

contextvars.copy_context().run(session)
assert os.environ["BEFORE"] == "server" and "C" not in os.environ
os.environ["AFTER"] = "yes"
assert subprocess.run(["sh", "-c", "echo $AFTER"], capture_output=True, text=True).stdout == "yes\\n"
print("ok")
'''
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.stdout == "ok\n", done.stderr


def test_nothing_is_installed_by_importing_it() -> None:
    assert type(os.environ) is not surroundings.Window


def installed(home: Path, version: str) -> None:
    """A plugin that settings of a home switch on, as ``kernel plugins install`` leaves it."""
    base = home / ".claude" / "kernel" / "plugins"
    site = base / f"site-{version}"
    package = site / "marked"
    (package / ".claude-plugin").mkdir(parents=True)
    (package / ".claude-plugin" / "plugin.json").write_text(json.dumps({
        "name": "marked", "version": version,
        "metadata": {"kernel": {"requires": ">=0.1,<1", "implements": ["user_prompt_submit"]}}}))
    (package / "__init__.py").write_text("")
    (package / "plugin.py").write_text("from kernel import hookimpl\n\n@hookimpl\ndef user_prompt_submit(event):\n    pass\n")
    info = site / f"marked-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: marked\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("[kernel.plugins]\nmarked = marked.plugin\n")
    (home / ".claude" / "settings.json").write_text(json.dumps({"enabledPlugins": {"marked@here": True}}))
    (base / "state.json").write_text(json.dumps({"version": 2, "plugins": {"marked@here": [{
        "scope": "user", "installPath": f"site-{version}/marked", "version": version, "module": "marked.plugin",
        "path": [f"site-{version}"]}]}}))


def test_a_plugin_that_one_home_switches_on_is_not_there_for_another(world: Any) -> None:
    world.serve()
    model = world.script()
    homes = {name: world.folder(f"home-{name}") for name in ("one", "none", "two")}
    (homes["none"] / ".claude").mkdir()
    for name, version in (("one", "1.0"), ("two", "2.0")):
        (homes[name] / ".claude").mkdir()
        installed(homes[name], version)

    def plugins(name: str) -> list[str]:
        heard = world.talk("hi", environment={**world.env, "HOME": str(homes[name])}, options={"model": model})
        return [p["name"] for p in heard.find("system", subtype="init")["plugins"]]

    assert "marked" in plugins("one")
    assert "marked" not in plugins("none"), "its folder is on the import path now"
    with pytest.raises(Rejected, match="two versions do not fit into one process"):
        world.create(environment={**world.env, "HOME": str(homes["two"])}, options={"model": model})
    assert "marked" in plugins("one")
