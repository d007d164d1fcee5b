"""Our own plugins and the template pass; what we list agrees with what the kernel loads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kernel_linter.bundle import Plugin as Bundle
from kernel_linter.runner import lint

from kernel.components import _Search
from kernel.plugins import find

ROOT = Path(__file__).resolve().parents[3]
PLACES = ("plugins/*/.claude-plugin/plugin.json", "plugin-template/.claude-plugin/plugin.json")
OWN = sorted(path.parent.parent for place in PLACES for path in ROOT.glob(place))


@pytest.mark.parametrize("folder", OWN, ids=lambda p: p.name)
def test_our_own_pass(folder: Path) -> None:
    """No error and no warning."""
    assert [f"{f.path}:{f.line} {f.code} {f.message}" for f in lint(folder).findings if f.severity != "info"] == []


LAYOUTS = {
    "defaults": ({}, ["skills/a/SKILL.md", "skills/b/c/SKILL.md", "commands/x.md", "commands/sub/y.md", "agents/r.md",
                      "agents/t/s.md"]),
    "keys": ({"skills": ["./more", "./one"], "commands": ["./extra/z.md"], "agents": ["./who/w.md"]},
             ["skills/a/SKILL.md", "more/b/SKILL.md", "one/SKILL.md", "commands/x.md", "extra/z.md", "agents/r.md", "who/w.md"]),
    "root skill": ({}, ["SKILL.md"]),
    "root skill beside skills": ({}, ["SKILL.md", "skills/a/SKILL.md"]),
    "folder of commands": ({"commands": "./extra"}, ["commands/x.md", "extra/z.md", "extra/deep/q.md"]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_we_find_what_the_kernel_finds(layout: str, tmp_path: Path) -> None:
    """Findings such as 'never loads' hold only if both look in the same places."""
    manifest, files = LAYOUTS[layout]
    root = tmp_path / "acme"
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("---\ndescription: x\n---\ntext\n", "utf-8")
    (root / ".claude-plugin").mkdir()
    (root / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": "acme", **manifest}), "utf-8")
    plugin, bundle = next(p for p in find([root], path=[])), Bundle(root, "acme")
    for kind, ours in (("skills", bundle.skills), ("commands", bundle.commands), ("agents", bundle.agents)):
        search = _Search(kind)
        search.plugin(plugin)
        assert {t.rel for t in ours} == {Path(c.path).relative_to(root.resolve()).as_posix() for c in search.items}, kind
