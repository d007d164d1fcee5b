"""What a person met who had several plugins of several kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_outdated_looks_at_all_plugins_of_all_kinds(world: Any, tmp_path: Path) -> None:
    """One command asks for every plugin, also where several come from folders and repositories of their own."""
    repository = world.plugin("gitty", folder=tmp_path / "repo")
    world.commit(repository)
    for source in (world.plugin("one"), world.plugin("two"), f"git+file://{repository}"):
        world.ok("install", source)
    assert world.ok("outdated", "--json").json["plugins"] == []
    for name in ("one", "two"):
        world.plugin(name, "2.0.0")
    world.plugin("gitty", "2.0.0", folder=repository)
    world.commit(repository)
    done = world.run("outdated", "--json")
    assert done.code == 1
    assert {row["id"]: row.get("available") for row in done.json["plugins"]} == {
        "one@installed": "2.0.0", "two@installed": "2.0.0", "gitty@installed": "2.0.0"}


def test_python_of_an_installed_wheel_is_never_called_text_only(world: Any) -> None:
    """What is said before it is installed is what info and enable say afterwards."""
    world.wheel("say-it", plugin="sayer")
    asked = world.ok("install", "python:say-it", *world.index, "--yes")
    assert "Python code (module say_it.plugin)" in asked.err
    world.ok("disable", "sayer")
    assert "Python code (module say_it.plugin)" in world.ok("enable", "sayer").err
    info = json.loads(world.ok("info", "sayer", "--json").out)
    assert info["kind"] == "code" and info["python"]["hooks"] == ["register_tools"] and info["intact"] is True
    world.wheel("say-it", "1.1.0", plugin="sayer")
    # the rights are those it had, so nobody has to be asked again
    assert world.ok("update", "sayer", *world.index, "--json").json["changed"] is True
