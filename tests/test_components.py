"""Where components are found: scopes and their order, manifests, links, loops, limits. Nothing is read and nothing raises."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kernel import Components, Session, components_in, find_components
from kernel.components import Kind
from kernel.settings import Layer
from kernel.testing import Kit, plugin_folder

HEAD = "---\nname: x\ndescription: d\n---\nText.\n"


def write(root: Path, *paths: str, text: str = HEAD) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def session_in(root: Path, managed: dict[str, Any] | None = None, **options: Any) -> Session:
    kit = Kit(root, **options)
    kit.harness.settings.managed_dir = str(root.parent / "managed")
    if managed is not None:
        kit.harness.settings.layers.insert(0, Layer("managed", "managed-settings.json", managed, "/"))
    return kit.open()


def told(found: Components) -> list[tuple[str, str]]:
    return [(item.scope, item.name) for item in found.items]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A repository with a start directory two levels down, a user's, a managed and an added directory."""
    start = tmp_path / "repo" / "packages" / "web"
    start.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    write(tmp_path, "repo/.claude/skills/top/SKILL.md", "repo/packages/web/.claude/skills/here/SKILL.md",
          ".claude/skills/outside/SKILL.md", "repo/packages/managed/.claude/skills/must/SKILL.md",
          "more/.claude/skills/added/SKILL.md",
          "repo/packages/web/.config/skills/mine/SKILL.md", "repo/packages/web/.config/skills/SYNCED/SKILL.md",
          "repo/packages/web/.config/skills/plug/SKILL.md", "repo/packages/web/.config/skills/plug/.claude-plugin/plugin.json",
          "repo/packages/web/.config/skills/none/readme.md", "repo/packages/web/.config/skills/deep/er/SKILL.md")
    plugin_folder(tmp_path / "plug", "demo", {"skills/greet/SKILL.md": HEAD})
    return start


def test_every_scope_in_the_order_asked_for_and_no_place_above_the_repository(place: Path) -> None:
    top = place.parents[2]
    session = session_in(place, add_dirs=[top / "more"], plugin_dirs=[top / "plug"])
    assert told(find_components(session, "skills")) == [
        ("managed", "must"), ("user", "mine"), ("project", "here"), ("project", "top"), ("added", "added"), ("plugin", "greet")]
    assert told(find_components(session, "skills", ("project", "user"))) == [
        ("project", "here"), ("project", "top"), ("user", "mine")]


@pytest.mark.parametrize(("options", "expected"), [
    ({"setting_sources": ("user",)}, ["must", "mine", "added", "greet"]),
    ({"extra": {"bare": True}}, ["must", "added", "greet"]),
    ({"extra": {"safe_mode": True}}, ["must"]),
    ({"managed": {"strictPluginOnlyCustomization": ["skills"]}}, ["must", "greet"]),
    ({"managed": {"strictPluginOnlyCustomization": True}}, ["must", "greet"]),
    ({"managed": {"strictPluginOnlyCustomization": ["agents"]}}, ["must", "mine", "here", "top", "added", "greet"]),
])
def test_switches_close_their_scopes(place: Path, options: dict[str, Any], expected: list[str]) -> None:
    top = place.parents[2]
    session = session_in(place, **options, add_dirs=[top / "more"], plugin_dirs=[top / "plug"])
    assert [name for _, name in told(find_components(session, "skills"))] == expected


def test_names_come_from_places(tmp_path: Path) -> None:
    write(tmp_path, ".claude/commands/a.md", ".claude/commands/front/b.md", ".claude/commands/kit/SKILL.md",
          ".claude/commands/kit/other.md", ".claude/commands/no.txt", ".claude/agents/x/y.md", ".claude/output-styles/s.md",
          ".claude/output-styles/sub/t.md", ".claude/rules/r/u.md")
    session = session_in(tmp_path)

    def names(kind: Kind) -> list[str]:
        return [name for _, name in told(find_components(session, kind))]

    assert (names("commands"), names("agents"), names("output-styles"), names("rules")) == (
        ["a", "front:b", "kit"], ["x:y"], ["s"], ["r:u"])
    assert [item.is_skill for item in find_components(session, "commands").items] == [False, False, True]


