"""Real plugins and marketplaces: each is read, nothing of it is a traceback, and those that lie there are installed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from kernel_manager import catalogue
from kernel_manager.errors import ManagerError

CORPUS = Path(os.environ.get("KERNEL_SHARED", Path(__file__).resolve().parents[4] / "shared")) / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus of real plugins is not at {CORPUS}")
MARKETS = sorted(CORPUS.glob("*/.claude-plugin/marketplace.json")) if CORPUS.is_dir() else []
KNOWN = {"bad-name", "bad-manifest", "not-a-plugin", "not-found", "strict-conflict", "unsafe-path", "bad-spec", "unsafe-archive",
         "reserved-name", "bad-marketplace"}


def test_the_sources_of_every_entry_are_understood() -> None:
    """892 entries; only kinds that nobody documents are refused."""
    kinds: dict[str, int] = {}
    refused: list[str] = []
    for file in MARKETS:
        data = json.loads(file.read_text())
        try:
            market = catalogue.parse(data, file.parent.parent, owner=file.parts[len(CORPUS.parts)].split("__")[0])
        except ManagerError as error:
            refused.append(f"{file.parent.parent.name}: {error}")
            continue
        for entry in market.entries.values():
            try:
                kind = market.source(entry).kind
            except ManagerError as error:
                refused.append(f"{market.name}/{entry['name']}: {error}")
            else:
                kinds[kind] = kinds.get(kind, 0) + 1
    assert set(kinds) <= {"folder", "git", "npm"} and sum(kinds.values()) > 500
    assert refused == []


@pytest.mark.parametrize("file", MARKETS, ids=lambda p: p.parent.parent.name)
def test_a_marketplace_is_added_and_its_local_plugins_are_installed(world: Any, file: Path) -> None:
    folder = file.parent.parent
    done = world.run("marketplace", "add", folder, "--json")
    if done.code:
        assert done.json["error"]["type"] in KNOWN, done
        return
    name = done.json["name"]
    market = catalogue.read(folder, owner=None)
    there = [n for n, e in market.entries.items() if isinstance(e["source"], str) and (folder / e["source"]).is_dir()]
    for plugin in there[:6]:
        result = world.run("install", f"{plugin}@{name}", "--yes", "--json")
        assert result.code == 0 or result.json["error"]["type"] in KNOWN | {"name-clash", "dependency-unsatisfied"}, result
    assert world.run("list", "--json").code in (0, 1)
