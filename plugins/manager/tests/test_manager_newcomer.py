"""What a person met who had several plugins of several kinds."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
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


def test_plugins_that_need_each_other_go_together(world: Any) -> None:
    """A round of needs installs; no member can stay without the others, so none may be impossible to switch off."""
    folder = world.market("acme", {"a": {"dependencies": ["b"]}, "b": {"dependencies": ["c"]}, "c": {"dependencies": ["a"]},
                                   "on-top": {"dependencies": ["b"]}})
    world.ok("marketplace", "add", folder)
    world.ok("install", "a@acme")
    assert world.ok("disable", "b", "--json").json["dependencies"] == ["a@acme", "c@acme"]
    assert world.versions() == {}
    world.ok("enable", "a")
    assert set(world.versions()) == {"a@acme", "b@acme", "c@acme"}
    world.ok("install", "on-top@acme")
    assert "on-top@acme needs it" in world.refused("needed", "disable", "a").err
    world.ok("uninstall", "on-top")
    world.ok("uninstall", "a")
    assert world.versions() == {} and "a@acme" not in world.listed()
    world.ok("rollback")
    assert set(world.versions()) == {"a@acme", "b@acme", "c@acme"}


def test_what_the_kernel_cannot_read_is_not_installed(world: Any) -> None:
    """Python's reader takes half a character and NaN; the kernel's does not, and the plugin would be broken at once."""
    for number, text in enumerate((r'{"name": "odd", "description": "\ud800"}', '{"name": "odd", "metadata": {"x": NaN}}')):
        folder = world.plugin("odd", folder=world.root / f"odd{number}")
        (folder / ".claude-plugin" / "plugin.json").write_text(text)
        world.refused("bad-manifest", "install", folder)


def test_a_bad_range_names_its_plugin(world: Any) -> None:
    folder = world.plugin("top", dependencies=[{"name": "low", "version": "(((("}])
    assert "plugin top@installed, dependencies, 'low'" in world.refused("bad-range or bad-manifest", "install", folder).err


def test_the_state_of_a_newer_kernel_is_left_alone(world: Any) -> None:
    world.ok("install", world.plugin("one"))
    data = json.loads(world.state_file.read_text())
    world.state_file.write_text(json.dumps(data | {"version": 3}))
    done = world.refused("bad-state", "install", world.plugin("two"))
    assert "this kernel reads up to 2" in done.err


def test_a_skill_among_compiled_files_is_no_part_of_what_was_installed(world: Any) -> None:
    """Python may leave compiled files in the store; anything else in such a folder was put there."""
    world.ok("install", world.plugin("one"))
    root = Path(json.loads(world.ok("info", "one", "--json").out)["installPath"])
    compiled = root / "skills" / "__pycache__"
    compiled.mkdir()
    (compiled / "x.cpython-311.pyc").write_bytes(b"")
    assert json.loads(world.ok("info", "one", "--json").out)["intact"] is True
    (compiled / "SKILL.md").write_text("---\ndescription: planted\n---\n")
    assert json.loads(world.ok("info", "one", "--json").out)["intact"] is False


def test_info_answers_where_the_config_folder_cannot_be_written(world: Any, monkeypatch: Any) -> None:
    """As in a container with a read-only home; a change is refused there as before."""
    from kernel_manager.state import Home

    world.ok("install", world.plugin("one"))

    @contextmanager
    def refuse(self: Home) -> Iterator[None]:
        raise OSError(errno.EROFS, "Read-only file system", str(self.root / "lock"))
        yield

    monkeypatch.setattr(Home, "locked", refuse)
    assert json.loads(world.ok("info", "one", "--json").out)["intact"] is True
    assert json.loads(world.ok("info", world.plugin("two"), "--json").out)["installed"] is False
    assert "Read-only file system" in world.refused("disk", "disable", "one").err
