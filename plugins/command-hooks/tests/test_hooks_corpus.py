"""Published plugins run unmodified: every hooks file of the corpus loads, or is named with its fault."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from kernel_command_hooks.config import Table, read

from kernel import EVENTS, Manifest, Plugin

from .conftest import Placed, World

SHARED = Path(os.environ.get("KERNEL_SHARED", Path(__file__).parents[4] / "shared")).resolve()
CORPUS = SHARED / "corpus"
FILES = sorted(CORPUS.rglob("hooks.json"))

pytestmark = pytest.mark.skipif(not FILES, reason=f"the corpus of published plugins is not at {CORPUS}")


def root_of(file: Path) -> Path:
    return file.parent.parent if file.parent.name == "hooks" else file.parent


def manifest_of(root: Path, file: Path) -> Manifest:
    """The plugin's own, or one that names the file where that is no default place."""
    path = root / ".claude-plugin" / "plugin.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError):
        return msgspec.convert({"name": "nameless", "hooks": f"./{file.relative_to(root)}"}, Manifest)


def load(world: World, plugin: Plugin) -> Table:
    session: Any = SimpleNamespace(settings=world.read_settings(), options=SimpleNamespace(extra={}, print_mode=True),
                                   plugins=SimpleNamespace(ready=[plugin]), plugin_state={}, project_root=str(world.cwd))
    session.root = session
    return read(session)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(CORPUS).as_posix())
def test_a_published_hooks_file_loads_or_is_named_with_its_fault(world: World, file: Path) -> None:
    root = root_of(file)
    plugin = Placed(name="published", root=root, source="inline", manifest=manifest_of(root, file))
    table = load(world, plugin)
    told = [p.text for p in table.problems] + table.remarks
    content = msgspec.json.decode(file.read_bytes())
    configured = content.get("hooks") if isinstance(content, dict) else None
    if not table.handlers:
        assert told or not configured, "nothing of it runs, and nothing says why"
    assert all(str(file) in t or "plugin.json" in t for t in told if "published" in t)
    if isinstance(configured, dict):
        for event in configured.keys() - EVENTS.keys():
            assert any(event in t for t in told), f"{event} is no event, and nothing says so"
        if not table.problems:
            wanted = sum(len(group["hooks"]) for event, groups in configured.items() for group in groups if event in EVENTS)
            assert sum(map(len, table.handlers.values())) >= wanted


def test_most_of_the_corpus_loads_without_a_word(world: World) -> None:
    """A figure that may only rise: how many of the files bring handlers and have no fault."""
    good = 0
    for file in FILES:
        root = root_of(file)
        table = load(world, Placed(name="published", root=root, source="inline", manifest=manifest_of(root, file)))
        good += bool(table.handlers) and not table.problems
    assert good >= len(FILES) * 0.7, f"{good} of {len(FILES)}"
