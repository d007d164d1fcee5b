"""Replays with another plugin set, and what a replay leaves alone."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from kernel_replay.recording import RecordingError, load

from kernel.testing import installed

from .conftest import Place, call, needs

pytestmark = needs


def test_another_set_is_told_and_behaviour_is_compared(place: Place) -> None:
    """What the ``init`` message lists is no difference; what a plugin did is."""
    place.script({"text": "Hello."})
    path, _ = place.record("go")
    told = json.loads(place.kernel("replay", str(path), "--block", "replay", "--json"))
    assert told["equal"] and told["plugins"] == ["replay is not there"] and told["events"] == told["of"]
    skill = place.home / "skills" / "ship"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: ship\ndescription: Ships it.\ndisable-model-invocation: true\n---\nShip it.\n")
    if installed("skills"):
        told = json.loads(place.kernel("replay", str(path), "--json"))
        assert told["equal"] and "command ship is new" in told["notes"], told
        assert "note: command ship is new" in place.kernel("replay", str(path)).splitlines()


@pytest.mark.skipif(not installed("tools-user"), reason="needs the plugin tools-user")
def test_a_tool_that_is_missing_is_named_in_the_request(place: Place) -> None:
    place.script({"text": "Hello."})
    path, _ = place.record("go")
    told = json.loads(place.kernel("replay", str(path), "--block", "tools-user", "--json", code=1))
    assert "tool AskUserQuestion is not there" in told["notes"] and told["plugins"] == ["tools-user is not there"]
    assert told["difference"]["step"].startswith("model request"), told["difference"]
    assert "tool AskUserQuestion is not there" in told["difference"]["told"]


def test_what_an_extension_that_is_gone_added_is_not_waited_for(place: Place, again: Callable[..., Any]) -> None:
    place.script({"text": "Hello."})
    path, _ = place.record("go")
    assert any(event.step[0] == "context" for event in load(path).events)
    difference = again(path, block=["tools-files"]).difference
    assert difference.step[0] == "model" and "tool Read is not there" in difference.told, difference.lines()


@pytest.mark.skipif(not installed("subagents") or not shutil.which("git"), reason="needs the plugin subagents and git")
def test_no_checkout_is_made_for_an_agent(place: Place, again: Callable[..., Any]) -> None:
    git = ["git", "-C", str(place.root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True)
    place.script({"calls": [call("Agent", "c1", prompt="look", description="looks", isolation="worktree")]}, {"text": "Done."})
    path, _ = place.record("go")
    folder = place.root / ".claude" / "worktrees"
    assert folder.is_dir()
    folder.rmdir()
    difference = again(path).difference
    assert difference.kind == "failed" and difference.step[2] == "WorktreeCreate" and "replay makes none" in difference.told
    assert not folder.exists()
    assert again(path, live=["tools"]).equal


def test_only_plugins_that_are_there_can_be_blocked(place: Place, again: Callable[..., Any]) -> None:
    place.script({"text": "Hello."})
    path, _ = place.record("go")
    told = json.loads(place.kernel("replay", str(path), "--block", "nosuch", "--json", code=2))["unusable"]
    assert "'nosuch'" in told and "tools-files" in told
    with pytest.raises(RecordingError, match="'headless,sessions'"):
        again(path, block=["headless,sessions"])
