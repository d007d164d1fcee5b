"""Plugins that pip installed: what the list says of them, and where the manager's commands send a person."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import plugin_folder


@pytest.fixture
def pipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A plugin as pip lays it out: ``pipped``, whose module can be imported."""
    site = tmp_path / "site"
    source = ("from kernel import hookimpl\n@hookimpl\ndef register_tools(register): ...\n"
              "@hookimpl\ndef stop(event): ...\n@hookimpl\ndef pre_tool_use(event): ...\n")
    plugin_folder(site / "pipped_pkg", "pipped", {"__init__.py": "", "plugin.py": source}, kernel={
        "implements": ["register_tools", "stop", "pre_tool_use"], "provides": {"tools": ["Dig"]},
        "capabilities": {"processes": True}})
    info = site / "kernel_pipped-1.0.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[kernel.plugins]\npipped = pipped_pkg.plugin\n")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kernel-pipped\nVersion: 1.0.0\n")
    monkeypatch.syspath_prepend(str(site))
    yield site
    for name in [n for n in sys.modules if n.startswith("pipped_pkg")]:
        del sys.modules[name]


@pytest.mark.parametrize("command", ["disable", "enable", "uninstall", "update"])
def test_what_pip_installed_is_changed_by_pip_and_left_out_by_block(pipped: Path, world: Any, command: str) -> None:
    done = world.run(command, "pipped")
    assert done.code == 1 and "a distribution of this environment" in done.err
    assert "--block pipped" in done.err and '{"kernel": {"blocked": ["pipped"]}}' in done.err and "pip uninstall" in done.err
    assert "--block" not in world.run(command, "no-such-plugin").err


def test_the_way_that_is_named_works(pipped: Path, world: Any) -> None:
    (world.config / "settings.json").write_text('{"kernel": {"blocked": ["pipped"]}}')
    rows = {row["name"]: row for row in json.loads(world.run("list", "--json").out)}
    assert rows["pipped"]["state"] == "blocked"


def test_info_tells_what_pip_installed(pipped: Path, world: Any) -> None:
    told = world.ok("info", "pipped").out
    for part in ("pipped@installed 1.0.0", "module pipped_pkg.plugin", "kernel-pipped (pip)", "--block pipped", "processes: yes"):
        assert part in told, told
    facts = json.loads(world.ok("info", "pipped", "--json").out)
    assert facts["provides"] == {"tools": ["Dig"]} and facts["from"] == "kernel-pipped (pip)" and facts["enabled"]


def test_the_list_shows_events_beside_what_is_registered(pipped: Path, world: Any) -> None:
    line = next(line for line in world.run("list").out.splitlines() if line.startswith("pipped "))
    assert "tools: Dig, hooks: stop pre_tool_use" in line
    other = next(line for line in world.run("list").out.splitlines() if line.startswith("command-hooks "))
    assert "hooks: every event" in other


def test_the_list_can_import_what_it_lists(pipped: Path, world: Any) -> None:
    (pipped / "pipped_pkg" / "plugin.py").write_text("import no_such_module_at_all\n")
    assert {r["name"]: r["state"] for r in json.loads(world.ok("list", "--json").out)}["pipped"] == "ready"
    done = world.run("list", "--check")
    assert done.code == 1 and "cannot be imported: ModuleNotFoundError" in done.out
    rows = {row["name"]: row for row in json.loads(world.run("list", "--check", "--json").out)}
    assert rows["pipped"]["state"] == "broken" and rows["manager"]["state"] == "ready"
