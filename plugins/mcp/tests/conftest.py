"""A good server in a session, for the tests of this folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernel.testing import Kit, Run, call, text

PROGRAM = str(Path(__file__).with_name("mcp_good_server.py"))


class Bench:
    """Sessions with the good server, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def kit(self, *turns: Any, server: dict[str, Any] | None = None, args: tuple[str, ...] = (), installed: tuple[str, ...] = (),
            **options: Any) -> Kit:
        config = {"mcpServers": {"good": {"command": sys.executable, "args": ["-S", "-E", PROGRAM, *args], **(server or {})}}}
        extra = {"mcp_config": [json.dumps(config)], **options.pop("extra", {})}
        return Kit(self.folder, turns, installed=["mcp", *installed], extra=extra, **options)

    def run(self, made: Kit, prompt: str = "go", before: Any = None) -> Run:
        """One prompt in a new session, which is closed again. ``before`` is handed the session before it starts."""
        async def all_of_it() -> Run:
            session = made.open()
            if before is not None:
                before(session)
            done = await made.run(prompt, session)
            await session.close()
            return done

        return anyio.run(all_of_it)

    def seen(self, name: str, **given: Any) -> Any:
        """What the model sees of one call."""
        return self.run(self.kit(call(f"mcp__good__{name}", "c1", **given), text("done"))).result_of("c1")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "false")
    monkeypatch.setenv("MCP_TIMEOUT", "20000")
    return Bench(tmp_path)
