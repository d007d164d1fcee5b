"""A running session takes up changed plugins and drops nothing that is under way."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

PROGRAM = """
import json, os, subprocess, sys
import anyio
from kernel import Harness, Options
from kernel.testing import ScriptedModel, call, module, text

log = []
os.environ["KERNEL_PROVIDER"] = "scripted"
ScriptedModel.name = "scripted"
turns = [call("Zfmt"), text("1"), call("Zfmt"), text("2"), call("Zfmt"), text("3"), call("Zfmt"), text("4"), call("Zfmt"),
         text("5")]


def results(model):
    return [b["content"] for m in model.requests[-1]["messages"] for b in (m["content"] if isinstance(m["content"], list) else [])
            if b.get("type") == "tool_result"]


def plugins(*args):
    subprocess.run([sys.executable, "-m", "kernel", "plugins", *args], check=True, capture_output=True)  # another process


async def go():
    model = ScriptedModel(turns)
    harness = Harness(Options(persist=False))
    harness.plugins.register("kit", module(register_models=lambda register: register(model)))
    said = []
    session = harness.open(said.append)
    await session.submit("one")
    log.append(results(model)[-1])                                     # the old version
    await anyio.to_thread.run_sync(plugins, "update", "fmt", "--yes")

    async with anyio.create_task_group() as group:                     # a call is under way while the set is switched
        group.start_soon(session.submit, "two")
        while not os.path.exists("started"):
            await anyio.sleep(0.01)
        done = await session.reload()
        log.append([done.added, done.changed, done.removed, done.kept])
        open("release", "w").close()
    log.append(results(model)[-1])                                     # what was under way ended in the old one
    await session.submit("three")
    log.append(results(model)[-1])                                     # the next call has the new one
    open("broken", "w").close()
    prepare_broken()
    await anyio.to_thread.run_sync(plugins, "update", "fmt", "--yes", "--no-check")
    done = await session.reload()
    log.append([done.added, done.changed, done.removed, sorted(done.kept)])
    await session.submit("four")
    log.append(results(model)[-1])                                     # a version that does not load is not taken up
    await anyio.to_thread.run_sync(plugins, "uninstall", "fmt")
    answer = await session.submit("/reload-plugins")
    log.append(answer.result)
    await session.submit("five")
    log.append(results(model)[-1])
    await session.close()


def prepare_broken():
    import pathlib
    folder = pathlib.Path(sys.argv[1])
    manifest = folder / ".claude-plugin" / "plugin.json"
    manifest.write_text(manifest.read_text().replace("2.0.0", "3.0.0"))
    (folder / "src" / "fmt_module" / "plugin.py").write_text("raise RuntimeError('boom')")


anyio.run(go)
print("LOG " + json.dumps(log))
"""
WAITING = """
import anyio, os

async def _wait():
    open("started", "w").close()
    with anyio.fail_after(30):
        while os.path.exists("../wait-there") and not os.path.exists("release"):
            await anyio.sleep(0.01)
"""


def test_a_session_changes_its_plugins_between_two_calls(world: Any) -> None:
    source = world.project_plugin("fmt", "1.0.0", tool="Zfmt", before=WAITING)
    code = source / "src" / "fmt_module" / "plugin.py"
    code.write_text(code.read_text().replace("return ToolResult",
                                             "await _wait() if os.path.exists('wait') else None; return ToolResult"))
    world.ok("install", source, "--yes")
    world.project_plugin("fmt", "2.0.0", tool="Zfmt")
    (world.root / "wait-there").write_text("")
    program = PROGRAM.replace('    async with anyio.create_task_group()',
                              '    open("wait", "w").close()\n    async with anyio.create_task_group()')
    done = subprocess.run([sys.executable, "-c", program, str(source)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    log = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("LOG ")).removeprefix("LOG "))
    assert log[:6] == ["1.0.0", [[], ["fmt"], [], {}], "1.0.0", "2.0.0", [[], [], [], ["fmt"]], "2.0.0"]
    assert log[6] == "Plugins removed: fmt"
    assert "Zfmt" in str(log[7]) and "2.0.0" not in str(log[7]), "a call of what is gone is answered as an unknown tool"


@pytest.mark.parametrize("asked", [True, False])
def test_by_itself_only_where_it_was_asked_for(world: Any, asked: bool) -> None:
    """Between two prompts; a new plugin's tool is offered to the model in the next request."""
    program = """
import os, subprocess, sys
import anyio
from kernel import Harness, Options
from kernel.testing import ScriptedModel, module, text

os.environ["KERNEL_PROVIDER"] = "scripted"
ScriptedModel.name = "scripted"

async def go():
    model = ScriptedModel([text("1"), text("2")])
    harness = Harness(Options(persist=False))
    harness.plugins.register("kit", module(register_models=lambda register: register(model)))
    session = harness.open()
    await session.submit("one")
    command = [sys.executable, "-m", "kernel", "plugins", "install", sys.argv[1], "--yes"]
    await anyio.run_process(command)
    await session.submit("two")
    names = [[t["name"] for t in r["tools"]] for r in model.requests]
    print("OFFERED", ["Zfmt" in n for n in names], session.toolbox.by_name.get("Zfmt") is not None)
    await session.close()

anyio.run(go)
"""
    if asked:
        (world.config / "settings.json").write_text('{"kernel": {"reloadPlugins": true}}')
    source = world.project_plugin("fmt", "1.0.0", tool="Zfmt")
    done = subprocess.run([sys.executable, "-c", program, str(source)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert f"OFFERED [False, {asked}] {asked}" in done.stdout
