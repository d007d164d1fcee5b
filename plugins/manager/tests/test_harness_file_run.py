"""A run of a locked harness: what is locked runs, byte for byte; anything else is refused by name or does not load."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from .case_harness import World, library_wheel, plugin_wheel

STATES = '''
import json, sys
from pathlib import Path
from kernel import Harness, Options
harness = Harness(Options(harness=Path("harness.yaml"), plugin_dirs=[Path(p) for p in sys.argv[1:]]))
print(json.dumps({"plugins": [[p.name, p.state, "; ".join(p.errors)] for p in harness.plugins], "announced": harness.announced,
                  "model": harness.settings.get("model")}))
'''
PLANT = '''
import importlib.util, os, py_compile, sys
path = sys.argv[1]
facts, other = os.stat(path), path + ".tmp.py"
open(other, "wb").write(b"raise SystemExit(99)".ljust(facts.st_size))
os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
planted = importlib.util.cache_from_source(path)
py_compile.compile(other, planted, dfile=path)
os.unlink(other)
print(planted)
'''
PHRASES = {"phrases/__init__.py": b"from phrases.deep import SAID\n", "phrases/deep.py": b"SAID = 'said'\n",
           "phrases/words.txt": b"hello\n"}


@pytest.fixture
def world(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path, tmp_path_factory)


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> World:
    """One harness with two plugins, a dependency and a folder without Python, in place; tests leave it as it was."""
    world = World(tmp_path_factory.mktemp("synced"), tmp_path_factory)
    library_wheel(world.wheels, "phrases", "1.0", files=PHRASES)
    plugin_wheel(world.wheels, "greeter", "1.0", ["phrases"], {"greeter_pkg/words.py": b"import phrases\nVERSION = '1.0'\n"})
    plugin_wheel(world.wheels, "blocker", "2.0")
    folder(world.root / "notes", "notes")
    world.write("greeter", "blocker", "path: ./notes", more="order: [greeter]\nblock: [blocker]\nsettings:\n  model: script:x\n")
    world.harness("lock")
    world.harness("sync")
    assert world.imported() == [], "locking and syncing import no plugin"
    return world


@pytest.fixture(autouse=True)
def nothing_imported(request: pytest.FixtureRequest) -> None:
    if "synced" in request.fixturenames:
        request.getfixturevalue("synced").imported()


def folder(place: Path, name: str) -> Path:
    for path, text in {".claude-plugin/plugin.json": json.dumps({"name": name, "version": "3.0"}),
                       "skills/one/SKILL.md": "---\nname: one\ndescription: One\n---\nOne.\n"}.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)
    return place


def test_what_is_locked_runs(synced: World) -> None:
    done = synced.run()
    assert "greeter 1.0" in done.stdout + done.stderr
    assert synced.imported() == ["greeter"], "a blocked plugin is not imported"


def test_by_the_environment_variable_too(synced: World) -> None:
    done = synced.kernel("-p", "hello", "--model", synced.model, ok=None, KERNEL_HARNESS="harness.yaml")
    assert "greeter 1.0" in done.stdout + done.stderr


def test_order_block_and_settings_count(synced: World) -> None:
    said = json.loads(synced.python("-c", STATES).stdout)
    assert [p[0] for p in said["plugins"]] == ["greeter", "blocker", "headless", "model-script", "notes"]
    assert [p for p in said["plugins"] if p[1] != "ready"] == [["blocker", "blocked", "blocked by name"]]
    assert said["model"] == "script:x" and said["announced"] == []


# -- one byte -----------------------------------------------------------------------------------------------------------
KINDS = [
    ("site/greeter_pkg/plugin.py", "plugin greeter"), ("site/greeter_pkg/words.py", "plugin greeter"),
    ("site/greeter_pkg/__init__.py", "plugin greeter"), ("site/greeter_pkg/.claude-plugin/plugin.json", "plugin greeter"),
    ("site/greeter_pkg/skills/hello/SKILL.md", "plugin greeter"), ("site/greeter-1.0.dist-info/METADATA", "plugin greeter"),
    ("site/greeter-1.0.dist-info/entry_points.txt", "plugin greeter"), ("site/blocker_pkg/plugin.py", "plugin blocker"),
    ("plugins/notes/skills/one/SKILL.md", "plugin notes"), ("plugins/notes/.claude-plugin/plugin.json", "plugin notes"),
    ("site/phrases/__init__.py", "phrases"), ("site/phrases/deep.py", "phrases"), ("site/phrases/words.txt", "phrases"),
    ("site/phrases-1.0.dist-info/METADATA", "phrases"), ("site/msgspec/_core*.so", "msgspec"),
    ("site/msgspec/__init__.py", "msgspec"),
    ("site/anyio/_core/_tasks.py", "anyio")]


@pytest.mark.parametrize(("file", "owner"), KINDS)
def test_one_changed_byte_is_refused_by_name(synced: World, file: str, owner: str) -> None:
    (path,) = synced.set.glob(file)
    good = path.read_bytes()
    try:
        path.write_bytes((good[:-1] if good else b"") + (b"#" if good[-1:] != b"#" else b"!"))
        done = synced.run()
    finally:
        path.write_bytes(good)
    said = done.stdout + done.stderr
    assert str(path) in said and owner in said and "has changed since it was locked" in said
    assert "the model was asked" not in said and "greeter 1.0" not in said
    if owner.startswith("plugin"):
        assert done.returncode == 1 and synced.imported() == [], "refused before any plugin's code was imported"


def test_verify_names_every_changed_file(synced: World) -> None:
    assert synced.harness("verify").stdout.endswith("files of 5 plugins are as they were locked\n")
    good = {path: path.read_bytes() for file, _ in KINDS for path in synced.set.glob(file)}
    try:
        for path, content in good.items():
            path.write_bytes(b"x" + content[1:])
        said = json.loads(synced.harness("verify", "--json", ok=1).stdout)
    finally:
        for path, content in good.items():
            path.write_bytes(content)
    assert {p["file"] for p in said["problems"]} == {str(path) for path in good} and not said["ok"]
    assert {p["owner"] for p in said["problems"]} == {owner for _, owner in KINDS}


def test_a_missing_file_is_refused_by_name(synced: World) -> None:
    path = synced.set / "site/greeter_pkg/skills/hello/SKILL.md"
    good = path.read_bytes()
    try:
        path.unlink()
        done = synced.run(ok=1)
    finally:
        path.write_bytes(good)
    assert f"plugin greeter: {path} cannot be read (No such file or directory)" in done.stderr


def test_a_missing_file_of_a_dependency_is_refused_by_name(synced: World) -> None:
    path = synced.set / "site/phrases/words.txt"
    good = path.read_bytes()
    try:
        path.unlink()
        done = synced.run()
    finally:
        path.write_bytes(good)
    assert f"{path} of phrases cannot be read (No such file or directory)" in done.stdout + done.stderr
    assert "greeter 1.0" not in done.stdout + done.stderr


@pytest.mark.parametrize("file", ["site/greeter_pkg/more.py", "site/greeter_pkg/skills/evil/SKILL.md",
                                  "plugins/notes/hooks/hooks.json", "site/blocker_pkg/hooks/hooks.json",
                                  "plugins/notes/skills/__pycache__/SKILL.md", "site/greeter_pkg/commands/__pycache__/x.md"])
def test_a_file_that_nobody_locked_is_refused_by_name(synced: World, file: str) -> None:
    path = synced.set / file
    made = next(p for p in [*path.parents][::-1] if not p.exists()) if not path.parent.exists() else path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{}")
    try:
        done = synced.run(ok=1)
        assert f"{path} is not in the lock" in done.stderr and synced.imported() == []
    finally:
        shutil.rmtree(made) if made.is_dir() else made.unlink()


# -- what is not locked -------------------------------------------------------------------------------------------------
def test_a_planted_pycache_is_not_run(synced: World) -> None:
    """Its dates and size fit, so Python itself would run it."""
    code = synced.python("-c", PLANT, str(synced.set / "site/greeter_pkg/plugin.py"))
    assert synced.python("-c", "import greeter_pkg.plugin", PYTHONPATH=str(synced.set / "site"), ok=99)
    try:
        done = synced.run()
        assert "greeter 1.0" in done.stdout + done.stderr and done.returncode != 99
    finally:
        shutil.rmtree(Path(code.stdout.strip()).parent)


def test_a_plugin_that_is_not_locked_does_not_load(synced: World, tmp_path: Path) -> None:
    extra = folder(tmp_path / "extra", "extra")
    said = json.loads(synced.python("-c", STATES, str(extra)).stdout)
    assert ["extra", "blocked", f"is not in {synced.lock}, so it does not load"] in said["plugins"]
    assert any("plugin extra: is not in" in text for text in said["announced"])


def test_plugins_of_the_environment_and_of_the_set_that_are_not_locked_do_not_load(synced: World) -> None:
    info = synced.set / "site/stray-1.dist-info"
    info.mkdir()
    try:
        (info / "entry_points.txt").write_text("[kernel.plugins]\nstray = stray.plugin\n")
        done = synced.run("--verbose", "--output-format", "stream-json")
        assert "plugin stray: " in done.stdout + done.stderr and "manager" not in done.stdout + done.stderr
    finally:
        shutil.rmtree(info)


def test_a_module_that_is_not_locked_cannot_be_imported(synced: World) -> None:
    """Neither from the set nor from the environment around it: pytest is installed here."""
    stray = synced.set / "site/stray.py"
    program = ("import sys\nfrom kernel.cli import main\nmain(['--harness', 'harness.yaml', '-p', 'x'])\n"
               "for name in ('pytest', 'stray', 'phrases', 'kernel_manager', 'colorsys', 'importlib.metadata'):\n"
               "    try: __import__(name); print('HAVE', name)\n"
               "    except ImportError: print('LACK', name)\n"
               "import importlib.metadata as m; print('VERSION', m.version('phrases'))")
    try:
        stray.write_text("")
        said = synced.python("-c", program, ok=None).stdout
    finally:
        stray.unlink()
    words = [line for line in said.splitlines() if line.startswith(("HAVE", "LACK", "VERSION"))]
    assert words == ["LACK pytest", "LACK stray", "HAVE phrases", "LACK kernel_manager", "HAVE colorsys",
                     "HAVE importlib.metadata", "VERSION 1.0"]


# -- when it cannot run ----------------------------------------------------------------------------------------------------
def test_without_a_lock_without_a_set_and_with_a_broken_lock(world: World) -> None:
    plugin_wheel(world.wheels, "greeter", "1.0")
    world.write("greeter")
    done = world.run(ok=1)
    assert f"{world.lock}: cannot be read: No such file or directory (kernel harness lock" in done.stderr
    world.harness("lock")
    done = world.run(ok=1)
    assert "plugin greeter: " in done.stderr and "there is no set in" in done.stderr and "kernel harness sync" in done.stderr
    good = world.lock.read_text()
    for bad in ("", "[]", "{}", good[:-20], good.replace('"lock": 1', '"lock": 2'),
                good.replace("greeter_pkg/plugin.py", "../plugin.py"),
                good.replace('"kernel": "0.', '"kernel": "9.')):
        world.lock.write_text(bad)
        done = world.run(ok=1)
        assert done.stderr.startswith(f"Error: {world.lock}: ") and "lock" in done.stderr.partition("(")[2]
    assert world.imported() == []


def test_a_harness_file_that_changed_is_announced_and_what_is_locked_runs(world: World) -> None:
    plugin_wheel(world.wheels, "greeter", "1.0")
    world.write("greeter")
    world.harness("sync")
    world.write("greeter", more="# more\n")
    done = world.run()
    assert "greeter 1.0" in done.stdout + done.stderr
    assert f"{world.file} has changed since kernel.lock was made" in done.stderr
    world.file.write_bytes(world.file.read_bytes().replace(b"# more\n", b"").replace(b"\n", b"\r\n"))
    assert "has changed" not in world.run().stderr, "line endings are git's affair"
