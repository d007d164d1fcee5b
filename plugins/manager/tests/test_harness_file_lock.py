"""From harness.yaml to kernel.lock: the same file always gives the same bytes, and what does not fit is said with its line."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kernel_manager.errors import ManagerError
from kernel_manager.harness_file import lockfile, locking, model, resolve, wheels
from kernel_manager.harness_file.tools import Ways

from kernel import Settings

from .case_harness import World, info, library_wheel, manifest, plugin_project, plugin_wheel, write_wheel


@pytest.fixture
def world(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path, tmp_path_factory)


def locked(world: World, *args: str) -> dict[str, Any]:
    world.harness("lock", "--quiet", *args)
    data: dict[str, Any] = json.loads(world.lock.read_bytes())
    return data


def make(world: World, previous: lockfile.Lock | None = None) -> locking.Made:
    """The same in this process, for tables of errors."""
    work = world.home / f"work-{random.randrange(2**40)}"
    work.mkdir()
    return locking.make(model.read(world.file), Ways(find_links=[world.wheels, world.shared], no_index=True), previous, work)


# -- the same bytes ------------------------------------------------------------------------------------------------------
def test_an_unchanged_harness_gives_identical_bytes(world: World) -> None:
    """Again, from another folder, with another hash seed, with the folders of wheels named the other way round."""
    plugin_wheel(world.wheels, "greeter", "1.0")
    plugin_project(world.root / "mine", "mine", "0.1", ["greeter"])
    world.write("path: ./mine", more="settings: {b: 1, a: {d: [1, 2], c: null}}\n")
    first = locked(world)
    raw = world.lock.read_bytes()
    world.lock.unlink()
    world.kernel("harness", "lock", "--quiet", "--no-index", "--find-links", str(world.shared), "--find-links", str(world.wheels),
                 PYTHONHASHSEED="7")
    assert world.lock.read_bytes() == raw
    said = json.loads(world.harness("lock", "--json").stdout)
    assert (said["changed"], said["written"], said["differences"]) == (False, False, [])
    count = len(first["distributions"])
    assert world.harness("lock", "--check").stdout.endswith(f"is up to date: 4 plugins, {count} distributions\n")
    mine = first["distributions"]["mine"]
    assert list(first["settings"]) == ["a", "b"] and mine["source"] == {"kind": "folder", "spec": "./mine"}
    assert mine["archive"] is None, "an archive that is built here has no lasting digest"
    lines = raw.decode().splitlines()
    assert max(map(len, lines)) < 300 and sum("greeter_pkg/plugin.py" in line for line in lines) == 1, "one file a line"


def test_versions_stay_until_they_do_not_fit_or_an_upgrade_is_asked_for(world: World) -> None:
    for version in ("1.0", "1.1"):
        library_wheel(world.wheels, "phrases", version)
    plugin_wheel(world.wheels, "greeter", "1.0", ["phrases"])
    world.write("greeter", "phrases<1.1")
    assert locked(world)["distributions"]["phrases"]["version"] == "1.0"
    world.write("greeter")
    assert locked(world)["distributions"]["phrases"]["version"] == "1.0", "it still fits"
    assert "~ phrases 1.0 -> 1.1" in world.harness("lock", "--upgrade", "--check", ok=1).stdout
    world.write("greeter", "phrases>1.0")
    assert locked(world)["distributions"]["phrases"]["version"] == "1.1"


# -- the resolver ---------------------------------------------------------------------------------------------------------
def test_where_a_choice_must_be_taken_back_the_real_resolver_answers(world: World) -> None:
    library_wheel(world.wheels, "low", "1.0")
    library_wheel(world.wheels, "low", "2.0")
    library_wheel(world.wheels, "mid", "1.0", ["low<2"])
    library_wheel(world.wheels, "mid", "2.0", ["low>=2"])
    plugin_wheel(world.wheels, "greeter", "1.0", ["mid", "top"])
    library_wheel(world.wheels, "top", "1.0", ["pin"])
    library_wheel(world.wheels, "pin", "1.0", ["low==1.0"])
    world.write("greeter")
    done = world.harness("lock")
    assert "resolving with pip" in done.stderr
    versions = {n: d["version"] for n, d in json.loads(world.lock.read_bytes())["distributions"].items()}
    assert (versions["low"], versions["mid"]) == ("1.0", "1.0")
    assert "kernel-harness" not in versions, "the kernel is what runs the lock"
    raw = world.lock.read_bytes()
    world.harness("lock")
    assert world.lock.read_bytes() == raw
    world.harness("sync")
    assert "greeter 1.0" in world.run().stdout + world.run().stderr


@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed here")
def test_uv_and_pip_give_the_same_lock(world: World) -> None:
    library_wheel(world.wheels, "low", "1.0")
    library_wheel(world.wheels, "low", "2.0")
    library_wheel(world.wheels, "top", "1.0", ["mid"])
    library_wheel(world.wheels, "mid", "1.0", ["low<2"])
    plugin_wheel(world.wheels, "greeter", "1.0", ["low", "top"])
    world.write("greeter")
    assert "resolving with pip" in world.harness("lock").stderr
    raw = world.lock.read_bytes()
    world.lock.unlink()
    world.environment["PATH"] += f":{Path(str(shutil.which('uv'))).parent}"
    assert "resolving with uv" in world.harness("lock").stderr and world.lock.read_bytes() == raw


def test_what_is_found_without_a_resolver_is_what_pip_finds(world: World, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    kernel = resolve.running_kernel()
    found, ways, roots = None, Ways(), list[str]()
    for number in range(50):  # until one needs no choice taken back: about every third
        folder = tmp_path / str(number)
        universe(folder, dice)
        roots = [*(f"lib-{n}" for n in dice.sample(range(10), 3)), *kernel.requires]
        ways = Ways(find_links=[folder, world.shared], no_index=True)
        found = resolve._Walk(ways, [kernel], {}).run(roots)
        if found is not None:
            break
    assert found is not None
    by_pip = resolve._by_program(roots, [], kernel, {}, ways, tmp_path)
    assert {f.name: f.version for f in found if f.name != resolve.KERNEL} == {a.facts.name: a.facts.version for a in by_pip}


def universe(folder: Path, dice: random.Random) -> None:
    """Ten libraries in several versions that ask for ranges of each other."""
    for n in range(10):
        for version in sorted(dice.sample(["1.0", "1.1", "1.2", "2.0"], dice.randint(2, 4))):
            others = [m for m in range(10) if m != n and dice.random() < 0.13]
            ranges = ["", ">=1.0", "<2", ">=1.0,!=2.0", "<1.2"]
            library_wheel(folder, f"lib-{n}", version, [f"lib-{m}{dice.choice(ranges)}" for m in others])


def test_extras_and_markers_count(world: World) -> None:
    for name in ("one", "two", "three"):
        library_wheel(world.wheels, name, "1.0")
    library_wheel(world.wheels, "choice", "1.0", ['one; extra == "x"', 'two; extra == "y"', 'three; python_version < "3"'])
    world.write('"choice[x]"')
    have = locked(world)["distributions"]
    assert "one" in have and "two" not in have and "three" not in have
    assert "choice brings no plugin" in world.harness("lock").stdout


# -- other sources ---------------------------------------------------------------------------------------------------------
def git(folder: Path, *args: str) -> str:
    done = subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main", *args],
                          cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def repository(folder: Path) -> str:
    git(folder, "init", "-q")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-qm", "one")
    return git(folder, "rev-parse", "HEAD")


def test_git_sources_are_locked_by_commit(world: World, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    plugin_project(repo / "code", "coded", "1.0")
    (repo / "notes/skills/one").mkdir(parents=True)
    (repo / "notes/skills/one/SKILL.md").write_text("one")
    commit = repository(repo)
    world.write(f"{{git: 'file://{repo}', ref: main, folder: code}}", f"{{git: 'file://{repo}', folder: notes}}")
    data = locked(world)
    assert data["distributions"]["coded"]["source"]["pin"] == f"git+file://{repo}@{commit}#code"
    assert data["plugins"]["notes"]["source"]["pin"] == f"git+file://{repo}@{commit}#notes"
    (repo / "code/src/coded_pkg/words.py").write_text("VERSION = 'later'\n")
    git(repo, "commit", "-qam", "two")
    world.harness("sync", "--frozen")
    said = world.run()
    assert "coded 1.0" in said.stdout + said.stderr, "the locked commit, not the branch"


def test_requirements_with_a_url_are_locked_by_commit(world: World, tmp_path: Path) -> None:
    plugin_project(tmp_path / "repo", "coded", "1.0")
    commit = repository(tmp_path / "repo")
    library_wheel(tmp_path / "elsewhere", "phrases", "1.0")
    world.write(f"'coded @ git+file://localhost{tmp_path}/repo@main'",
                f"'phrases @ file://{tmp_path}/elsewhere/phrases-1.0-py3-none-any.whl'")
    data = locked(world)
    assert data["distributions"]["coded"]["source"]["pin"] == f"git+file://localhost{tmp_path}/repo@{commit}"
    assert data["distributions"]["coded"]["archive"] is None
    raw = world.lock.read_bytes()
    assert locked(world) and world.lock.read_bytes() == raw
    world.harness("sync", "--frozen")
    said = world.run()
    assert "coded 1.0" in said.stdout + said.stderr


@pytest.mark.parametrize("kind", ["folder", "git"])
def test_marketplace_entries(world: World, tmp_path: Path, kind: str) -> None:
    market = world.root / "market"
    (market / "plugins/notes/skills/one").mkdir(parents=True)
    (market / "plugins/notes/skills/one/SKILL.md").write_text("one")
    (market / ".claude-plugin").mkdir()
    (market / ".claude-plugin/marketplace.json").write_text(json.dumps({
        "name": "team", "owner": {"name": "t"}, "plugins": [{"name": "notes", "source": "./plugins/notes"}]}))
    where, pin = "./market", "./market/plugins/notes"
    if kind == "git":
        commit = repository(market)
        where, pin = f"git+file://{market}", f"git+file://{market}@{commit}#plugins/notes"
    world.write("notes@team", more=f"marketplaces: {{team: '{where}'}}\n")
    data = locked(world)
    assert data["plugins"]["notes"]["source"] == {"kind": "entry", "spec": "notes@team", "pin": pin}
    assert list(data["plugins"]["notes"]["files"]) == ["skills/one/SKILL.md"]
    (market / ".claude-plugin/marketplace.json").unlink()
    world.harness("sync", "--frozen")
    assert (world.set / "plugins/notes/skills/one/SKILL.md").read_text() == "one"
    world.harness("verify")


def test_managed_settings_decide_about_sources_here_too(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    managed = tmp_path / "managed"
    managed.mkdir()
    (managed / "managed-settings.json").write_text('{"strictKnownMarketplaces": []}')
    load = Settings.load
    monkeypatch.setattr(Settings, "load", lambda cwd: load(cwd, managed_dir=str(managed)))
    for plugin, words in [(f"{{git: 'file://{tmp_path}/repo'}}", "managed settings allow plugins of listed marketplaces only"),
                          ("x@team", "is none that managed settings allow")]:
        world.write(plugin, more="marketplaces: {team: ./market}\n")
        with pytest.raises(ManagerError) as caught:
            make(world)
        assert words in str(caught.value) and f"{world.file}, line 6" in str(caught.value)


# -- what does not fit -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("text", "line", "words"), [
    ("", 1, "is empty"), ("- a\n", 1, "must be a mapping"), ("harness: 1\nplugins: [\n", 3, "is not valid YAML"),
    ("plugins: []\n", 1, "missing required field `harness`"), ("harness: 2\n", 1, "harness: Invalid enum value 2"),
    ("harness: 1\n\nplugns: []\n", 3, "plugns: there is no such field (did you mean 'plugins'?)"),
    ("harness: 1\nplugins:\n  - a\n  - {requirment: b}\n", 4, "requirment: there is no such field (did you mean 'requirement'?)"),
    ("harness: 1\nplugins:\n  - path: ./a\n    git: b\n", 3, "plugins[0]: a plugin is named in exactly one way, here are 2"),
    ("harness: 1\nplugins:\n  - {}\n", 3, "here are 0"),
    ("harness: 1\nplugins:\n  - 5\n", 3, "plugins[0]: Expected `str | object`"),
    ("harness: 1\nplugins:\n  - path: x\n    ref: y\n", 4, "plugins[0].ref: goes with git only"),
    ("harness: 1\nplugins:\n  - a b c\n", 3, "'a b c' is no Python requirement"),
    ("harness: 1\nplugins:\n  - x@unknown\n", 3, "add marketplaces: {unknown: owner/repo}"),
    ("harness: 1\nname: 1\n", 2, "name: Expected `str | null`, got `int`"),
    ("harness: 1\nname: a\nname: b\n", 3, "stands twice"),
    ("harness: 1\nsettings: {a: 2020-01-01}\n", 2, "a date is not taken here (put it in quotes)"),
    ("harness: 1\nsettings: {a: .nan}\n", 2, "numbers must be finite"),
    ("harness: 1\nsettings: {1: a}\n", 2, "a key must be text"),
    ("harness: 1\nsettings: {a: &x [1], b: *x}\n", 2, "aliases are not taken"),
    ("harness: 1\nsettings: {a: !!python/name:x y}\n", 2, "the value cannot be read"),
    ("harness: 1\nblock: [a, b, a]\n", 2, "block[2]: 'a' stands twice"),
    ("harness: 1\nsettings: {a: \xff}\n", 2, "is not UTF-8 text"),
    ("harness: 1\nsettings: " + "[" * 80 + "]" * 80, 2, "nested"),
    ("harness: 1\nsettings: " + "[" * 5000 + "]" * 5000, None, "nest"),
    ("harness: 1\nsettings: {a: '\\ud800'}\n", 2, None),
    ('harness: 1\nsettings: {a: "\\ud800"}\n', 2, "is not valid YAML: found invalid Unicode"),
])
def test_a_harness_file_that_does_not_fit(tmp_path: Path, text: str, line: int | None, words: str | None) -> None:
    path = tmp_path / "harness.yaml"
    raw = text.encode("latin-1")
    if words is None:
        model.from_bytes(path, raw)
        return
    with pytest.raises(ManagerError) as caught:
        model.from_bytes(path, raw)
    where = f"{path}, line {line}: " if line else str(path)
    assert str(caught.value).startswith(where) and words in str(caught.value)


def test_a_set_that_does_not_fit(world: World) -> None:
    plugin_wheel(world.wheels, "greeter", "1.0")
    plugin_wheel(world.wheels, "needy", "1.0", dependencies=["greeter"])
    package = {"twin_pkg/.claude-plugin/plugin.json": manifest("greeter", "1", []).encode(), "twin_pkg/plugin.py": b""}
    write_wheel(world.wheels, "twin", "1.0", package, info("twin", "1.0", [], "greeter = twin_pkg.plugin"))
    write_wheel(world.wheels, "bare", "1.0", {"bare_pkg/plugin.py": b""}, info("bare", "1.0", [], "bare = bare_pkg.plugin"))
    write_wheel(world.wheels, "liar", "1.0", {"liar_pkg/.claude-plugin/plugin.json": manifest("other", "1", []).encode()},
                info("liar", "1.0", [], "liar = liar_pkg.plugin"))
    later = json.dumps({"name": "future", "metadata": {"kernel": {"requires": ">=99"}}}).encode()
    write_wheel(world.wheels, "future", "1.0", {"future_pkg/.claude-plugin/plugin.json": later},
                info("future", "1.0", [], "future = future_pkg.plugin"))
    for plugins, more, words in [
            (["greeter", "twin"], "", "the plugin 'greeter' comes from greeter and from twin"),
            (["bare"], "", "the wheel does not carry the manifest in the package folder"),
            (["liar"], "", "the manifest names 'other', the entry point 'liar': they must agree"),
            (["future"], "", "plugin future: needs kernel >=99, this is"),
            (["needy"], "", "plugin needy: needs the plugin 'greeter', which is not part of this harness"),
            (["needy", "greeter"], "block: [greeter]\n", "which is blocked"),
            (["greeter"], "order: [headless, greter]\n", "line 7: order[1]: there is no plugin 'greter' in this harness "
                                                         "(did you mean 'greeter'?)"),
            (["./nowhere"], "", "line 6: "), (["greeter>=5"], "", "greeter>=5"), (["path: ./file"], "", "is no folder")]:
        world.write(*plugins, more=more)
        with pytest.raises(ManagerError) as caught:
            make(world)
        assert words in str(caught.value), (plugins, str(caught.value))
    world.write("needy", "greeter", more="block: [greeter, needy]\n")
    assert sorted(make(world).lock.plugins) == ["greeter", "headless", "model-script", "needy"]


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil", "a/../../evil", "C:/evil", "a\\..\\evil",
                                  "x-1.0.data/purelib/../../evil"])
def test_a_wheel_that_leaves_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    path = library_wheel(tmp_path, "x", "1.0", files={name: b"evil"})
    with pytest.raises(ManagerError, match="leaves its folder"):
        wheels.digests(path)
    with pytest.raises(ManagerError, match="leaves its folder"):
        wheels.unpack(path, tmp_path / "site")
    assert not list(tmp_path.rglob("evil*"))


def test_two_distributions_with_one_file(world: World) -> None:
    for name in ("one", "two"):
        library_wheel(world.wheels, name, "1.0", files={"shared/x.py": name.encode()})
    world.write("one", "two")
    world.harness("lock")
    assert "the file 'shared/x.py' is in another distribution, too" in world.harness("sync", ok=1).stderr
