"""A session with the real tools, and eyes on real processes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import settings
from kernel_tools_shell import plugin, shell

from kernel import Session, SystemMessage, ToolContext, ToolProgress, ToolResult
from kernel.testing import Kit

# A busy machine is no failure, so examples have no deadline; a failing one prints what reproduces it.
settings.register_profile("tools-shell", deadline=None, print_blob=True)
settings.load_profile("tools-shell")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, bash, and none of the variables that change what is tested."""
    for name in list(os.environ):
        if name.startswith(("CLAUDE", "BASH_", "TASK_MAX", "KERNEL_")):
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setattr(shell, "GRACE_S", 0.0)
    return home


class Box:
    """One open session in a workspace. ``bash`` calls the tool as the batch does, without permission and hooks."""

    def __init__(self, workspace: Path, **options: Any) -> None:
        self.workspace = workspace
        self.kit = Kit(workspace, hooks={"tools-shell": plugin}, **options)
        self.session: Session = self.kit.open()

    async def call(self, name: str, id: str = "call_1", **input: Any) -> ToolResult:
        tool = self.session.toolbox.by_name[name]
        context = ToolContext(self.session, id, tool.name, self._progress)
        input = tool.repair_input(input)
        tool.validate_input(input, context)
        result = await tool.call(input, context)
        if result.context_modifier:
            self.session.state = result.context_modifier(self.session.state)
        return result

    async def bash(self, command: str, **more: Any) -> ToolResult:
        return await self.call("Bash", command=command, **more)

    async def text(self, command: str, **more: Any) -> str:
        content = (await self.bash(command, **more)).content
        assert isinstance(content, str)
        return content

    def _progress(self, data: dict[str, Any]) -> None:
        self.session.emit(ToolProgress(uuid="u", session_id="s", tool_use_id="t", tool_name="Bash", parent_tool_use_id=None,
                                       elapsed_time_seconds=data["elapsed"], heartbeat=bool(data.get("heartbeat"))))

    @property
    def progress(self) -> list[ToolProgress]:
        return [m for m in self.kit.outputs if isinstance(m, ToolProgress)]

    def said(self, subtype: str) -> list[dict[str, Any]]:
        return [m.data for m in self.kit.outputs if isinstance(m, SystemMessage) and m.subtype == subtype]

    def told(self) -> str:
        """What waits for the model's next user message."""
        return "\n".join(str(block["text"]) for block in self.session.pending)

    async def pid(self, name: str) -> int:
        """The process id that a command wrote to a file."""
        await until(lambda: (self.workspace / name).exists() and (self.workspace / name).read_text().endswith("\n"))
        return int((self.workspace / name).read_text())


@pytest.fixture
async def box(tmp_path: Path) -> AsyncIterator[Box]:
    made = Box(tmp_path)
    await made.session.start()
    yield made
    await made.session.close()


@pytest.fixture
async def make_box(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Sessions with options."""
    boxes: list[Box] = []

    async def make(**options: Any) -> Box:
        boxes.append(Box(tmp_path, **options))
        await boxes[-1].session.start()
        return boxes[-1]

    yield make
    for made in boxes:
        await made.session.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another process does."""
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110  (no event comes out of another process)
            await anyio.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.fixture(name="alive")
def _alive() -> Callable[[int], bool]:
    return alive


@pytest.fixture(name="until")
def _until() -> Callable[..., Any]:
    return until
