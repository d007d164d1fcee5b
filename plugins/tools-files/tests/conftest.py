"""A bench for one tool: the real gates of the kernel's batch around it, a session that is opened for real, no model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_tools_files.toolset import file_tools

from kernel import Session, Tool, ToolContext, ToolError, ToolResult
from kernel.testing import Kit


class Bench:
    """Runs calls in one session, as the batch does: repair, prepare, validate, decide, run.

    ``session.policy.decide`` answers by ``decide(tool name, input)``; ``"allow"`` unless a test says otherwise.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.decide: Callable[[str, dict[str, Any]], str] = lambda name, input: "allow"
        self.tools: dict[str, Tool] = {t.name: t for t in file_tools()}
        kit = Kit(root, tools=list(self.tools.values()), policy=lambda name, input: self.decide(name, input))
        self.session: Session = kit.open()
        self.session.toolbox.by_name.update(self.tools)

    def __call__(self, name: str, **input: Any) -> ToolResult:
        """The result of a call that works; its structured output fits the tool's output schema.

        :raises ToolError: the call failed.
        """
        return anyio.run(partial(self.call, name, input))

    async def call(self, name: str, input: dict[str, Any], between: Callable[[], None] = lambda: None) -> ToolResult:
        """:param between: runs between the decision and the call."""
        from jsonschema import Draft202012Validator

        tool = self.tools[name]
        context = ToolContext(self.session, "call_1", name)
        input = tool.repair_input(input)
        Draft202012Validator(tool.input_schema).validate(input)
        input = tool.prepare_input(input, context)
        tool.validate_input(input, context)
        tool.permission_paths(input)
        between()
        result = await tool.call(input, context)
        assert tool.output_schema
        Draft202012Validator(tool.output_schema).validate(result.structured)
        return result

    def error(self, name: str, **input: Any) -> ToolError:
        with pytest.raises(ToolError) as caught:
            self(name, **input)
        return caught.value

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(self, path: Path, **input: Any) -> str:
        """Read a file and return what the model sees."""
        content = self("Read", file_path=str(path), **input).content
        assert isinstance(content, str)
        return content


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for name in ("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_GLOB_HIDDEN", "CLAUDE_CODE_GLOB_NO_IGNORE",
                 "CLAUDE_CODE_GLOB_TIMEOUT_SECONDS"):
        monkeypatch.delenv(name, raising=False)
    workspace = tmp_path / "work"
    workspace.mkdir()
    return Bench(workspace)
