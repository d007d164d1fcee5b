"""The mcp_tool handler: a tool of a server that is connected already (hooks contract, section 6.4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from kernel_command_hooks.answer import Ran
from kernel_command_hooks.facts import row
from kernel_command_hooks.handlers import McpTool

if TYPE_CHECKING:
    from kernel_command_hooks.run_command import Call

BRIDGE = "mcp"
"""Where the plugin that holds the connections puts its ``Bridge``: ``session.root.plugin_state[BRIDGE]``."""

_PATH = re.compile(r"\$\{([^}]*)\}")


class Bridge(Protocol):
    """What is needed of it. It raises no tool events for the call, and starts no connection."""

    async def call(self, server: str, tool: str, input: dict[str, Any]) -> tuple[str, bool]:
        """The text of the result, and whether the tool says that it is an error.

        :raises Exception: the server is not connected, or the call failed; the text says why.
        """


async def run(call: Call) -> Ran:
    """The tool's text is read like the stdout of a command that ended well; everything else is a non-blocking error."""
    import anyio

    spec = call.handler.spec
    assert isinstance(spec, McpTool)
    bridge: Bridge | None = call.session.root.plugin_state.get(BRIDGE)
    if bridge is None:
        return _error(f"the MCP server {spec.server!r} is not connected: no plugin for MCP is at work in this session",
                      unusable=row(call.event.event_name).refuses)
    try:
        with anyio.fail_after(call.timeout):
            text, is_error = await bridge.call(spec.server, spec.tool, fill(spec.input, msgspec.json.decode(call.payload)))
    except TimeoutError:
        return Ran(code=None, timed_out=True, timeout=call.timeout)
    except Exception as error:  # a bridge's fault is a handler that failed, whatever it is
        return _error(f"{spec.text()}: {error or type(error).__name__}")
    return _error(f"{spec.text()} answered with an error: {text[:500]}") if is_error else Ran(stdout=text)


def _error(text: str, *, unusable: bool = False) -> Ran:
    return Ran(code=None, error=f"Failed with non-blocking status code: {text}", unusable=unusable)


def fill(value: Any, event: dict[str, Any]) -> Any:
    """``${path}`` replaced by what stands at the dotted path of the event; a path that leads nowhere is empty text. A string
    that is one placeholder keeps the type of the value."""
    if isinstance(value, dict):
        return {k: fill(v, event) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, event) for v in value]
    if not isinstance(value, str):
        return value
    if whole := _PATH.fullmatch(value):
        return _at(whole[1], event)
    return _PATH.sub(lambda m: _as_text(_at(m[1], event)), value)


def _at(path: str, value: Any) -> Any:
    for part in path.split("."):
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return ""
    return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
