"""Tells the model which failure of a command was the sandbox's doing, in the result itself (tools contract, 10.5)."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from kernel import Middleware, Tool, ToolContext, ToolResult, ToolRunner
from kernel_sandbox.confinement import Confinement

if TYPE_CHECKING:
    from kernel_sandbox.aside import Aside

SCANNED = 60_000
"""Characters of a result that are searched for refusals."""

_READ_ONLY = re.compile(r"read-only file system|\bEROFS\b|device or resource busy|\bEBUSY\b", re.I)
_HIDDEN = re.compile(r"permission denied|\bEACCES\b", re.I)
_SOCKET = re.compile(r"operation not permitted|\bEPERM\b", re.I)
_NETWORK = re.compile(
    r"could not resolve|couldn't resolve|name or service not known|temporary failure in name resolution|network is unreachable|"
    r"no address associated|nodename nor servname|failed to lookup address|no such host|name resolution|\bENOTFOUND\b|"
    r"\bEAI_AGAIN\b|\bENETUNREACH\b|tunnel (?:connection )?failed|proxy connect aborted|unable to resolve host", re.I)
_SET_UP = re.compile(r"^(?:bwrap|sandbox set-up): .*", re.M)


class Notes(Middleware):
    """Around every tool call of a session whose commands are confined."""

    name = "sandbox"

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        sandbox = context.session.sandbox
        if not isinstance(sandbox, Confinement) or sandbox.asked().everything:
            return await next(tool, input, context)
        if tool.name == "Bash" and sandbox.confines(input):
            return await _confined(sandbox, tool, input, context, next)
        result = await next(tool, input, context)
        if tool.name == "Bash":
            aside(sandbox).before()
        elif tool.permission == "path" and not tool.is_read_only(input):
            aside(sandbox).written(os.path.join(context.cwd, p) for p in tool.permission_paths(input))
        return result


async def _confined(sandbox: Confinement, tool: Tool, input: dict[str, Any], context: ToolContext,
                    next: ToolRunner) -> ToolResult:
    import anyio.to_thread

    refusals, moved = sandbox.refusals, aside(sandbox)
    await anyio.to_thread.run_sync(sandbox.look, context.cwd)
    moved.before()
    lines: list[str] = []
    try:
        result = await next(tool, input, context)
    finally:
        lines += moved.after()
    lines = [*explain(_text(result), sandbox, sandbox.refused_since(refusals)), *lines]
    return with_lines(result, lines) if lines else result


def aside(sandbox: Confinement) -> Aside:
    from kernel_sandbox.aside import Aside

    state = sandbox.session.plugin_state
    if "sandbox.aside" not in state:
        state["sandbox.aside"] = Aside(sandbox)
    found: Aside = state["sandbox.aside"]
    return found


def explain(text: str, sandbox: Confinement, refused: list[str]) -> list[str]:
    """One line for each kind of refusal that the output shows."""
    asked, lines = sandbox.asked(), []
    escape = " Where the command has to, call it with dangerouslyDisableSandbox: true; that is asked for." if asked.escape else ""
    if found := _SET_UP.search(text):
        lines.append(f"[sandbox] The sandbox could not run the command: {found[0][:300]}")
    if _READ_ONLY.search(text):
        places = ", ".join([*sandbox.work(), *asked.write, "$TMPDIR"])
        lines.append(f"[sandbox] Commands can write in {places} only, and not to protected files there (.git/config, .git/hooks, "
                     f".claude, shell and tool settings). A person can add places with sandbox.filesystem.allowWrite.{escape}")
    if sandbox.hides and _HIDDEN.search(text):
        lines.append("[sandbox] Some files are hidden from commands by sandbox.filesystem.denyRead or a Read deny rule; a "
                     "refused permission may come from that. Do not look for a way around it.")
    if not asked.unix_sockets and _SOCKET.search(text):
        lines.append("[sandbox] Commands cannot open Unix sockets (Docker, ssh agents, D-Bus). A person can allow it with "
                     f"sandbox.network.allowAllUnixSockets, or name the command in sandbox.excludedCommands.{escape}")
    if refused:
        lines.append(f"[sandbox] Refused: {', '.join(refused[:10])}. A person can allow hosts with "
                     f"sandbox.network.allowedDomains.{escape}")
    elif _NETWORK.search(text):
        hosts = ", ".join(str(p.host) for p in asked.domains.allowed[:20])
        reach = f"can reach {hosts} only, and only through the proxy in HTTPS_PROXY" if hosts else "cannot use the network"
        lines.append(f"[sandbox] Commands {reach}. A person can allow hosts with sandbox.network.allowedDomains.{escape}")
    return lines


def _text(result: ToolResult) -> str:
    content = result.content
    text = content if isinstance(content, str) else "\n".join(str(b.get("text", "")) for b in content)
    return text if len(text) <= SCANNED else f"{text[:SCANNED // 2]}\n{text[-SCANNED // 2:]}"


def with_lines(result: ToolResult, lines: list[str]) -> ToolResult:
    """The result with lines at its end; in the notes of the tool where the output is structured."""
    note = "\n".join(lines)
    content: Any = f"{result.content}\n{note}" if isinstance(result.content, str) else [
        *result.content, {"type": "text", "text": note}]
    structured = result.structured
    if isinstance(structured, dict) and isinstance(structured.get("stderr"), str):
        structured = {**structured, "stderr": "\n".join(filter(None, [structured["stderr"], note]))}
    return replace(result, content=content, structured=structured)
