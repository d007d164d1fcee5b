"""What all tests of the kernel share: the public contract's data, a home of their own, a tool that does what it is told."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.tools import Tool, ToolContext, ToolResult

SHARED = Path(os.environ.get("KERNEL_SHARED") or Path(__file__).resolve().parents[2] / "shared")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the contract's data and the corpus of published plugins."""
    if not (SHARED / "contract" / "hook-events.json").is_file():
        pytest.skip(f"the contract's data is not here ({SHARED}; KERNEL_SHARED names another place)")
    return SHARED


@pytest.fixture(autouse=True)
def own_home(kernel_home: Path) -> Path:
    """No test sees the settings, keys or variables of the person who runs it, nor those that another test set."""
    return kernel_home


class Probe(Tool):
    """A tool that does what the test says.

    :param run: what a call does: a function of (input, context), async or not; the tool echoes its input without it.
    :param attributes: class attributes and methods of ``Tool`` that this one has its own of.
    """

    description = "For tests."
    input_schema = {"type": "object", "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}}

    def __init__(self, name: str = "Probe", run: Callable[..., Any] | None = None, *, safe: Any = False,
                 **attributes: Any) -> None:
        self.name = name  # type: ignore[misc]  # instances share one class here
        self.run = run
        self.safe = safe
        self.ran: list[dict[str, Any]] = []
        for key, value in attributes.items():
            setattr(self, key, value)

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return bool(self.safe(input) if callable(self.safe) else self.safe)

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        self.ran.append(input)
        value: Any = self.run(input, context) if self.run else f"ran {input}"
        if isinstance(value, Awaitable):
            value = await value
        return ToolResult(content=value, structured={"out": value}) if isinstance(value, str) else value


@pytest.fixture
def probe() -> type[Probe]:
    """The class of a tool that does what the test says."""
    return Probe
