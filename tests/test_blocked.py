"""Every plugin can be left out: the rest works, and the doctor says what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel.cli import main
from kernel.cli.doctor import NEEDED, PROGRAMS, examine
from kernel.harness import Harness
from kernel.manifest import read
from kernel.options import Options
from kernel.plugins import find
from kernel.testing import Kit, call, text

FOLDERS = sorted(p for p in (Path(__file__).parent.parent / "plugins").iterdir() if (p / "pyproject.toml").is_file())
INSTALLED = {p.name: p.root for p in find()}
MINE = {found.manifest.name: folder for folder in FOLDERS if (found := read(folder)).manifest is not None}
NAMES = [name for name in MINE if name in INSTALLED]
BRINGS = {plugin: (kind, name, meaning) for kind, name, plugin, meaning in NEEDED}
THE_MODEL = "model-anthropic"
"""The kit plays the model itself, under the same name."""


@pytest.fixture(autouse=True)
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "for-tests")


def installed_but(*left_out: str) -> list[str]:
    return [name for name in NAMES if name not in left_out and name != THE_MODEL]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_first_party_plugin_has_a_manifest_and_is_installed(folder: Path) -> None:
    """The other tests of this file look at installed plugins only."""
    found = read(folder)
    assert found.errors == []
    if folder.name not in INSTALLED:
        pytest.skip(f"{folder.name} is not installed (pip install -r requirements-dev.txt)")


@pytest.mark.anyio
@pytest.mark.parametrize("name", [*NAMES, "none"])
async def test_without_one_plugin_the_others_work(name: str, tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe", n=1), text("done")], tools=[tool := probe(permission="free")],
              installed=installed_but(name), check=False)  # what depends on it stays out, too
    session = kit.open()
    run = await kit.run("go", session)
    await session.close()
    assert (run.result.subtype, run.result.result, tool.ran) == ("success", "done", [{"n": 1}])
    assert [(p.name, p.errors) for p in kit.harness.plugins if p.state == "broken"] == []


@pytest.mark.anyio
async def test_without_any_plugin_the_kernel_works(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe", n=1), text("done")], tools=[tool := probe()], installed=[])
    run = await kit.run("go")
    assert (run.result.result, tool.ran) == ("done", [{"n": 1}])
    assert [p.name for p in kit.harness.plugins] == ["test-kit", "~test-kit"]


@pytest.mark.parametrize("name", NAMES)
def test_the_doctor_names_what_is_blocked_and_what_that_means(name: str) -> None:
    report = examine(Options(block=[name]))
    (row,) = [r for r in report["plugins"] if r["name"] == name]
    assert row["state"] == "blocked" and row["errors"] == ["blocked by name"]
    told = [p for p in report["problems"] if f"plugin {name} is blocked" in p]
    assert bool(told) == (name in BRINGS)
    if told:
        assert BRINGS[name][2] in told[0]
    others = [r for r in report["plugins"] if r["name"] in NAMES and r["name"] != name]
    assert not [r["name"] for r in others if r["state"] == "blocked" and f"'{name}'" not in str(r["errors"])]


def test_the_doctor_works_with_everything_blocked(capsys: Any) -> None:
    assert main(["doctor", "--block", "all"]) == 1
    out = capsys.readouterr().out
    for plugin, (_, _, meaning) in BRINGS.items():
        assert f"plugin {plugin} is blocked: {meaning}" in out
    assert "plugins:  none ready" in out


def test_the_doctor_imports_no_plugin_where_it_is_asked_not_to(tmp_path: Path) -> None:
    code = "import sys; from kernel.cli import main; main(['doctor', '--json', '--no-load']); print('\\n#', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    report, _, modules = done.stdout.rpartition("\n#")
    packages = {f"kernel_{name.replace('-', '_')}" for name in NAMES}
    assert {m.split(".")[0] for m in modules.split()} & packages == set()
    assert {r["name"] for r in json.loads(report)["plugins"]} >= set(NAMES)


def test_what_the_doctor_needs_is_what_the_plugins_provide() -> None:
    provided = {name: read(folder).manifest for name, folder in MINE.items()}
    for kind, name, plugin, _ in NEEDED:
        manifest = provided[plugin]
        assert manifest is not None and name in manifest.kernel.provides[kind]
    assert {name for name, _ in PROGRAMS} == {"git", "bash"}


@pytest.mark.parametrize(("blocked", "says"), [
    (THE_MODEL, f"no plugin provides the model provider 'anthropic' (the plugin '{THE_MODEL}' is blocked"),
    ("headless", "no plugin provides the front end 'text' (the plugin 'headless' is blocked")])
def test_a_run_that_cannot_be_says_which_plugin_is_missing(blocked: str, says: str, capsys: Any) -> None:
    assert main(["-p", "hi", "--block", blocked]) == 1
    err = capsys.readouterr().err
    assert says in err and err.count("\n") == 1


def test_a_session_cannot_be_resumed_without_a_store(tmp_path: Path, capsys: Any) -> None:
    assert main(["-p", "hi", "--continue", "--block", "sessions"]) == 1
    assert "no plugin provides the transcript store 'files', so no session can be resumed" in capsys.readouterr().err


def test_without_the_policy_everything_is_refused_and_that_is_announced(tmp_path: Path) -> None:
    harness = Harness(Options(cwd=tmp_path, block=["permissions"], persist=False))
    session = harness.open()
    assert session.policy.decide(None).behavior == "deny"  # type: ignore[arg-type]
    assert any("every tool call is refused" in a and "'permissions' is blocked" in a for a in harness.announced)
