"""The page names what is told: every metric, event and span of the golden table, with its attributes; and every own measure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from kernel_telemetry import switches
from kernel_telemetry.measures import NAMES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "telemetry.md").read_text("utf-8")
GOLDEN: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "golden.yaml").read_text("utf-8"))
EVERYWHERE = {"session.id", "user.id", "terminal.type", "app.version", "app.entrypoint", "prompt.id", "event.name",
              "event.sequence", "event.timestamp", "span.type"}


def row(name: str) -> set[str]:
    """What stands in code font in the table row that names it first."""
    line = next(line for line in PAGE.splitlines() if line.startswith("| ") and f"`{name}`" in line.split(" | ")[0])
    words = set(re.findall(r"`([^`]+)`", line))
    return words | row("hook_execution_start") if "the same, and" in line else words


def test_the_page_names_every_attribute_that_is_told() -> None:
    for name, metric in GOLDEN["metrics"].items():
        assert metric["attributes"].keys() - EVERYWHERE <= row(name), name
    for name, attributes in GOLDEN["events"].items():
        assert attributes.keys() - EVERYWHERE <= row(name), name
    for name, span in GOLDEN["spans"].items():
        told = set(span["attributes"]) | {k for e in span["events"].values() for k in e} | set(span["events"])
        assert told - EVERYWHERE <= row(name.removeprefix("claude_code.")), name
    assert all(f"`{name}`" in PAGE for name in EVERYWHERE)


def test_the_page_has_every_measure_with_its_kind_and_meaning() -> None:
    for name, (kind, unit, meaning) in NAMES.items():
        line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}`"))
        assert f"| {kind}{f', {unit}' if unit else ''} |" in line and meaning in line, name
    assert set(re.findall(r"^\| `(kernel\.[a-z_.]+)` \| (?:counter|histogram|gauge)", PAGE, re.M)) == set(NAMES)


def test_the_page_names_every_variable_that_is_read() -> None:
    source = "".join(p.read_text("utf-8") for p in Path(switches.__file__).parent.glob("*.py"))
    read = set(re.findall(r'"((?:OTEL|CLAUDE_CODE|ENABLE)_[A-Z_]+[A-Z])"', source)) - {"CLAUDE_CODE_ENTRYPOINT"}
    assert len(read) > 20
    known = set(re.findall(r"`(_?[A-Z][A-Z_]+)`", PAGE))
    for name in read:
        assert name in known or any(n.startswith("_") and name.endswith(n) for n in known), name


def test_the_example_of_the_page_runs() -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(compile(example, "docs/telemetry.md", "exec"), {})
