"""Sessions whose commands run in a real sandbox, with the installed shell tool and permission rules."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from kernel_sandbox import factory

from kernel import Harness, Layer, Session, Settings, ToolContext, ToolResult, UsageError
from kernel.testing import Kit

PLUGINS = ("tools-shell", "permissions", "sandbox")


def why_not() -> str:
    """Why no sandbox works on this machine; empty where one does."""
    import shutil

    program = shutil.which("bwrap")
    if program is None:
        return "bwrap is not installed"
    try:
        factory.probe(program, nested=False, unix_sockets=False)
    except UsageError as error:
        return str(error)
    return ""


WHY_NOT = why_not()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if WHY_NOT:
        for item in items:
            if item.path.parent == Path(__file__).parent and item.get_closest_marker("real_sandbox"):
                item.add_marker(pytest.mark.skip(reason=WHY_NOT))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real_sandbox: needs bubblewrap to work on this machine")


@pytest.fixture(autouse=True)
def own_home(kernel_home: Path) -> Path:
    """An empty home, bash, and none of the variables that change what is tested; the fixture puts all of them back."""
    for name in [n for n in os.environ if n.startswith("BASH_") or n.lower().endswith("_proxy")]:
        del os.environ[name]
    os.environ["SHELL"] = "/bin/bash"
    return kernel_home


def settings_of(work: Path, *layers: tuple[str, dict[str, Any]], trusted: bool = True) -> Settings:
    """Settings of several scopes, highest first."""
    directories = {"managed": "/", "user": str(work / ".config")}
    return Settings([Layer(scope, f"{scope}-settings.json", data, directories.get(scope, str(work)))  # type: ignore[arg-type]
                     for scope, data in layers], [], config_dir=work / ".config", project_root=work, trusted=trusted)


class Box:
    """One open session in a workspace. ``bash`` calls the tool as the batch does, middleware included, without permission."""

    def __init__(self, work: Path, sandbox: dict[str, Any] | None = None, *, layers: Any = (), trusted: bool = True,
                 installed: Any = PLUGINS, more: dict[str, Any] | None = None, **options: Any) -> None:
        self.work = work
        self.kit = Kit(work, installed=installed, **options)
        asked = {"sandbox": {"enabled": True, **(sandbox or {})}, **(more or {})}
        self.kit.harness.settings = settings_of(work, *(layers or [("project", asked)]), trusted=trusted)
        self.session: Session = self.kit.open()

    @property
    def harness(self) -> Harness:
        return self.kit.harness

    async def call(self, name: str, **input: Any) -> ToolResult:
        tool = self.session.toolbox.by_name[name]
        context = ToolContext(self.session, "call_1", tool.name)
        result = await self.session.run_tool(tool, input, context)
        if result.context_modifier:
            self.session.state = result.context_modifier(self.session.state)
        return result

    async def text(self, command: str, **more: Any) -> str:
        content = (await self.call("Bash", command=command, **more)).content
        assert isinstance(content, str)
        return content


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace that is not all of the test's own folder, so that there is an outside."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
async def box(work: Path) -> AsyncIterator[Callable[..., Any]]:
    """``await box(sandbox settings, ...)`` opens a session; all are closed at the end."""
    boxes: list[Box] = []

    async def make(sandbox: dict[str, Any] | None = None, **more: Any) -> Box:
        boxes.append(Box(work, sandbox, **more))
        await boxes[-1].session.start()
        return boxes[-1]

    yield make
    for made in boxes:
        await made.session.close()


@pytest.fixture(name="settings_of")
def _settings_of() -> Callable[..., Settings]:
    return settings_of
