"""Each kind of source through its whole life: installed, updated, rolled back, removed (public commands only)."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def test_a_folder_lives_its_life(world: Any) -> None:
    source = world.plugin("fmt", "1.0.0")
    done = world.ok("install", source, "--json").json
    assert done == {"ok": True, "action": "install", "id": "fmt@installed", "scope": "user", "version": "1.0.0", "changed": True,
                    "dependencies": [], "warnings": []}
    row = world.listed()["fmt@installed"]
    assert (row["state"], row["source"], row["enabled"], row["errors"]) == ("ready", "installed", True, [])
    assert Path(row["installPath"]).is_relative_to(world.config / "kernel" / "plugins" / "store")
    assert world.ok("install", source, "--json").json["changed"] is False, "the same again is no change"
    world.plugin("fmt", "1.1.0")
    assert world.versions() == {"fmt@installed": "1.0.0"}, "the copy counts, not the source"
    assert world.run("outdated").code == 1
    done = world.ok("update", "fmt", "--json").json
    assert (done["before"], done["version"], done["changed"]) == ("1.0.0", "1.1.0", True)
    assert world.run("outdated").code == 0
    world.ok("rollback")
    assert world.versions() == {"fmt@installed": "1.0.0"}
    world.ok("uninstall", "fmt")
    assert world.versions() == {} and json.loads((world.config / "settings.json").read_text()) == {}
    world.ok("rollback")
    assert world.versions() == {"fmt@installed": "1.0.0"}


def test_a_marketplace_lives_its_life(world: Any) -> None:
    folder = world.market("acme",
                          {"fmt": {"version": "1.0.0"}, "lint": {"entry": {"description": "finds faults", "keywords": ["x"]}}})
    added = world.ok("marketplace", "add", folder, "--json").json
    assert (added["name"], added["plugins"], added["source"]) == ("acme", 2, {"source": "directory", "path": str(folder)})
    (row,) = json.loads(world.ok("marketplace", "list", "--json").out)
    assert (row["name"], row["source"], row["path"], row["installLocation"]) == ("acme", "directory", str(folder), str(folder))
    assert [r["pluginId"] for r in json.loads(world.ok("search", "faults", "--json").out)] == ["lint@acme"]
    assert world.run("search", "nothing-like-this").code == 1
    world.ok("install", "fmt")  # one marketplace has it, so the name is enough
    world.ok("install", "lint@acme")
    assert world.versions() == {"fmt@acme": "1.0.0", "lint@acme": "1.0.0"}
    both = json.loads(world.ok("list", "--json", "--available").out)
    assert both["available"] == [] and {"fmt@acme", "lint@acme"} <= {r["id"] for r in both["installed"]}
    world.market("acme", {"fmt": {"version": "2.0.0"}, "lint": {}})
    assert json.loads(world.ok("update", "--json").out)["ok"] is True
    assert world.versions() == {"fmt@acme": "2.0.0", "lint@acme": "1.0.0"}
    world.ok("rollback")
    assert world.versions()["fmt@acme"] == "1.0.0"
    gone = world.ok("marketplace", "remove", "acme", "--json").json
    assert sorted(gone["uninstalled"]) == ["fmt@acme", "lint@acme"] and world.versions() == {}
    assert json.loads((world.config / "settings.json").read_text()) == {}
    world.ok("rollback")
    assert world.versions() == {"fmt@acme": "1.0.0", "lint@acme": "1.0.0"}


def test_a_git_repository_lives_its_life(world: Any) -> None:
    repository = world.plugin("fmt", "1.0.0", hooks=True)
    first = world.commit(repository, "v1")
    world.plugin("fmt", "2.0.0", hooks=True)
    second = world.commit(repository)
    world.ok("install", f"git+{repository}", "--yes")
    state = json.loads(world.state_file.read_text())["plugins"]["fmt@installed"][0]
    assert (state["version"], state["gitCommitSha"]) == ("2.0.0", second)
    world.ok("uninstall", "fmt")
    for pin in ("v1", first):
        world.ok("install", f"git+file://{repository}@{pin}", "--yes")
        assert world.versions() == {"fmt@installed": "1.0.0"}
        world.plugin("fmt", "3.0.0", hooks=True)
        world.commit(repository)
        assert world.ok("update", "fmt", "--json").json["changed"] is False, "a pinned source stays where it is"
        world.ok("uninstall", "fmt")
    world.ok("install", f"git+{repository}@main", "--yes")
    world.plugin("fmt", "4.0.0", hooks=True)
    world.commit(repository)
    assert world.ok("update", "fmt", "--json", "--yes").json["version"] == "4.0.0"
    world.ok("rollback")
    assert world.versions() == {"fmt@installed": "3.0.0"}
    assert not list(world.config.rglob(".git"))


def test_a_folder_of_a_repository(world: Any) -> None:
    repository = world.root / "mono"
    world.plugin("one", None, folder=repository / "plugins" / "one")
    world.plugin("two", "2.0.0", folder=repository / "plugins" / "two")
    commit = world.commit(repository)
    world.ok("install", f"git+file://{repository}#plugins/one")
    assert world.versions() == {"one@installed": commit}, "without a version the commit is the version"
    world.refused("not-found", "install", f"git+file://{repository}#plugins/three")


def test_a_git_marketplace_is_fetched_and_follows_its_branch(world: Any) -> None:
    folder = world.market("acme", {"fmt": {}})
    world.commit(folder)
    world.ok("marketplace", "add", f"file://{folder}/.git")
    world.ok("install", "fmt@acme")
    world.market("acme", {"fmt": {"version": "1.5.0"}})
    world.commit(folder)
    assert world.ok("marketplace", "update", "--json").json["changed"] == ["acme"]
    world.ok("update", "fmt@acme")
    assert world.versions() == {"fmt@acme": "1.5.0"}
    location = json.loads(world.ok("marketplace", "list", "--json").out)[0]["installLocation"]
    assert Path(location).is_relative_to(world.config / "kernel" / "plugins" / "catalogues")


def environment() -> set[str]:
    return {p.name for place in sys.path if Path(place).is_dir() for p in Path(place).glob("*.dist-info")}


def test_a_wheel_folder_lives_its_life(world: Any) -> None:
    """Its Python dependencies come along from the same folder, and the environment stays as it is."""
    world.wheel("fmt-plugin", "1.0.0", plugin="fmt", requires=["fmt-base>=1", "kernel-harness>=0.1"], tool="Fmt")
    world.wheel("fmt-base", "1.0.0")
    before = environment()
    world.ok("install", "python:fmt-plugin", *world.index, "--yes")
    assert world.versions() == {"fmt@installed": "1.0.0"}
    record = json.loads(world.state_file.read_text())["plugins"]["fmt@installed"][0]
    assert [(d["name"], d["version"]) for d in record["distributions"]] == [("fmt-base", "1.0.0")]
    world.wheel("fmt-plugin", "1.1.0", plugin="fmt", requires=["fmt-base>=2"], tool="Fmt")
    world.wheel("fmt-base", "2.0.0")
    assert world.ok("update", "fmt", *world.index, "--yes", "--json").json["version"] == "1.1.0"
    record = json.loads(world.state_file.read_text())["plugins"]["fmt@installed"][0]
    assert [(d["name"], d["version"]) for d in record["distributions"]] == [("fmt-base", "2.0.0")]
    world.ok("rollback")
    assert world.versions() == {"fmt@installed": "1.0.0"}
    world.ok("uninstall", "fmt")
    assert environment() == before


def test_an_install_refreshes_the_catalogue_first(world: Any) -> None:
    folder = world.market("acme", {"fmt": {}})
    world.commit(folder)
    world.ok("marketplace", "add", f"file://{folder}/.git")
    world.market("acme", {"fmt": {"version": "2.0.0"}, "new": {}})
    world.commit(folder)
    world.ok("install", "new@acme")
    (folder / ".git").rename(folder / "gone")
    done = world.ok("install", "fmt@acme", "--json").json
    assert done["version"] == "2.0.0" and "cannot be fetched" in done["warnings"][0]


def test_one_that_fails_does_not_hold_up_the_others(world: Any) -> None:
    for name in ("one", "two", "three"):
        world.ok("install", world.plugin(name))
    for name in ("one", "three"):
        world.plugin(name, "2.0.0")
    world.plugin("two", "2.0.0", keywords="no list")
    done = world.run("update", "--json")
    assert done.code == 1 and list(done.json["failed"]) == ["two@installed"]
    assert world.versions() == {"one@installed": "2.0.0", "two@installed": "1.0.0", "three@installed": "2.0.0"}


def test_what_of_a_plugin_cannot_be_used_is_listed(world: Any) -> None:
    """The rest of it works (plugins contract, 12)."""
    done = world.ok("install", world.plugin("fmt", files={"hooks/hooks.json": "{"}, commands="./missing.md"), "--json").json
    assert len(done["warnings"]) == 2
    row = world.listed()["fmt@installed"]
    assert row["state"] == "ready" and {p["type"] for p in row["problems"]} == {"component-failed"}
    shown = world.ok("list").out
    assert "hooks.json" in shown and "missing.md" in shown


def test_nothing_that_a_plugin_says_can_steer_the_terminal(world: Any) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07"
    source = world.plugin("fmt", f"1.0{evil}", description=f"nice{evil}", mcpServers={f"db{evil}": {"command": "x"}})
    world.ok("marketplace", "add", world.market("acme", {"other": {"entry": {"description": f"nice{evil}"}}}))
    for args in (["install", source, "--yes"], ["list"], ["info", "fmt"], ["search", "nice"], ["enable", "fmt"],
                 ["uninstall", "fmt"]):
        done = world.ok(*args)
        assert "\x1b" not in done.out + done.err and "\x07" not in done.out + done.err, args


def test_old_versions_go_after_two_weeks(world: Any) -> None:
    """And until then there is a way back to them."""
    for version in ("1.0.0", "2.0.0", "3.0.0"):
        source = world.plugin("fmt", version)
        world.ok("install" if version == "1.0.0" else "update", source if version == "1.0.0" else "fmt")
    store, history = (world.config / "kernel" / "plugins" / name for name in ("store", "history"))
    assert json.loads(world.ok("prune", "--yes", "--json").out)["swept"] == []
    for path in (*store.iterdir(), *history.iterdir()):
        os.utime(path, (1, 1))
    assert len(json.loads(world.ok("prune", "--yes", "--json").out)["swept"]) == 2
    assert world.versions() == {"fmt@installed": "3.0.0"} and len(list(store.iterdir())) == 1
    world.refused("not-found", "rollback")


def test_a_project_that_must_be_built_is_built_where_that_is_allowed(world: Any) -> None:
    """With the project's own build backend, which here hands out a wheel that lies ready."""
    world.wheel("unused")
    wheel = world.wheel("dyn-plugin", "1.0.0", plugin="dyn", folder=world.root / "built")
    project = world.project_plugin("dyn")
    build = f"import os, shutil\ndef build_wheel(to, *more):\n    return os.path.basename(shutil.copy({str(wheel)!r}, to))\n"
    (project / "backend.py").write_text(build)
    file = project / "pyproject.toml"
    text = file.read_text().replace("dependencies = []", 'dynamic = ["dependencies"]').replace("dyn-project", "dyn-plugin")
    file.write_text(text + '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n')
    world.refused("needs-build", "install", project, *world.index, "--yes")
    world.ok("install", project, *world.index, "--yes", "--allow-build")
    assert world.versions() == {"dyn@installed": "1.0.0"}
    record = json.loads(world.state_file.read_text())["plugins"]["dyn@installed"][0]
    assert record["module"] == "dyn_plugin.plugin" and record["asked"]["path"] == str(project)


