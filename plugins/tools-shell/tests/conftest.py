"""A session with the real tools, and eyes on real processes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from kernel_tools_shell import plugin, shell

from kernel import Session, SystemMessage, ToolContext, ToolProgress, ToolResult
from kernel.testing import Kit, until


@pytest.fixture(autouse=True)
def own_home(kernel_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, bash, and none of the variables that change what is tested; the fixture puts all of them back."""
    for name in [n for n in os.environ if n.startswith(("BASH_", "TASK_MAX"))]:
        del os.environ[name]
    os.environ["SHELL"] = "/bin/bash"
    monkeypatch.setattr(shell, "GRACE_S", 0.0)
    return kernel_home


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
