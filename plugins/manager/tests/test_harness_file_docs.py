"""The page docs/harness-file.md: its example runs as it stands, and it names every command and field."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from kernel_manager.harness_file.commands import SUMMARIES
from kernel_manager.harness_file.model import HarnessFile, Wanted

from .case_harness import REPO, World

PAGE = (REPO / "docs" / "harness-file.md").read_text("utf-8")


def block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_runs(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    world = World(tmp_path, tmp_path_factory)
    world.file.write_text(block("yaml"))
    (world.root / "house-rules/skills/review").mkdir(parents=True)
    skill = world.root / "house-rules/skills/review/SKILL.md"
    skill.write_text("---\nname: review\ndescription: How we review\n---\nBe kind.\n")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(world.shared)}
    lines = block("console").splitlines()
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "kernel"
        done = world.kernel(*words[1:], **offline)
    assert done.stdout == "the model was asked\n"
    place = world.set / "plugins/house-rules/skills/review/SKILL.md"
    place.write_text("Be rude.\n")
    done = world.kernel(*shlex.split(lines[-1])[1:], ok=1)
    assert f"plugin house-rules: {place} has changed since it was locked (kernel harness sync" in done.stderr
    assert "puts the locked files in place)" in done.stderr


def test_every_command_and_every_field_is_on_the_page() -> None:
    for name in SUMMARIES:
        assert f"`{name}`" in PAGE or f"`kernel harness {name}`" in PAGE, name
    for name in (*HarnessFile.__struct_fields__, *Wanted.__struct_fields__):
        assert f"`{name}`" in PAGE, name