def test_a_wheel_file_and_its_tool_in_a_session(world: Any) -> None:
    wheel = world.wheel("fmt-plugin", "1.0.0", plugin="fmt", tool="Fmt")
    world.ok("install", wheel, *world.index, "--yes")
    program = """
import sys
from kernel import Harness
harness = Harness()
plugin = harness.plugins.get("fmt")
assert (plugin.state, plugin.id) == ("ready", "fmt@installed"), plugin
assert "fmt_plugin" not in sys.modules and not any("fmt" in p for p in sys.path), "before its first use"
print("Fmt" in harness.tools.names(), plugin.errors, "fmt_plugin.plugin" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["True", "[]", "True"], done


def test_a_zip_lives_its_life(world: Any) -> None:
    archive = world.root / "fmt.zip"

    def pack(version: str | None, top: str) -> None:
        folder = world.plugin("fmt", version)
        with zipfile.ZipFile(archive, "w") as file:
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                file.write(path, f"{top}{path.relative_to(folder)}")

    pack("1.0.0", "fmt-main/")
    world.ok("install", archive)
    pack("1.1.0", "")
    assert world.ok("update", "fmt", "--json").json["version"] == "1.1.0"
    world.ok("rollback")
    assert world.versions() == {"fmt@installed": "1.0.0"}
    pack(None, "")
    world.ok("update", "fmt")
    assert len(world.versions()["fmt@installed"]) == 12, "the first digits of its digest"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A small npm registry: one package with its versions."""
    folder = tmp_path / "npm"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()


