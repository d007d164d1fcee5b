"""An empty home, and a world around the Agent tool."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .agent_world import World


@pytest.fixture(autouse=True)
def plain(kernel_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and none of the variables that change what is tested."""
    for name in [n for n in os.environ if n.startswith(("CLAUDE_CODE_", "CLAUDE_ASYNC", "TASK_MAX", "CLAUDE_AGENT"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("IS_SANDBOX", "1")
    return kernel_home


@pytest.fixture
async def world(tmp_path: Path, plain: Path) -> AsyncIterator[World]:
    root = tmp_path / "work"
    root.mkdir()
    made = World(root)
    yield made
    if made.kit is not None:
        await made.session.close()