MANIFESTS: list[tuple[dict[str, Any], dict[str, list[str]], list[str]]] = [
    ({}, {"skills": ["one"], "commands": ["c"], "agents": ["a"], "output-styles": ["s"]}, []),
    ({"skills": "./extra/"}, {"skills": ["one", "two"]}, []),
    ({"skills": ["./extra/two", "./skills"]}, {"skills": ["one", "two"]}, []),
    ({"skills": "."}, {"skills": ["one"]}, []),
    ({"commands": "./extra/", "agents": "./extra/b.md", "outputStyles": ["./extra"]},
     {"commands": ["b", "two"], "agents": ["b"], "output-styles": ["b"]}, []),
    ({"commands": {"say": {"content": "Hi."}, "b": {"source": "./extra/b.md"}, "no": {}}}, {"commands": ["say", "b"]},
     ["commands.no"]),
    ({"skills": "./extra/b.md"}, {"skills": ["one"]}, ["skills"]), ({"agents": "./extra"}, {"agents": []}, ["agents"]),
    ({"commands": ["./none.md", "extra/b.md", "./extra/../extra/b.md", "/etc", "./extra/two/x.txt"]}, {"commands": []},
     ["commands"] * 5),
]


@pytest.mark.parametrize(("fields", "expected", "faults"), MANIFESTS)
def test_a_manifest_adds_or_replaces_and_its_faults_name_the_field(
        tmp_path: Path, fields: dict[str, Any], expected: dict[Kind, list[str]], faults: list[str]) -> None:
    root = plugin_folder(tmp_path / "p", "demo", {
        "skills/one/SKILL.md": HEAD, "commands/c.md": HEAD, "agents/a.md": HEAD, "output-styles/s.md": HEAD,
        "extra/two/SKILL.md": HEAD, "extra/b.md": HEAD, "extra/two/x.txt": ""}, **fields)
    session = session_in(tmp_path, plugin_dirs=[root])
    found = {kind: find_components(session, kind) for kind in expected}
    assert {kind: [item.name for item in of.items] for kind, of in found.items()} == expected
    said = [fault for of in found.values() for fault in of.faults]
    assert [fault.field for fault in said] == faults
    assert all(fault.plugin == "demo" and fault.path.endswith("plugin.json") for fault in said)


def test_a_plugin_may_be_one_skill(tmp_path: Path) -> None:
    root = plugin_folder(tmp_path / "only", "demo", {"SKILL.md": HEAD})
    assert told(find_components(session_in(tmp_path, plugin_dirs=[root]), "skills")) == [("plugin", "only")]
    write(root, "skills/one/SKILL.md")
    assert told(find_components(session_in(tmp_path, plugin_dirs=[root]), "skills")) == [("plugin", "one")]


def test_nothing_of_a_plugin_leads_out_of_it(tmp_path: Path) -> None:
    write(tmp_path, "out/SKILL.md", "out/c.md")
    root = plugin_folder(tmp_path / "p", "demo", {"skills/in/SKILL.md": HEAD, "commands/ok.md": HEAD, "agents/ok.md": HEAD},
                         outputStyles="./styles")
    (root / "skills/linked").symlink_to(root / "skills/in")
    (root / "skills/out").symlink_to(tmp_path / "out")
    (root / "skills/file").mkdir()
    (root / "skills/file/SKILL.md").symlink_to(tmp_path / "out/SKILL.md")
    (root / "commands/out.md").symlink_to(tmp_path / "out/c.md")
    (root / "agents/out").symlink_to(tmp_path / "out")
    (root / "styles").symlink_to(tmp_path / "out")
    session = session_in(tmp_path, plugin_dirs=[root])
    kinds: tuple[Kind, ...] = ("skills", "commands", "agents", "output-styles")
    found = [find_components(session, kind) for kind in kinds]
    assert [[item.name for item in of.items] for of in found] == [["in"], ["ok"], ["ok"], []], "one real folder counts once"
    assert [fault.message.split("leads")[1] for of in found for fault in of.faults] == [" out of the plugin's folder"] * 5


