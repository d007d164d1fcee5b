"""The same conversation through the kernel with its default plugins, and one tool that does nothing."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import anyio

from kernel import Harness, Options, Registry, Tool, ToolContext, ToolResult
from kernel.testing import module


class Noop(Tool):
    name = "Noop"
    description = "Does nothing."
    input_schema = {"type": "object", "properties": {"value": {"type": "integer"}}, "additionalProperties": False}
    permission = "free"

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="ok", structured={"ok": True})


async def run(prompt: str) -> None:
    harness = Harness(Options(prompt=prompt))
    harness.plugins.register("bench", module(register_tools=lambda register: register_noop(register)))
    session = harness.open()
    result = await session.submit(prompt)
    await session.close()
    assert result.subtype == "success", result
    print(json.dumps({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "turns": result.num_turns}))


def register_noop(register: Registry[Tool]) -> None:
    register(Noop())


if __name__ == "__main__":
    anyio.run(run, sys.argv[1])
