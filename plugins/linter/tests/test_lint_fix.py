"""Repairs: what a rule promises to repair is repaired, and nothing else changes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_linter.config import Config
from kernel_linter.fixing import difference, repair
from kernel_linter.rule import Report
from kernel_linter.ruleset import everything
from kernel_linter.runner import lint

sys.path.insert(0, str(Path(__file__).parent))
from lint_cases import build, examples, load

CASES = load()
RULES = {rule.code: rule for rule in everything()}
PROMISED = [code for code, rule in RULES.items() if rule.fix != "none"]


def until_quiet(path: Path, config: Config, *, unsafe: bool) -> Report:
    for _ in range(10):
        report = lint(path, config=config)
        if not repair(report, [path], unsafe=unsafe).count:
            return report
    raise AssertionError("repairs do not come to an end")


def examples_with_fix() -> Iterator[Any]:
    for code in PROMISED:
        for index, example in enumerate(examples(CASES[code], "bad")):
            yield pytest.param(code, example, id=f"{code}-{index}")


@pytest.mark.parametrize("code", PROMISED)
def test_what_is_promised_is_repaired(code: str, tmp_path: Path) -> None:
    """At least one bad example of the rule: a repair of the promised class is offered, done, and the finding is gone."""
    done = 0
    for index, example in enumerate(examples(CASES[code], "bad")):
        path = build(tmp_path / str(index), example)
        config = Config(select=[code], **{k: v for k, v in CASES[code].get("config", {}).items() if k != "select"})
        before = lint(path, config=config)
        offered = [f for f in before.findings if f.fix]
        assert all(f.fix and f.fix.kind == RULES[code].fix for f in offered), "the class of the repair is the rule's"
        if offered:
            after = until_quiet(path, config, unsafe=RULES[code].fix == "unsafe")
            done += not [f for f in after.findings if f.code == code]
    assert done, f"{code} repairs none of its examples"


@pytest.mark.parametrize(("code", "example"), list(examples_with_fix()))
def test_a_repair_makes_nothing_worse(code: str, example: dict[str, Any], tmp_path: Path) -> None:
    """All safe repairs together: no new error, JSON that parsed still parses, a second run changes nothing."""
    path = build(tmp_path, example)
    config = Config(**CASES[code].get("config", {}))
    before = {f.code for f in lint(path, config=config).findings if f.severity == "error"}
    report = until_quiet(path, config, unsafe=False)
    assert {f.code for f in report.findings if f.severity == "error"} <= before
    for file in tmp_path.rglob("*.json"):
        if file.is_file() and "json" not in code and code not in ("PLG001", "HOK001", "MCP001", "MKT001"):
            json.loads(file.read_bytes().decode("utf-8-sig"))


def plugin_with(tmp_path: Path, manifest: bytes, name: str = "plugin.json") -> Path:
    place = tmp_path / "acme" / ".claude-plugin" / name
    place.parent.mkdir(parents=True)
    place.write_bytes(manifest)
    skill = tmp_path / "acme" / "skills" / "a" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: a\ndescription: Formats SQL files in a folder\n---\nText.\n", "utf-8")
    return place


def test_only_the_place_changes(tmp_path: Path) -> None:
    """Indent, line ends, order, odd spacing and the missing last newline stay as they are."""
    place = plugin_with(tmp_path, b'{\r\n\t"name" :  "acme",\r\n\t"author": "Acme <a@b>" ,\r\n\t"version": "1.0.0"}')
    until_quiet(tmp_path / "acme", Config(), unsafe=False)
    assert place.read_bytes() == b'{\r\n\t"name" :  "acme",\r\n\t"author": {"name": "Acme <a@b>"} ,\r\n\t"version": "1.0.0"}'


def test_a_diff_writes_nothing(tmp_path: Path) -> None:
    place = plugin_with(tmp_path, b'{"name": "acme", "keywords": "a, b"}\n')
    report = lint(tmp_path / "acme")
    text = difference(report, unsafe=False)
    assert '+{"name": "acme", "keywords": ["a", "b"]}' in text and place.read_bytes() == b'{"name": "acme", "keywords": "a, b"}\n'


def test_nothing_outside_the_path_is_written(tmp_path: Path) -> None:
    """A manifest that is a link to a file elsewhere is not repaired through the link."""
    place = plugin_with(tmp_path, b"{}")
    outside = tmp_path / "elsewhere.json"
    outside.write_text('{"name": "acme", "keywords": "a, b"}', "utf-8")
    place.unlink()
    place.symlink_to(outside)
    done = repair(lint(tmp_path / "acme"), [tmp_path / "acme"], unsafe=True)
    assert done.count == 0 and "outside" in done.problems[0]
    assert outside.read_text("utf-8") == '{"name": "acme", "keywords": "a, b"}'


def test_mode_and_no_left_overs(tmp_path: Path) -> None:
    place = plugin_with(tmp_path, b'{"name": "acme", "keywords": "a"}')
    place.chmod(0o640)
    until_quiet(tmp_path / "acme", Config(), unsafe=False)
    assert place.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(place.parent)) == ["plugin.json"]


def test_a_file_that_is_not_utf8_is_left_alone(tmp_path: Path) -> None:
    place = plugin_with(tmp_path, b'{"name": "acme", "keywords": "a", "description": "caf\xe9"}')
    done = repair(lint(tmp_path / "acme"), [tmp_path / "acme"], unsafe=True)
    assert b"caf\xe9" in place.read_bytes() and any("not UTF-8" in p for p in done.problems)


def test_a_rename_never_replaces(tmp_path: Path) -> None:
    plugin_with(tmp_path, b'{"name": "acme"}')
    folder = tmp_path / "acme" / "skills" / "b"
    folder.mkdir()
    (folder / "skill.md").write_text("small", "utf-8")
    report = lint(tmp_path / "acme")
    (folder / "SKILL.md").write_text("---\nname: b\ndescription: Formats SQL files in a folder\n---\nT.\n", "utf-8")
    done = repair(report, [tmp_path / "acme"], unsafe=True)
    assert (folder / "skill.md").read_text() == "small" and "exists already" in " ".join(done.problems)
