"""The public SDK for Python drives ``kernel`` by ``cli_path``; skipped where it is not installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

sdk = pytest.importorskip("claude_agent_sdk")

SCRIPT = """
turns:
  - calls:
      - {tool: mcp__calc__add, input: {a: 1, b: 2}}
      - {tool: Bash, input: {command: touch made}}
  - text: "last: {{last_result}}"
"""


def test_callbacks_hooks_and_tools_of_a_python_program(tmp_path: Path) -> None:
    (tmp_path / "script.yaml").write_text(SCRIPT)
    launcher = tmp_path / "cli"
    launcher.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m kernel \"$@\"\n")
    launcher.chmod(0o755)
    asked: list[str] = []
    hooked: list[str] = []

    @sdk.tool("add", "Adds.", {"a": int, "b": int})  # type: ignore[untyped-decorator,unused-ignore]
    async def add(args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": str(args["a"] + args["b"])}]}

    async def allow(name: str, given: dict[str, Any], context: Any) -> Any:
        asked.append(name)
        return sdk.PermissionResultAllow(updated_input=given)

    async def hook(data: Any, tool_use_id: Any, context: Any) -> dict[str, Any]:
        hooked.append(data["tool_name"])
        return {}

    async def main() -> None:
        store = sdk.InMemorySessionStore()
        options = sdk.ClaudeAgentOptions(
            cli_path=launcher, cwd=tmp_path, can_use_tool=allow, session_store=store,
            mcp_servers={"calc": sdk.create_sdk_mcp_server("calc", tools=[add])},
            hooks={"PreToolUse": [sdk.HookMatcher(hooks=[hook])]},
            env={"HOME": str(tmp_path / "home"), "CLAUDE_CONFIG_DIR": str(tmp_path / "home" / ".claude"),
                 "KERNEL_PROVIDER": "script", "KERNEL_SCRIPT": "script.yaml", "ENABLE_TOOL_SEARCH": "false"})
        async with sdk.ClaudeSDKClient(options) as client:
            assert (await client.get_server_info())["protocol_version"] == "0.2.143"
            await client.query("Go.")
            result = [m async for m in client.receive_response()][-1]
            assert not result.is_error and result.result.startswith("last: ")
            status = await client.get_mcp_status()
            assert status["mcpServers"][0]["status"] == "connected"
        key = next(iter(store._store)) if hasattr(store, "_store") else None
        assert key is None or result.session_id in str(key)

    with anyio.from_thread.start_blocking_portal() as portal:
        portal.call(main)
    assert sorted(asked) == ["Bash", "mcp__calc__add"] and sorted(hooked) == ["Bash", "mcp__calc__add"]
    assert (tmp_path / "made").exists()
