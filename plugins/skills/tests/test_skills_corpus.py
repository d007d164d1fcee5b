"""Published plugins: what is found of each kind is what its files say, counted another way; what cannot load is named."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from kernel_skills.catalogue import Catalogue

from kernel import LoadError, Session, find_components
from kernel.testing import Kit

SHARED = Path(os.environ.get("KERNEL_SHARED", Path(__file__).parents[4] / "shared")).resolve()
CORPUS = SHARED / "corpus"
PLUGINS = sorted({p.parent.parent for p in CORPUS.rglob(".claude-plugin/plugin.json")} | {
    p.parent / name for p in CORPUS.rglob("FILES.json") for name in json.loads(p.read_text()) if (p.parent / name).is_dir()})
KINDS = ("skills", "commands", "agents", "output-styles")

pytestmark = pytest.mark.skipif(not PLUGINS, reason=f"the corpus of published plugins is not at {CORPUS}")


def count(root: Path) -> dict[str, set[str]]:
    """The files of each kind, from a flat list of names and the rules of the contract; shares no code with the finder."""
    files = sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())
    manifest = manifest_of(root)

    def named(key: str) -> list[str] | None:
        value = manifest.get(key)
        given = [value] if isinstance(value, str) else value
        return None if given is None else [g[2:].strip("/") for g in given if isinstance(g, str) and g.startswith("./")]

    def below(folder: str, pattern: str) -> set[str]:
        start = f"{folder}/" if folder else ""
        return {f for f in files if f.startswith(start) and re.fullmatch(pattern, f[len(start):])}

    def flat(key: str, default: str, pattern: str) -> set[str]:
        given = named(key)
        found = set()
        for place in [default] if given is None else given:
            found |= {place} & set(files) if place.endswith(".md") else below(place, pattern)
        return found

    skills = below("skills", r"[^/]+/SKILL\.md")
    for place in named("skills") or []:
        own = f"{place}/SKILL.md" if place else "SKILL.md"
        skills |= {own} if own in files else below(place, r"[^/]+/SKILL\.md")
    if named("skills") is None and "SKILL.md" in files and not any(f.startswith("skills/") for f in files):
        skills.add("SKILL.md")
    commands = flat("commands", "commands", r".+\.md")
    apart = {f.rpartition("/")[0] + "/" for f in commands if f.endswith("/SKILL.md")}
    commands = {f for f in commands if f.endswith("/SKILL.md") or not any(f.startswith(a) for a in apart)}
    agents = {f for f in flat("agents", "agents", r".+\.md") if named("agents") is None or f in (named("agents") or [])}
    return {"skills": skills, "commands": commands, "agents": agents,
            "output-styles": flat("outputStyles", "output-styles", r"[^/]+\.md")}


def manifest_of(root: Path) -> dict[str, Any]:
    path = root / ".claude-plugin/plugin.json"
    found: dict[str, Any] = json.loads(path.read_text("utf-8-sig")) if path.is_file() else {}
    return found


def opened(root: Path, workspace: Path) -> Session:
    try:
        return Kit(workspace, plugin_dirs=[root]).open()
    except LoadError as error:
        if str(root / ".claude-plugin/plugin.json") not in str(error):
            raise
        pytest.skip(f"broken, and said so: {str(error)[-160:]}")


@pytest.mark.parametrize("root", PLUGINS, ids=lambda p: p.relative_to(CORPUS).as_posix())
def test_what_is_found_is_what_the_files_say(root: Path, tmp_path: Path) -> None:
    session = opened(root, tmp_path)
    expected = count(root)
    for kind in KINDS:
        found = find_components(session, kind, ("plugin",))  # type: ignore[arg-type]
        assert {os.path.relpath(item.path, root) for item in found.items} == expected[kind], kind
        assert all(str(root) in fault.path for fault in found.faults)


@pytest.mark.parametrize("root", PLUGINS, ids=lambda p: p.relative_to(CORPUS).as_posix())
def test_every_skill_and_command_is_read_or_named_with_its_fault(root: Path, tmp_path: Path) -> None:
    session = opened(root, tmp_path)
    catalogue = Catalogue()
    catalogue.load(session)
    files = {os.path.relpath(s.path, root) for s in catalogue.by_name.values()}
    left = {f for f in count(root)["skills"] | count(root)["commands"] if f not in files}
    hidden = {f for f in left if catalogue.get(f"{_name(root)}:{_own(f)}")}
    assert all(any(f in problem for problem in catalogue.problems) for f in left - hidden), left
    for skill in catalogue.by_name.values():
        text = Path(skill.path).read_text("utf-8", "replace")
        says = re.search(r"\A\ufeff?---\s*\n(?:.*\n)*?description:", text)
        assert skill.description or not text.strip("- \n") or not says or any(skill.path in p for p in catalogue.problems)


def _name(root: Path) -> str:
    return str(manifest_of(root).get("name", root.name))


def _own(file: str) -> str:
    """The command's name by place: another file of the same plugin may have it already."""
    parts = file.removesuffix("/SKILL.md").removesuffix(".md").split("/")
    return ":".join(parts[1:])