def test_links_of_people_may_lead_anywhere_but_a_projects_file_not_out_of_it(tmp_path: Path) -> None:
    write(tmp_path, "lib/SKILL.md", "secret.md", "work/.claude/commands/ok.md")
    skills = tmp_path / "work/.claude/skills"
    skills.mkdir()
    (skills / "lib").symlink_to(tmp_path / "lib")
    (skills / "again").symlink_to(tmp_path / "lib")
    (tmp_path / "work/.claude/commands/steal.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "work/.config/commands").mkdir(parents=True)
    (tmp_path / "work/.config/commands/mine.md").symlink_to(tmp_path / "secret.md")
    session = session_in(tmp_path / "work")
    assert told(find_components(session, "skills")) == [("project", "again")]
    found = find_components(session, "commands")
    assert told(found) == [("user", "mine"), ("project", "ok")] and "steal.md" in found.faults[0].path


def test_loops_depth_numbers_and_odd_files_end_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = tmp_path / "commands"
    write(commands, "a/b.md", "/".join("d" * 12) + "/deep.md")
    (commands / "a/loop").symlink_to(commands)
    (commands / "self").symlink_to("self")
    (commands / "gone.md").symlink_to("nowhere.md")
    os.mkfifo(commands / "pipe.md")
    (commands / "dir.md").mkdir()
    (commands / ".md").write_text("")
    found = components_in(commands, "commands")
    assert [item.name for item in found.items] == ["a:b"]
    said = "\n".join(str(fault) for fault in found.faults)
    assert "gone.md: cannot be read" in said and "pipe.md: is no regular file" in said and "deeper than" in said
    monkeypatch.setattr("kernel.components.MAX_ENTRIES", 3)
    assert "more than 3 entries" in str(components_in(commands, "commands").faults[-1])
    assert components_in(tmp_path / "none", "commands") == Components()
    assert components_in(commands / "a" / "b.md", "commands") == Components()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir(mode=0)
    assert "cannot be listed" in str(components_in(tmp_path / "skills", "skills").faults[0])


@pytest.mark.parametrize("kind", ["commands", "agents", "output-styles"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_linked_folder_of_any_markdown_does_not_lead_out_of_the_project(tmp_path: Path, kind: Kind, whole: bool) -> None:
    """A clone with a link to somebody's notes would otherwise put their first lines into the model's list."""
    write(tmp_path, "notes/private.md", "project/own/fine.md")
    folder = tmp_path / "project" / ".claude" / kind
    (folder.parent if whole else folder).mkdir(parents=True)
    link = folder if whole else folder / "linked"
    link.symlink_to(tmp_path / "notes")
    found = find_components(session_in(tmp_path / "project"), kind, ("project",))
    assert not found.items
    assert whole or kind == "output-styles" or [f.path for f in found.faults] == [str(link)]
    assert all("leads out of the project" in f.message for f in found.faults)
    link.unlink()
    link.symlink_to(tmp_path / "project" / "own")
    inside = find_components(session_in(tmp_path / "project"), kind, ("project",))
    assert len(inside.items) == (0 if kind == "output-styles" and not whole else 1)


def test_a_projects_skill_may_be_a_linked_folder(tmp_path: Path) -> None:
    write(tmp_path, "shared/greet/SKILL.md")
    (tmp_path / "project/.claude/skills").mkdir(parents=True)
    (tmp_path / "project/.claude/skills/greet").symlink_to(tmp_path / "shared/greet")
    assert told(find_components(session_in(tmp_path / "project"), "skills", ("project",))) == [("project", "greet")]


@pytest.mark.parametrize("kind", ["skills", "commands", "agents", "output-styles", "rules"])
def test_a_link_to_itself_is_named(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "loop.md").symlink_to("loop.md")
    assert [f.path for f in components_in(tmp_path, kind).faults] == [str(tmp_path / "loop.md")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_skills_folder_that_may_not_be_entered_is_named(tmp_path: Path) -> None:
    write(tmp_path, "closed/SKILL.md")
    (tmp_path / "closed").chmod(0)
    try:
        assert [f.path for f in components_in(tmp_path, "skills").faults] == [str(tmp_path / "closed")]
    finally:
        (tmp_path / "closed").chmod(0o700)
