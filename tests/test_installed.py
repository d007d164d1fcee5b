"""Installed plugins that settings switch on: found without a manager, listed before any of their code is imported."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel.harness import Harness
from kernel.options import Options
from kernel.plugins import Plugin
from kernel.testing import plugin_folder

CODE = "from kernel import hookimpl\n\n\n@hookimpl\ndef post_tool_use(event):\n    return None\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A config folder and a project; ``install`` writes what an installer would leave."""
    config, project = tmp_path / "config", tmp_path / "project"
    (project / ".claude").mkdir(parents=True)
    config.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    monkeypatch.delenv("CLAUDE_CODE_PLUGIN_CACHE_DIR", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    root = config / "kernel" / "plugins"
    plugins: dict[str, list[dict[str, Any]]] = {}

    def install(id: str, *, scope: str = "user", version: str = "1.0.0", on: str | None = "user", **more: Any) -> Path:
        name = id.partition("@")[0]
        folder = plugin_folder(root / "store" / f"{name}-{version}", name, version=version, **more.pop("folder", {}))
        record = {"scope": scope, "version": version, "installPath": f"store/{name}-{version}", **more}
        plugins.setdefault(id, []).append(record)
        (root / "state.json").write_text(json.dumps({"version": 2, "plugins": plugins}))
        if on:
            switch({id: True}, on)
        return folder

    def switch(values: dict[str, Any], scope: str = "user") -> None:
        file = {"user": config / "settings.json", "project": project / ".claude" / "settings.json",
                "local": project / ".claude" / "settings.local.json"}[scope]
        data = json.loads(file.read_text()) if file.exists() else {"enabledPlugins": {}}
        data["enabledPlugins"] |= values
        file.write_text(json.dumps(data))

    def trust() -> None:
        (config / ".claude.json").write_text(json.dumps({"projects": {str(project): {"hasTrustDialogAccepted": True}}}))

    def harness(**options: Any) -> Harness:
        return Harness(Options(cwd=project, **options))

    class Place:
        pass

    made: Any = Place()
    made.install, made.switch, made.trust, made.harness = install, switch, trust, harness
    made.project, made.config = project, config
    return made


def ours(harness: Harness) -> dict[str, Plugin]:
    return {p.id: p for p in harness.plugins if p.source == "installed"}


def test_what_is_switched_on_takes_part_and_nothing_else(place: Any) -> None:
    place.install("one@acme")
    place.install("two@acme", on=None)
    place.install("three@acme")
    place.switch({"three@acme": False})
    (found,) = ours(place.harness()).values()
    assert (found.id, found.name, found.version, found.state) == ("one@acme", "one", "1.0.0", "ready")


def test_its_module_is_imported_at_its_first_use_and_behind_everything_else(place: Any) -> None:
    kernel = {"implements": ["post_tool_use"]}
    folder = place.install("late@acme", module="late_module", path=["store/late-1.0.0"], folder={"kernel": kernel})
    (folder / "late_module.py").write_text(CODE)
    (folder / "json.py").write_text("raise AssertionError('this is no json')")
    plugin = ours(place.harness())["late@acme"]
    assert "late_module" not in sys.modules and str(folder) not in sys.path
    assert plugin.load().__name__ == "late_module" and sys.path[-1] == str(folder)
    assert ours(place.harness())["late@acme"].state == "ready", "found once, not again on the import path"
    del sys.modules["late_module"]


def test_a_missing_one_is_named_with_what_to_do(place: Any) -> None:
    place.switch({"gone@acme": True, "mine@skills-dir": True, "x@builtin": True})
    said = [text for text in place.harness().announced if "enabledPlugins" in text]
    assert len(said) == 1 and "gone@acme" in said[0] and "kernel plugins install gone@acme" in said[0]


@pytest.mark.parametrize("scope", ["project", "local"])
def test_what_a_project_switches_on_or_off_counts_where_it_is_trusted(place: Any, scope: str) -> None:
    place.install("guard@acme")
    place.install("extra@acme", on=None)
    place.switch({"guard@acme": False, "extra@acme": True}, scope)
    harness = place.harness()
    assert set(ours(harness)) == {"guard@acme"} and any("not been trusted" in text for text in harness.announced)
    place.trust()
    assert set(ours(place.harness())) == {"extra@acme"}


def test_another_projects_installation_is_not_this_ones(place: Any) -> None:
    place.install("tool@acme", scope="project", projectPath="/somewhere/else", on="user")
    assert ours(place.harness()) == {}
    place.install("tool@acme", scope="project", version="2.0.0", projectPath=str(place.project), on=None)
    place.install("tool@acme", scope="user", version="1.5.0", on=None)
    assert ours(place.harness())["tool@acme"].version == "2.0.0", "the project's own before the user's"


def test_the_public_layout_is_read_behind_ours(place: Any) -> None:
    folder = plugin_folder(place.config / "plugins" / "cache" / "acme" / "pub" / "1", "pub")
    records = {"pub@acme": [{"scope": "user", "installPath": str(folder), "version": "1"}],
               "both@acme": [{"scope": "user", "installPath": str(folder), "version": "0"}]}
    (place.config / "plugins" / "installed_plugins.json").write_text(json.dumps({"version": 2, "plugins": records}))
    place.install("both@acme", version="2.0.0")
    place.switch({"pub@acme": True})
    assert {id: p.version for id, p in ours(place.harness()).items()} == {"pub@acme": "1.0.0", "both@acme": "2.0.0"}


def test_names_are_unique(place: Any, tmp_path: Path) -> None:
    place.install("permissions@acme")
    place.install("same@one")
    place.install("same@two", version="2.0.0")
    mine = plugin_folder(tmp_path / "mine", "same")
    found = ours(place.harness())
    assert "already gives the plugin" in found["permissions@acme"].errors[0]
    assert [found[i].state for i in ("same@one", "same@two")] == ["ready", "broken"]
    assert "kernel plugins disable same@two" in found["same@two"].errors[0]
    assert "same@one" not in ours(place.harness(plugin_dirs=[mine])), "--plugin-dir hides it"


@pytest.mark.parametrize("text", ["{", "[]", '{"plugins": 5}', '{"plugins": {"a@b": 5}}', "",
                                  '{"plugins": {"a@b": [5, {"installPath": 1}]}}'])
def test_a_damaged_file_ends_nothing(place: Any, text: str) -> None:
    place.install("a@b")
    (place.config / "kernel" / "plugins" / "state.json").write_text(text)
    harness = place.harness()
    assert ours(harness) == {} and any("a@b" in text or "state.json" in text for text in harness.announced)


def test_a_folder_that_is_gone_is_said(place: Any) -> None:
    import shutil

    shutil.rmtree(place.install("guard@acme", module="guard_module"))
    harness = place.harness()
    (found,) = ours(harness).values()
    assert found.state == "broken" and "is no folder" in found.errors[0]
    assert any("plugin guard" in text for text in harness.announced)


def test_a_gate_whose_module_is_gone_refuses(place: Any) -> None:
    """Its manifest says that it is one (decision D5)."""
    import anyio

    from kernel.testing import event

    place.install("guard@acme", module="guard_that_is_gone", folder={"kernel": {"implements": ["pre_tool_use"]}})
    harness = place.harness()
    outcomes = anyio.run(harness.dispatcher.fire, event("PreToolUse", tool_name="Bash", tool_input={"command": "true"}))
    (outcome,) = [o for o in outcomes if o.plugin == "guard"]
    assert outcome.answer is None and "guard_that_is_gone" in str(outcome.error)


@pytest.mark.parametrize("settings", ['{"enabledPlugins": ["a@b"]}', '{"enabledPlugins": {"a@b": "yes"}}'])
def test_settings_of_another_shape_switch_nothing_on(place: Any, settings: str) -> None:
    place.install("a@b")
    (place.config / "settings.json").write_text(settings)
    assert ours(place.harness()) == {}
