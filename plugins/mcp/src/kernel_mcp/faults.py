"""What went wrong with a server: a status, words for people without secrets, and a code for the model (MCP contract, 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from kernel import ToolError
from kernel_mcp.redact import without_secrets

if TYPE_CHECKING:
    from kernel_mcp.link import Link

AUTH = (401, 403)


class LoginNeeded(Exception):
    """The server wants a person to log in, and nobody can be asked now."""


def leaves(error: BaseException | None) -> list[BaseException]:
    """The plain exceptions inside of groups."""
    if isinstance(error, BaseExceptionGroup):
        return [found for inner in error.exceptions for found in leaves(inner)]
    return [] if error is None else [error]


def describe(link: Link, error: BaseException | None, was_ready: bool) -> tuple[Literal["failed", "needs-auth"], str]:
    """The status that a connection ends in, and why."""
    all_of = leaves(error)
    if any(isinstance(e, LoginNeeded) for e in all_of):
        return "needs-auth", "it needs a login"
    gate = link.gate
    if gate is not None and gate.status in AUTH:
        if not any(name.lower() == "authorization" for name in link.server.headers):
            return "needs-auth", f"it needs a login ({gate.fault})"
        return "failed", f"{gate.fault}: the configured Authorization header was refused"
    text = gate.fault if gate is not None and gate.fault else ""
    first = all_of[0] if all_of else None
    if not text and isinstance(first, TimeoutError):
        text = str(first) or "it took too long"
    elif not text and isinstance(first, FileNotFoundError):
        text = f"the program {link.server.raw.get('command', '')!r} was not found"
    elif not text and isinstance(first, OSError):
        text = f"it could not be started: {first.strerror or first}"
    elif not text and first is not None:
        text = f"{type(first).__name__}: {first}"
    if link.child is not None:
        code = link.child.own_exit
        if was_ready and not text:
            text = "the server ended" + (f" (exit code {code})" if code is not None else "")
        elif code not in (None, 0):
            text = f"the server ended with exit code {code} before it was ready"
        if link.child.stderr and not (was_ready and code == 0):
            text += f"; it said: {link.child.stderr[-1]}"
    return "failed", without_secrets(text or "the connection was closed")[:500]


def transient(link: Link, error: BaseException | None) -> bool:
    """Whether the same may work a moment later."""
    from kernel_mcp.gate import NO_ANSWER

    status = link.gate.status if link.gate is not None else 0
    return status == NO_ANSWER or 500 <= status < 600


def login_error(name: str) -> ToolError:
    return ToolError("mcp_auth_required", f"The MCP server {name!r} needs a login. A person can run: kernel mcp login {name}")


def call_error(link: Link, error: Any, *, read_only: bool) -> ToolError:
    """A failed request as the model sees it."""
    from mcp import MCPError
    from pydantic import ValidationError

    name = link.server.name
    if isinstance(error, MCPError):
        if error.code == -32000 and "closed" in error.message.lower():
            return ToolError("mcp_disconnected", f"The MCP server {name!r} closed the connection during the call; what the call "
                             "did is not known.", retryable=read_only)
        if link.gate is not None and link.gate.status in AUTH:
            return ToolError("mcp_auth_required", f"The MCP server {name!r} refused the call ({link.gate.fault}): it needs a "
                             f"login. A person can run: kernel mcp login {name}")
        detail = link.gate.fault if link.gate is not None and link.gate.status else ""
        data = f" {error.error.data}" if error.error.data else ""
        why = f"{data[:1000]}" + (f" ({detail})" if detail else "")
        return ToolError("mcp_protocol", f"MCP error {error.code}: {error.message}{why}")
    if isinstance(error, ValidationError):
        lines = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3])
        return ToolError("mcp_protocol", f"The MCP server {name!r} sent a result that does not follow the protocol: {lines}")
    all_of = leaves(error)
    if any(isinstance(e, LoginNeeded) for e in all_of):
        return login_error(name)
    found = all_of[0]
    return ToolError("mcp_protocol", f"The MCP server {name!r}: {type(found).__name__}: {found}"[:1000])
