"""What plugins need of each other, in versions that fit all (plugins contract, section 8)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kernel_manager.errors import ManagerError
from kernel_manager.versions import Range, Version, highest


@pytest.mark.parametrize(("range", "fits", "fails"), [
    ("1.2.3", ["1.2.3", "v1.2.3", "1.2.3+build"], ["1.2.4", "1.2.3-rc.1"]), ("=1.2.3", ["1.2.3"], ["1.2.2"]),
    ("^1.2.3", ["1.2.3", "1.9.9"], ["1.2.2", "2.0.0", "2.0.0-rc.1", "1.3.0-rc.1"]), ("^0.2.3", ["0.2.9"], ["0.3.0"]),
    ("^0.0.3", ["0.0.3"],
     ["0.0.4"]), ("^0.0", ["0.0.9"], ["0.1.0"]), ("^0", ["0.9.0"], ["1.0.0"]), ("^1.x", ["1.0.0"], ["2.0.0"]),
    ("~1.2.3", ["1.2.9"],
     ["1.3.0"]), ("~1.2", ["1.2.0"], ["1.3.0"]), ("~1", ["1.9.0"], ["2.0.0"]), ("~>1.2", ["1.2.5"], ["1.3.0"]),
    (">=1.2 <2", ["1.2.0", "1.9.9"], ["1.1.9", "2.0.0"]), (">= 1.2.3", ["1.2.3"], ["1.2.2"]), (">1", ["2.0.0"], ["1.9.9"]),
    (">1.2", ["1.3.0"], ["1.2.9"]), ("<=1", ["1.9.9"], ["2.0.0"]), ("<1.2", ["1.1.9"], ["1.2.0"]),
    ("1.x", ["1.5.0"], ["2.0.0"]), ("1", ["1.0.0", "1.9.9"],
                                    ["2.0.0"]), ("1.2.*", ["1.2.7"], ["1.3.0"]), ("*", ["0.0.1"], ["1.0.0-rc"]),
    ("", ["3.2.1"], ["3.2.1-rc"]), ("1.2 - 2.3", ["1.2.0", "2.3.9"], ["1.1.9", "2.4.0"]), ("1.2.3 - 2.3.4", ["2.3.4"], ["2.3.5"]),
    ("^1 || ^3", ["1.1.0", "3.9.0"],
     ["2.0.0"]), (">=1.0.0-rc.1", ["1.0.0-rc.2", "1.0.0", "2.0.0"], ["2.0.0-rc.1", "1.0.0-alpha"]),
    ("^1.0.0-rc.1", ["1.0.0-rc.1", "1.5.0"], ["1.5.0-rc.1"]), ("<*", [], ["1.0.0"])])
def test_ranges_as_npm_reads_them(range: str, fits: list[str], fails: list[str]) -> None:
    read = Range(range)
    assert [v for v in fits if not read.allows(v)] == [] and [v for v in fails if read.allows(v)] == []


@pytest.mark.parametrize("text", ["no", "1.2.3.4", "^", "> <", "1.2.3 foo", ">=1 !2", "1" * 300, "1..2", "^^1"])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(ManagerError) as error:
        Range(text)
    assert error.value.type == "bad-range"


def test_versions_have_an_order() -> None:
    order = ("0.9.0 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 "
             "1.2.0 1.10.0").split()
    shuffled = order[::-1]
    assert sorted(shuffled, key=lambda v: Version.parse(v)) == order  # type: ignore[arg-type,return-value]
    assert Version.parse("1.0") is None and Version.parse("latest") is None
    assert highest(["1.2.0", "1.10.0", "2.0.0", "nonsense"], [Range("^1"), Range("<1.11")]) == "1.10.0"


def test_what_it_needs_comes_along_and_goes_with_prune(world: Any) -> None:
    world.ok("marketplace", "add", world.market("acme", {
        "app": {"dependencies": ["lib", {"name": "util",
                                         "version": "^1.0"}]}, "lib": {"dependencies": ["util"]}, "util": {"version": "1.4.0"},
        "other": {}}))
    done = world.ok("install", "app@acme", "--json").json
    assert sorted(done["dependencies"]) == ["lib@acme", "util@acme"]
    assert world.versions() == {"app@acme": "1.0.0", "lib@acme": "1.0.0", "util@acme": "1.4.0"}
    assert {id for id, row in world.listed().items() if row["auto"]} == {"lib@acme", "util@acme"}
    world.refused("needed", "disable", "util")
    assert "kernel plugins uninstall lib@acme && " in world.refused("needed", "uninstall", "util").json["error"]["hint"]
    world.ok("install", "util@acme")  # asked for by a person now
    world.ok("uninstall", "app")
    assert json.loads(world.ok("prune", "--json").out)["removed"] == ["lib@acme"], "without a terminal it only says so"
    assert "lib@acme" in world.versions()
    world.ok("prune", "--yes")
    assert world.versions() == {"util@acme": "1.4.0"}
    world.ok("install", "app@acme")
    world.ok("uninstall", "app", "--prune")
    assert world.versions() == {"util@acme": "1.4.0"}
    world.ok("rollback")
    assert set(world.versions()) == {"app@acme", "lib@acme", "util@acme"}


def test_enabling_switches_on_what_is_needed(world: Any) -> None:
    world.ok("marketplace", "add", world.market("acme", {"app": {"dependencies": ["lib"]}, "lib": {}}))
    world.ok("install", "app@acme")
    world.ok("disable", "--all")
    assert world.versions() == {}
    world.ok("enable", "app")
    assert set(world.versions()) == {"app@acme", "lib@acme"}


def test_an_install_again_brings_what_is_missing(world: Any) -> None:
    world.ok("marketplace", "add", world.market("acme", {"app": {"dependencies": ["lib"]}, "lib": {}}))
    world.ok("install", "app@acme")
    state = json.loads(world.state_file.read_text())
    del state["plugins"]["lib@acme"]
    world.state_file.write_text(json.dumps(state))
    assert world.ok("install", "app@acme", "--json").json["dependencies"] == ["lib@acme"]
    assert set(world.versions()) == {"app@acme", "lib@acme"}


def test_a_cycle_and_itself_are_fine(world: Any) -> None:
    world.ok("marketplace", "add", world.market("acme", {"a": {"dependencies": ["b", "a"]}, "b": {"dependencies": ["c"]},
                                                         "c": {"dependencies": ["a"]}}))
    world.ok("install", "a@acme")
    assert set(world.versions()) == {"a@acme", "b@acme", "c@acme"}


@pytest.mark.parametrize(("plugins", "type"), [
    ({"app": {"dependencies": ["gone"]}}, "dependency-unsatisfied"),
    ({"app": {"dependencies": [{"name": "lib", "version": "^2"}]}, "lib": {"version": "1.0.0"}},
     "dependency-version-unsatisfied"),
    ({"app": {"dependencies": [{"name": "lib", "version": "^1"}, "mid"]},
      "mid": {"dependencies": [{"name": "lib", "version": "^2"}]},
      "lib": {"version": "1.0.0"}}, "range-conflict"),
    ({"app": {"dependencies": ["lib@elsewhere"]}}, "cross-marketplace"),
    ({"app": {"metadata": {"kernel": {"dependencies": ["no-such-plugin"]}}}}, "dependency-unsatisfied")])
def test_what_cannot_be_met_changes_nothing(world: Any, plugins: dict[str, Any], type: str) -> None:
    world.ok("marketplace", "add", world.market("acme", plugins))
    world.ok("marketplace", "add", world.market("elsewhere", {"lib": {}}))
    world.refused(type, "install", "app@acme")


def test_an_installed_plugins_range_binds_later_changes(world: Any) -> None:
    market = {"app": {"dependencies": [{"name": "lib", "version": "^1"}]}, "lib": {"version": "1.0.0"}}
    world.ok("marketplace", "add", world.market("acme", market))
    world.ok("install", "app@acme")
    world.market("acme", {**market, "lib": {"version": "2.0.0"}})
    world.refused("dependency-version-unsatisfied", "update", "lib@acme")
    world.market("acme", {**market, "lib": {"version": "1.1.0"}})
    world.ok("update", "lib@acme")
    assert world.versions()["lib@acme"] == "1.1.0"


def test_another_marketplace_only_where_the_root_says_so(world: Any) -> None:
    world.ok("marketplace", "add",
             world.market("libs", {"lib": {"dependencies": [{"name": "deep", "marketplace": "third"}]}, "plain": {}}))
    world.ok("marketplace", "add", world.market("third", {"deep": {}}))
    app = {"app": {"dependencies": ["plain@libs"]}, "far": {"dependencies": ["lib@libs"]}}
    world.ok("marketplace", "add", world.market("acme", app, allowCrossMarketplaceDependenciesOn=["libs"]))
    world.ok("install", "app@acme")
    assert set(world.versions()) == {"app@acme", "plain@libs"}
    world.refused("cross-marketplace", "install", "far@acme")
    world.ok("install", "deep@third")  # by the person
    world.ok("install", "far@acme")


def test_tags_of_a_repository_answer_a_range(world: Any) -> None:
    folder = world.market("acme",
                          {"app": {"dependencies": [{"name": "lib", "version": ">=1.1 <2"}]}, "lib": {"version": "1.0.0"}})
    world.commit(folder, "lib--v1.0.0")
    for version, tag in (("1.1.0", True), ("1.2.0", True), ("2.0.0-rc.1", True), ("2.0.0", False)):
        world.plugin("lib", version, folder=folder / "plugins" / "lib")
        world.commit(folder, f"lib--v{version}" if tag else None)
    world.ok("marketplace", "add", f"file://{folder}/.git")
    world.ok("install", "app@acme")
    assert world.versions() == {"app@acme": "1.0.0", "lib@acme": "1.2.0"}
    world.ok("uninstall", "app", "--prune")
    world.ok("install", "lib@acme")
    assert world.versions() == {"lib@acme": "2.0.0"}


def test_a_range_without_a_tag(world: Any) -> None:
    lib = world.plugin("lib", "1.0.0")
    world.commit(lib, "lib--v1.0.0")
    source = {"source": {"source": "url", "url": f"file://{lib}"}}
    world.ok("marketplace", "add",
             world.market("acme", {"app": {"dependencies": [{"name": "lib", "version": "^3"}]}, "lib": {"entry": source}}))
    world.refused("no-matching-tag", "install", "app@acme")


def test_a_direct_plugin_says_what_to_install_first(world: Any) -> None:
    app = world.plugin("app", dependencies=[{"name": "lib", "version": "^1"}])
    assert "install lib first" in world.refused("dependency-unsatisfied", "install", app).json["error"]["hint"]
    world.ok("install", world.plugin("lib", "1.5.0"))
    world.ok("install", app)
    assert set(world.versions()) == {"app@installed", "lib@installed"}


# -- entries ---------------------------------------------------------------------------------------------------------------
def test_what_the_entry_adds_is_part_of_the_plugin(world: Any) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}
    folder = world.market("acme", {"fmt": {"entry": {"hooks": hooks, "mcpServers": {"db": {"command": "db"}}, "version": "9"}}})
    (folder / "plugins" / "bare" / "skills" / "x").mkdir(parents=True)
    (folder / "plugins" / "bare" / "skills" / "x" / "SKILL.md").write_text("---\ndescription: x\n---\n")
    data = json.loads((folder / ".claude-plugin" / "marketplace.json").read_text())
    data["plugins"].append({"name": "bare", "source": "./plugins/bare", "version": "3.1.0", "strict": False, "agents": [],
                            "hooks": hooks})
    (folder / ".claude-plugin" / "marketplace.json").write_text(json.dumps(data))
    world.ok("marketplace", "add", folder)
    world.ok("install", "fmt@acme", "--yes")
    world.ok("install", "bare@acme", "--yes")
    fmt, bare = (json.loads(world.ok("info", name, "--json").out) for name in ("fmt", "bare"))
    assert (fmt["version"], fmt["hooks"], fmt["mcpServers"]) == ("1.0.0", {"PreToolUse": 1}, ["db"]), "plugin.json's version wins"
    assert (bare["version"], bare["hooks"], bare["skills"]) == ("3.1.0", {"PreToolUse": 1}, ["x"])


def test_an_entry_that_is_the_whole_definition_does_not_bear_a_second_one(world: Any) -> None:
    world.ok("marketplace", "add",
             world.market("acme", {"fmt": {"commands": "./skills/hello/SKILL.md", "entry": {"strict": False}}}))
    world.refused("strict-conflict", "install", "fmt@acme")


def test_a_list_of_skills_at_the_marketplaces_root_is_complete(world: Any) -> None:
    folder = world.market("acme",
                          {"docs": {"entry": {"source": "./", "strict": False, "skills": ["./skills/pdf", "./skills/word"]}}})
    for name in ("pdf", "word", "secret"):
        (folder / "skills" / name).mkdir(parents=True)
        (folder / "skills" / name / "SKILL.md").write_text("---\ndescription: x\n---\n")
    world.ok("marketplace", "add", folder)
    world.ok("install", "docs@acme")
    assert json.loads(world.ok("info", "docs", "--json").out)["skills"] == ["pdf", "word"]


def test_names_fold_and_renames_are_followed(world: Any) -> None:
    world.ok("marketplace", "add", world.market("acme", {"Fmt": {}}, renames={"old": "older", "older": "Fmt", "gone": None}))
    for name in ("fmt@acme", "old@acme"):
        assert world.ok("install", name, "--json").json["id"] == "Fmt@acme"
    assert "was removed" in world.refused("not-found", "install", "gone@acme").json["error"]["message"]
    assert "did you mean 'fmt'" in world.refused("not-found", "install", "fmtt@acme").json["error"]["hint"]


def test_a_plugin_that_is_off_by_default(world: Any) -> None:
    world.ok("marketplace", "add", world.market("acme", {"app": {"dependencies": ["quiet"]}, "quiet": {"defaultEnabled": False}}))
    world.ok("install", "quiet@acme")
    assert world.versions() == {} and "quiet@acme" in world.listed()
    world.ok("install", "app@acme")
    assert set(world.versions()) == {"app@acme", "quiet@acme"}, "one that is needed is on"


def test_the_same_version_is_up_to_date_whatever_its_files_say(world: Any) -> None:
    market = {"fmt": {"version": "1.0.0"}}
    world.ok("marketplace", "add", world.market("acme", market))
    world.ok("install", "fmt@acme")
    world.plugin("fmt", "1.0.0", folder=world.root / "markets" / "acme" / "plugins" / "fmt", files={"new.md": "x"})
    done = world.ok("update", "fmt", "--json").json
    assert done["changed"] is False and "still 1.0.0" in done["warnings"][0]


def test_two_hundred_plugins(world: Any) -> None:
    names = [f"p{n:03}" for n in range(200)]
    plugins = {name: {"dependencies": [{"name": names[n + 1], "version": "^1"}] if n < 199 else []} for n,
               name in enumerate(names)}
    world.ok("marketplace", "add", world.market("acme", plugins))
    world.ok("install", "p000@acme")
    assert len(world.versions()) == 200
    assert world.ok("install", "p000@acme", "--json").json["changed"] is False
    world.ok("rollback")
    assert world.versions() == {}
