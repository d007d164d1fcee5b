"""Agents whose model plays a script; all else is real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kernel_embed import Agent

from kernel.testing import ScriptedModel, StubPolicy, module, provides


class Scripted(ScriptedModel):
    """``requests`` holds what it was asked."""

    name = "scripted"


@pytest.fixture
def scripted(kernel_home: Path, tmp_path: Path) -> Callable[..., tuple[Agent, Scripted]]:
    """``agent, model = scripted(turn, turn, ..., **what Agent takes)``: it works in the test's own folder."""
    def make(*turns: Any, plugins: dict[str, object] | None = None, **more: Any) -> tuple[Agent, Scripted]:
        model = Scripted(turns)
        brings = {"scripted": module(register_models=lambda register: register(model)), **(plugins or {})}
        if not provides("policies", "rules"):
            brings["everything"] = module(register_policies=lambda register: register(StubPolicy()))
        return Agent(**{"cwd": tmp_path, "model": "scripted:any", "plugins": brings, "persist": False, **more}), model

    return make