def test_an_npm_package_of_a_marketplace(world: Any, registry: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes without its lifecycle scripts."""
    url, folder = registry
    monkeypatch.setenv("npm_config_cache", str(world.root / "npm-cache"))
    versions = {}
    for version in ("1.0.0", "1.1.0"):
        script = {"preinstall": f"touch {world.root}/ran", "prepare": f"touch {world.root}/ran",
                  "postinstall": f"touch {world.root}/ran"}
        source = world.plugin("fmt", version,
                              files={"package.json": json.dumps({"name": "fmt-npm", "version": version, "scripts": script})})
        subprocess.run(["npm", "pack", "--ignore-scripts", "--pack-destination", str(folder)], cwd=source, check=True,
                       capture_output=True)
        versions[version] = {"name": "fmt-npm", "version": version, "dist": {"tarball": f"{url}/fmt-npm-{version}.tgz"}}
        (folder / "fmt-npm").write_text(json.dumps({"name": "fmt-npm", "dist-tags": {"latest": version}, "versions": versions}))
        if version == "1.0.0":
            entry = {"source": {"source": "npm", "package": "fmt-npm", "registry": url}}
            world.ok("marketplace", "add", world.market("acme", {"fmt": {"entry": entry}}))
            world.ok("install", "fmt@acme")
            assert world.versions() == {"fmt@acme": "1.0.0"}
    world.ok("update", "fmt")
    assert world.versions() == {"fmt@acme": "1.1.0"}
    assert not (world.root / "ran").exists()


def test_what_runs_is_shown_first_and_needs_a_word(world: Any) -> None:
    source = world.plugin("fmt", hooks=True)
    done = world.refused("not-approved", "install", source)
    assert done.code == 2 and "hooks on PreToolUse" in done.err and "--yes" in done.err
    assert world.ok("install", source, "--dry-run", "--json").json["changed"] is True and world.versions() == {}
    info = json.loads(world.ok("info", source, "--json").out)
    assert (info["kind"], info["runs"], info["hooks"],
            info["installed"]) == ("code", ["hooks on PreToolUse"], {"PreToolUse": 1}, False)
    world.ok("install", source, "--yes")
    world.plugin("fmt", "1.1.0", hooks=True)
    world.ok("update", "fmt")  # nothing new that could run
    world.plugin("fmt", "1.2.0", hooks=True, mcpServers={"db": {"command": "db"}})
    assert "MCP servers: db" in world.refused("not-approved", "update", "fmt").err
    assert world.versions() == {"fmt@installed": "1.1.0"}
