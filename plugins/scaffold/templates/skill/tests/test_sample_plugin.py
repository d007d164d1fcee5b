"""Whether the skill is found when it is needed, and only then."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import Kit, assert_request, assert_result, assert_triggers, call, provides, read_skills, text

ROOT = Path(__file__).parent.parent

SHOULD = {"changelog-entry": [
    "Write the release notes for version 2.0",
    "Please draft a changelog entry for this release",
    "Summarise what changed since the last tag"]}
SHOULD_NOT = [
    "Fix the failing test in parser.py",
    "How many words does README.md have?",
    "Tag the docker image"]


def test_it_triggers_when_it_should(skill_chooser: Any) -> None:
    assert_triggers(ROOT, SHOULD, SHOULD_NOT, choose=skill_chooser)


def test_files_that_it_names_are_there() -> None:
    for skill in read_skills(ROOT):
        for name in re.findall(r"`([\w-]+\.md)` beside this file", skill.body):
            assert (skill.path.parent / name).is_file(), f"{skill.path}: {name}"


@pytest.mark.skipif(not provides("tools", "Skill"), reason="no installed plugin brings the tool Skill")
def test_the_model_can_load_it(kernel_kit: Callable[..., Kit]) -> None:
    kit = kernel_kit(call("Skill", skill="sample-plugin:changelog-entry"), text("done"),
                     installed=["sample-plugin", *provides("tools", "Skill")])
    run = kit.play("write the release notes")
    assert_result(run, "Skill")
    assert_request(run, 0, contains="sample-plugin:changelog-entry")
    assert_request(run, contains="Sort what changed for users")


def test_the_installed_plugin_is_in_order(kernel_kit: Callable[..., Kit]) -> None:
    plugin = kernel_kit(installed=["sample-plugin"]).harness.plugins.get("sample-plugin")
    assert plugin is not None
    assert (plugin.state, plugin.errors, plugin.warnings) == ("ready", [], [])
    assert (plugin.root / "skills" / "changelog-entry" / "SKILL.md").is_file()
