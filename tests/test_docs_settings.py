"""docs/settings.md names every key below ``kernel`` that the code reads, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "settings.md").read_text("utf-8")
ROWS = {key: line.rstrip(" |").rsplit("| ", 1)[1] for line in PAGE.splitlines() if line.startswith("| `kernel.")
        for key in re.findall(r"`(kernel\.[A-Za-z_.]+)`", line.split(" | ", 1)[0])}
"""Key -> whether it counts from a project's own files."""
SOURCES = [p for base in ("kernel", "plugins") for p in sorted((ROOT / base).rglob("*.py"))
           if not {"tests", "testing", "templates", "build"} & {*p.relative_to(ROOT).parts}]
KEY = re.compile(r"kernel(?:\.[A-Za-z_]+)+")
READERS = ("get", "own", "by_layer", "managed", "_flag")


def constants(tree: ast.Module) -> dict[str, str]:
    """Names of the module that stand for one text, f-strings of them included."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and (text := value(node.value, found)):
            found[node.targets[0].id] = text
    return found


def value(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.JoinedStr):
        parts = [value(part.value if isinstance(part, ast.FormattedValue) else part, names) for part in node.values]
        return "".join(parts) if all(parts) else ""
    return ""


def reads() -> Iterator[tuple[str, str, str]]:
    """(key, how it is read, file) of every call such as ``settings.own("kernel.x")``; the key may be a constant of any module."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in SOURCES}
    everywhere = {name: text for tree in trees.values() for name, text in constants(tree).items() if KEY.fullmatch(text)}
    for path, tree in trees.items():
        names = everywhere | constants(tree)
        loops = {node.target.id: [value(e, names) for e in node.iter.elts] for node in ast.walk(tree)
                 if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and isinstance(node.iter, ast.Tuple)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READERS and node.args:
                if path.is_relative_to(ROOT / "plugins" / "telemetry") and node.func.attr == "get":
                    continue  # attributes of records, whose names begin with kernel. as well
                key = node.args[0]
                last = ast.Name(key.attr) if isinstance(key, ast.Attribute) else key
                for text in loops.get(last.id, [value(last, names)]) if isinstance(last, ast.Name) else [value(last, names)]:
                    if KEY.fullmatch(text):
                        yield text, node.func.attr, path.relative_to(ROOT).as_posix()


READ = sorted(entry for entry in set(reads()) if entry[0] != "kernel.plugins")  # the group of entry points


def below(key: str) -> list[str]:
    """What the page says of a key: its own row, or those of the fields of an object that is read whole."""
    return [row for row in ROWS if row == key or row.startswith(f"{key}.")]


def test_the_search_finds_what_there_is() -> None:
    found = {key for key, _, _ in READ}
    assert len(READ) > 25 and {"kernel.blocked", "kernel.search", "kernel.structuredOutput.plainAnswers", "kernel.sql.url",
                               "kernel.web.useProxy", "kernel.guards"} <= found


@pytest.mark.parametrize("key", sorted({key for key, _, _ in READ}))
def test_every_key_that_is_read_is_on_the_page(key: str) -> None:
    assert below(key), f"{key} is read in {[place for k, _, place in READ if k == key]}"


@pytest.mark.parametrize("row", ROWS)
def test_every_key_on_the_page_is_read(row: str) -> None:
    if not [key for key, _, _ in READ if row == key or row.startswith(f"{key}.")]:  # then its name is handed to who reads it
        assert any(f'"{row}"' in path.read_text("utf-8") for path in SOURCES), f"nothing reads {row}"


@pytest.mark.parametrize("key", sorted({key for key, how, _ in READ if how == "own"}))
def test_a_key_that_waits_for_trust_says_so(key: str) -> None:
    assert {ROWS[row] for row in below(key) if row != "kernel.sandbox.hooks"} == {"when trusted"}
