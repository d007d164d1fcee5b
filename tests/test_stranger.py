"""A plugin that a stranger wrote, built and installed with the ordinary tools, works like one of ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.testing import plugin_folder

# A build backend in the tree: nothing is downloaded, and any backend that fills a wheel would do.
BACKEND = '''
import zipfile
from pathlib import Path

NAME, TAG = "greeter_plugin-3.1", "py3-none-any"

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    info = f"{NAME}.dist-info"
    sources = [p for p in Path("src/greeter").rglob("*") if p.is_file()]
    files = {p.relative_to("src").as_posix(): p.read_bytes() for p in sources}
    files["greeter/.claude-plugin/plugin.json"] = Path(".claude-plugin/plugin.json").read_bytes()
    files[f"{info}/METADATA"] = b"Metadata-Version: 2.1\\nName: greeter-plugin\\nVersion: 3.1\\n"
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: {TAG}\\n".encode()
    files[f"{info}/entry_points.txt"] = b"[kernel.plugins]\\ngreeter = greeter.plugin\\n"
    files[f"{info}/RECORD"] = "".join(f"{name},,\\n" for name in [*files, f"{info}/RECORD"]).encode()
    with zipfile.ZipFile(Path(wheel_directory) / f"{NAME}-{TAG}.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    return f"{NAME}-{TAG}.whl"
'''

PLUGIN = '''
from __future__ import annotations
from kernel import PreToolUse, PreToolUseResult, hookimpl

@hookimpl
def pre_tool_use(event: PreToolUse) -> PreToolUseResult | None:
    if event.tool_input.get("who") == "nobody":
        return PreToolUseResult(permission_decision="deny", permission_decision_reason="greet somebody")
    return None

@hookimpl
def register_tools(register) -> None:
    from greeter.tool import Greet
    register(Greet())
'''

TOOL = '''
from kernel import Tool, ToolContext, ToolResult

class Greet(Tool):
    name = "Greet"
    description = "Greets."
    permission = "free"
    input_schema = {"type": "object", "required": ["who"], "properties": {"who": {"type": "string"}}}

    async def call(self, input, context: ToolContext) -> ToolResult:
        return ToolResult(content=f"Hello, {input['who']}!")
'''

PROGRAM = '''
import anyio, json, sys
from pathlib import Path
from kernel.testing import Kit, call, text

async def main():
    calls = [call("Greet", who="you"), call("Greet", who="nobody"), call("Greet")]
    kit = Kit(Path(sys.argv[1]), [calls, text("done")], installed=["greeter"], check=False)
    before = "greeter.plugin" in sys.modules
    run = await kit.run("go")
    plugin = kit.harness.plugins.get("greeter")
    results = [run.result_of(f"call_{n}")["content"] for n in (1, 2, 3)]
    about = [plugin.name, plugin.version, plugin.state, plugin.distribution, plugin.warnings + plugin.errors]
    print(json.dumps({"before": before, "results": results, "result": run.result.result, "plugin": about}))

anyio.run(main)
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stranger's distribution, built by pip and installed into a folder of its own."""
    root = tmp_path_factory.mktemp("stranger")
    project = plugin_folder(root / "project", "greeter", {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BACKEND, "src/greeter/__init__.py": "", "src/greeter/plugin.py": PLUGIN, "src/greeter/tool.py": TOOL,
    }, version="3.1", kernel={"requires": ">=0.1", "provides": {"tools": ["Greet"]},
                              "implements": ["pre_tool_use", "register_tools"]})
    target = root / "site"
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
                           "--disable-pip-version-check", "--no-compile", "--target", str(target), str(project)],
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.fail(done.stderr)
    return target


def run(site: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=60, check=False,
                          env={"PYTHONPATH": str(site), "HOME": str(site), "PATH": "/usr/bin:/bin"})


def test_its_hook_and_its_tool_work(site: Path, tmp_path: Path) -> None:
    done = run(site, "-c", PROGRAM, str(tmp_path))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["before"] is False, "imported before its first hook"
    assert said["results"][0] == "Hello, you!"
    assert "greet somebody" in said["results"][1]
    assert "who: required, but missing" in said["results"][2]
    assert said["result"] == "done"
    assert said["plugin"] == ["greeter", "3.1", "ready", "greeter-plugin", []]


def test_it_is_listed_with_what_it_brings(site: Path) -> None:
    done = run(site, "-m", "kernel", "plugins", "list", "--json")
    (row,) = [r for r in json.loads(done.stdout) if r["name"] == "greeter"]
    assert (row["version"], row["state"], row["provides"]) == ("3.1", "ready", {"tools": ["Greet"]})
    assert row["hooks"] == ["pre_tool_use", "register_tools"] and row["path"] == str(site / "greeter")


def test_it_can_be_left_out(site: Path) -> None:
    done = run(site, "-m", "kernel", "plugins", "list", "--json", "--block", "greeter")
    (row,) = [r for r in json.loads(done.stdout) if r["name"] == "greeter"]
    assert (row["state"], row["errors"]) == ("blocked", ["blocked by name"])
