"""Scopes, trust, managed policy: who may switch what on, and where it is written (plugins contract, section 9)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernel import Settings


def enabled_here(world: Any) -> dict[str, str]:
    """What a run in the project would take part with, as the kernel finds it: id -> version."""
    from kernel import Harness

    return {p.id: p.version for p in Harness().plugins if p.source == "installed" and p.state == "ready"}


def test_other_keys_and_their_order_stay(world: Any) -> None:
    path = world.config / "settings.json"
    path.write_text('{"zeta": 1, "model": "opus", "enabledPlugins": {"other@there": false}, "alpha": {"ü": [1, 2]}}')
    path.chmod(0o640)
    world.ok("install", world.plugin("fmt"))
    data = json.loads(path.read_text())
    assert list(data) == ["zeta", "model", "enabledPlugins", "alpha"] and data["alpha"] == {"ü": [1, 2]}
    assert data["enabledPlugins"] == {"other@there": False, "fmt@installed": True}
    assert path.stat().st_mode & 0o777 == 0o640
    world.ok("uninstall", "fmt")
    assert json.loads(path.read_text())["enabledPlugins"] == {"other@there": False}


def test_a_settings_file_that_is_a_link_is_written_at_its_target(world: Any) -> None:
    target = world.root / "dotfiles.json"
    target.write_text("{}")
    (world.config / "settings.json").symlink_to(target)
    world.ok("install", world.plugin("fmt"))
    assert (world.config / "settings.json").is_symlink() and "fmt@installed" in target.read_text()


@pytest.mark.parametrize("text", ["{", "[]", '{"enabledPlugins": [1]}'])
def test_settings_that_cannot_be_edited_are_never_overwritten(world: Any, text: str) -> None:
    (world.config / "settings.json").write_text(text)
    world.refused("bad-settings", "install", world.plugin("fmt"))
    assert (world.config / "settings.json").read_text() == text


@pytest.mark.parametrize(("scope", "file"), [("project", "settings.json"), ("local", "settings.local.json")])
def test_a_project_scope_counts_in_a_trusted_project_only(world: Any, scope: str, file: str,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    done = world.ok("install", world.plugin("fmt"), "--scope", scope, "--json").json
    assert "not been trusted" in done["warnings"][0]
    assert json.loads((world.project / ".claude" / file).read_text()) == {"enabledPlugins": {"fmt@installed": True}}
    assert not (world.config / "settings.json").exists()
    assert enabled_here(world) == {}, "not trusted"
    world.trust()
    assert enabled_here(world) == {"fmt@installed": "1.0.0"}
    other = world.root / "other"
    (other / ".claude").mkdir(parents=True)
    (other / ".claude" / file).write_text('{"enabledPlugins": {"fmt@installed": true}}')
    world.trust(other)
    monkeypatch.chdir(other)
    assert enabled_here(world) == {}, "another project's word installs nothing"
    from kernel import Harness

    assert any("kernel plugins install fmt@installed" in text for text in Harness().announced)


def test_the_projects_version_comes_before_the_users(world: Any) -> None:
    world.trust()
    world.ok("install", world.plugin("fmt", "1.0.0"))
    world.ok("install", world.plugin("fmt", "2.0.0"), "--scope", "local")
    assert enabled_here(world) == {"fmt@installed": "2.0.0"}
    world.ok("uninstall", "fmt", "--scope", "local")
    assert enabled_here(world) == {"fmt@installed": "1.0.0"}


def test_a_project_cannot_switch_off_or_on_what_it_is_not_trusted_with(world: Any) -> None:
    world.ok("install", world.plugin("guard"))
    (world.project / ".claude").mkdir()
    (world.project / ".claude" / "settings.json").write_text('{"enabledPlugins": {"guard@installed": false}}')
    assert enabled_here(world) == {"guard@installed": "1.0.0"}
    world.trust()
    assert enabled_here(world) == {}


def test_an_untrusted_project_declares_no_marketplace(world: Any) -> None:
    folder = world.market("acme", {"fmt": {}})
    (world.project / ".claude").mkdir()
    declared = {"extraKnownMarketplaces": {"acme": {"source": {"source": "directory", "path": str(folder)}}}}
    (world.project / ".claude" / "settings.json").write_text(json.dumps(declared))
    world.refused("not-found", "install", "fmt@acme")
    world.trust()
    world.ok("install", "fmt@acme")
    assert world.versions() == {"fmt@acme": "1.0.0"}
    assert "acme" in json.loads(world.state_file.read_text())["marketplaces"]


def test_the_public_layout_is_read(world: Any) -> None:
    """What the reference installed is loaded from where it lies, and its marketplaces are known."""
    folder = world.plugin("pub", "3.0.0", folder=world.config / "plugins" / "cache" / "acme" / "pub" / "3.0.0")
    record = {"scope": "user", "installPath": str(folder), "version": "3.0.0", "installedAt": "x", "lastUpdated": "x"}
    (world.config / "plugins" / "installed_plugins.json").write_text(json.dumps({"version": 2,
                                                                                 "plugins": {"pub@acme": [record]}}))
    market = world.market("acme", {"fmt": {}})
    known = {"acme": {"source": {"source": "directory", "path": str(market)}, "installLocation": str(market), "lastUpdated": "x"}}
    (world.config / "plugins" / "known_marketplaces.json").write_text(json.dumps(known))
    assert enabled_here(world) == {}
    (world.config / "settings.json").write_text('{"enabledPlugins": {"pub@acme": true}}')
    assert enabled_here(world) == {"pub@acme": "3.0.0"}
    world.ok("install", "fmt@acme")
    assert enabled_here(world) == {"pub@acme": "3.0.0", "fmt@acme": "1.0.0"}


def test_a_state_file_that_cannot_be_read_is_said_and_has_a_way_back(world: Any) -> None:
    from kernel import Harness

    world.ok("install", world.plugin("fmt"))
    world.ok("install", world.plugin("lint"))
    world.state_file.write_text("{torn")
    assert any("state.json" in text and "rollback" in text for text in Harness().announced)
    assert world.run("install", world.plugin("third"), "--json").json["error"]["type"] == "bad-state"
    world.ok("rollback")
    assert world.versions() == {"fmt@installed": "1.0.0"}


def test_a_distribution_or_another_plugin_keeps_its_name(world: Any) -> None:
    world.refused("name-clash", "install", world.plugin("permissions"))
    world.ok("install", world.plugin("fmt"))
    world.ok("marketplace", "add", world.market("acme", {"fmt": {}}))
    world.refused("name-clash", "install", "fmt@acme")
    world.ok("disable", "fmt@installed")
    world.ok("install", "fmt@acme")
    world.refused("name-clash", "enable", "fmt@installed")
    assert world.run("enable", "fmt", "--json").json["error"]["type"] == "ambiguous"


def test_plugin_dir_hides_an_installed_one_for_the_run(world: Any) -> None:
    from kernel import Harness, Options

    world.ok("install", world.plugin("fmt", "1.0.0"))
    mine = world.plugin("fmt", "9.9.9", folder=world.root / "dev")
    (found,) = [p for p in Harness(Options(plugin_dirs=[mine])).plugins if p.name == "fmt"]
    assert (found.version, found.id) == ("9.9.9", "fmt@inline")


# -- managed policy --------------------------------------------------------------------------------------------------------
@pytest.fixture
def managed(world: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    folder = world.root / "managed"
    folder.mkdir()
    load = Settings.load
    monkeypatch.setattr(Settings, "load", lambda *a, **k: load(*a, **{**k, "managed_dir": str(folder)}))

    def write(**settings: Any) -> None:
        (folder / "managed-settings.json").write_text(json.dumps(settings))

    return write


def test_an_allowlist_of_marketplaces(world: Any, managed: Any) -> None:
    good, other = world.market("good", {"fmt": {}}), world.market("other", {"fmt": {}})
    world.ok("marketplace", "add", other)
    managed(strictKnownMarketplaces=[{"source": "directory", "path": str(good)}], pluginTrustMessage="ask the platform team")
    world.ok("marketplace", "add", good)
    done = world.refused("blocked-by-policy", "install", "fmt@other")
    assert done.json["error"]["hint"] == "ask the platform team"
    world.refused("blocked-by-policy", "marketplace", "add", world.market("third", {}))
    world.refused("blocked-by-policy", "install", world.plugin("direct"))
    world.ok("install", "fmt@good")
    managed(strictKnownMarketplaces=[])
    world.refused("blocked-by-policy", "install", "fmt@good")


@pytest.mark.parametrize("spelling", [{"source": "github", "repo": "Evil/Plugins"},
                                      {"source": "git", "url": "git@github.com:evil/plugins.git"},
                                      {"source": "url", "url": "https://github.com/evil/plugins.git"}, {"source": "github",
                                                                                                        "repo": "evil/*"}])
def test_a_blocked_repository_is_blocked_in_every_spelling(world: Any, managed: Any, spelling: dict[str, str]) -> None:
    managed(blockedMarketplaces=[spelling])
    for spec in ("evil/plugins", "https://github.com/EVIL/plugins", "git@github.com:evil/plugins.git", "evil/plugins@v1"):
        world.refused("blocked-by-policy", "marketplace", "add", spec)


def test_patterns_of_hosts_and_paths(world: Any, managed: Any) -> None:
    folder = world.market("acme", {"fmt": {}})
    managed(strictKnownMarketplaces=[{"source": "pathPattern", "pathPattern": f"{world.root}/markets/.*"},
                                     {"source": "hostPattern", "hostPattern": r"git\.corp"}])
    world.ok("marketplace", "add", folder)
    world.refused("blocked-by-policy", "marketplace", "add", "owner/repo")
    elsewhere = world.root / "elsewhere"
    folder.rename(elsewhere)
    world.refused("blocked-by-policy", "marketplace", "add", elsewhere)


def test_a_plugin_that_managed_settings_switch_off_or_on(world: Any, managed: Any) -> None:
    world.ok("install", world.plugin("fmt"))
    managed(enabledPlugins={"fmt@installed": True})
    world.refused("blocked-by-policy", "disable", "fmt")
    managed(enabledPlugins={"fmt@installed": False})
    world.refused("blocked-by-policy", "install", world.plugin("fmt", "2.0.0"))
    world.refused("blocked-by-policy", "update", "fmt")
    assert world.listed() == {}, "hidden"
    assert enabled_here(world) == {}


def test_command_sources_are_accepted_first_and_can_be_switched_off(world: Any, managed: Any) -> None:
    target = world.plugin("made", "1.0.0", folder=world.root / "made-here")
    program = world.root / "where"
    program.write_text(f"#!/bin/sh\ntouch {world.root}/ran\necho {target}\n")
    program.chmod(0o755)
    market = world.market("acme", {"made": {"entry": {"source": {"source": "command", "command": str(program)}}},
                                   "uses": {"dependencies": ["made"]}})
    world.ok("marketplace", "add", market)
    world.refused("command-not-accepted", "install", "made@acme")
    world.refused("dependency-unsatisfied", "install", "uses@acme")
    assert not (world.root / "ran").exists()
    for off in ({"disableCommandPluginSources": True}, {"allowManagedHooksOnly": True}):
        managed(**off)
        world.refused("blocked-by-policy", "install", "made@acme", "--yes")
    managed()
    assert not (world.root / "ran").exists()
    world.ok("install", "made@acme", "--yes")
    assert world.versions() == {"made@acme": "1.0.0"} and (world.root / "ran").exists()


def test_options_go_to_user_settings_and_secrets_nowhere(world: Any) -> None:
    option = {"title": "t", "description": "d"}
    source = world.plugin("fmt", userConfig={"width": {"type": "number", **option}, "on": {"type": "boolean", **option},
                                             "key": {"type": "string", "sensitive": True, **option}})
    world.ok("install", source, "--config", "width=80", "--config", "on=true")
    data = json.loads((world.config / "settings.json").read_text())
    assert data["pluginConfigs"] == {"fmt@installed": {"options": {"width": 80, "on": True}}}
    for bad in ("key=hunter2", "width=wide", "unknown=1", "nonsense"):
        done = world.refused("bad-option", "install", source, "--config", bad)
        assert done.code == 2 and "hunter2" not in done.err + done.out


def test_data_go_with_the_last_scope(world: Any) -> None:
    data = world.config / "plugins" / "data" / "fmt-installed"
    for keep in (True, False):
        world.ok("install", world.plugin("fmt"))
        data.mkdir(parents=True, exist_ok=True)
        (data / "x").write_text("x")
        world.ok("uninstall", "fmt", *(["--keep-data"] if keep else []))
        assert data.exists() is keep


def test_wrong_usage_is_exit_2(world: Any) -> None:
    for args in (["install"], ["install", "x", "--scope", "moon"], ["install", "ftp://x"], ["disable"], ["disable", "x", "--all"],
                 ["list", "--available"], ["marketplace", "nothing"], ["rollback", "--to", "x"]):
        assert world.run(*args).code == 2, args
    assert world.run("enable", "nothing-there", "--json").code == 1
    assert not Path(world.state_file).exists()
