"""Servers in a session, local and remote, for the tests of this folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from typing import Any

import anyio
import pytest
from kernel_mcp import limits as lim
from kernel_mcp.calls import call_tool
from kernel_mcp.extension import STATE

from kernel import ToolError
from kernel.testing import Kit, Run, call, text

PROGRAM = str(Path(__file__).with_name("mcp_good_server.py"))
Web = run_path(str(Path(__file__).with_name("mcp_web.py")))["Web"]


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


class Remote:
    """Sessions with a server behind an address, in a folder of their own."""

    def __init__(self, folder: Path, web: Any) -> None:
        self.folder = folder
        self.web = web

    def kit(self, *turns: Any, entry: dict[str, Any] | None = None, **options: Any) -> Kit:
        config = {"mcpServers": {"web": {"type": "http", "url": self.web.url, **(entry or {})}}}
        return Kit(self.folder, turns, installed=["mcp"], extra={"mcp_config": [json.dumps(config)]}, **options)

    async def connected(self, made: Kit) -> tuple[Any, Any]:
        """A started session and its link to the server."""
        session = made.open()
        await session.start()
        return session, session.plugin_state[STATE].links["web"]

    def facts(self, **entry: Any) -> tuple[str, str]:
        """Status and error of one connection."""
        async def look() -> tuple[str, str]:
            session, link = await self.connected(self.kit(entry=entry))
            found = link.status, link.error
            await session.close()
            return found

        return anyio.run(look)

    def outcome(self, **entry: Any) -> str:
        """What one call comes to: its text, or its code."""
        async def look() -> str:
            session, link = await self.connected(self.kit(entry=entry))
            try:
                return str((await call_tool(link, "work", {})).content[0].text)
            except ToolError as error:
                return f"{error.code}: {error}"
            finally:
                await session.close()

        return anyio.run(look)


@pytest.fixture
def web() -> Iterator[Any]:
    with Web() as server:
        yield server


@pytest.fixture
def net(tmp_path: Path, web: Any, monkeypatch: pytest.MonkeyPatch) -> Remote:
    monkeypatch.setenv("ENABLE_TOOL_SEARCH", "false")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(lim, "RETRY_S", 0.02)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return Remote(tmp_path, web)
