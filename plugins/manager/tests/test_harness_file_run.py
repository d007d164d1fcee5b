"""A harness from the first line to the first prompt, through the command line, with real wheels and real pip."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .case_harness import World, library_wheel, plugin_project, plugin_wheel


@pytest.fixture
def world(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path, tmp_path_factory)


def test_lock_sync_run(world: World) -> None:
    library_wheel(world.wheels, "phrases", "1.0")
    library_wheel(world.wheels, "phrases", "2.0")
    plugin_wheel(world.wheels, "greeter", "1.0", ["phrases<2"])
    world.write("greeter>=1")
    said = world.harness("lock")
    assert "kernel.lock written: 3 plugins" in said.stdout
    lock = json.loads(world.lock.read_bytes())
    assert lock["distributions"]["phrases"]["version"] == "1.0"
    assert lock["plugins"]["greeter"] == {"version": "1.0", "distribution": "greeter", "package": "greeter_pkg"}
    assert "greeter_pkg/skills/hello/SKILL.md" in lock["distributions"]["greeter"]["files"]
    world.harness("sync")
    assert world.imported() == [], "locking and syncing import no plugin"
    done = world.run()
    assert "greeter 1.0" in done.stdout + done.stderr and "the model was asked" not in done.stdout
    assert world.imported() == ["greeter"]
