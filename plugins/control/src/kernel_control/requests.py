"""The requests of the program, one function for each (SDK contract, section 4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from kernel import SessionError
from kernel_control import frames
from kernel_control.frames import Refused, field

if TYPE_CHECKING:
    from kernel_control.talk import Talk

Request = dict[str, Any]


async def serve(talk: Talk, id: str, request: Request) -> dict[str, Any] | None:
    """The answering frame; ``None`` where it was written already.

    :raises Refused: it cannot be done; so do errors of the kernel.
    """
    subtype = request.get("subtype")
    if subtype == "initialize":
        return await _initialize(talk, id)
    handler = HANDLERS.get(subtype) if isinstance(subtype, str) else None
    if handler is None:
        raise Refused(f"Unsupported control request subtype: {str(subtype)[:100]}")
    return frames.success(id, await handler(talk, request))


async def _initialize(talk: Talk, id: str) -> dict[str, Any] | None:
    response, beside = await talk.setup.answer()
    answer = frames.success(id, response, beside)
    if not talk.setup.repeated:
        return answer
    talk.wire.write(frames.line(answer))
    talk.session.tell_tasks(_tasks(talk))
    return None


async def interrupt(talk: Talk, request: Request) -> dict[str, Any]:
    drop = bool(field(request, "cancel_queued", bool, required=False))
    talk.wire.interrupt()
    behind = talk.wire.queued(drop=drop)
    return {"still_queued": [], "cancelled": behind} if drop else {"still_queued": behind}


async def set_permission_mode(talk: Talk, request: Request) -> dict[str, Any]:
    mode = field(request, "mode", str)
    session = talk.session
    if mode == "bypassPermissions" and session.state.permission_mode != mode and not (
            session.options.allow_bypass or session.options.permission_mode == mode):
        raise Refused("set_permission_mode: bypassPermissions is not available; start with it, or with "
                      "--allow-dangerously-skip-permissions")
    await talk.wire.started()
    session.set_mode(mode)
    return {}


async def set_model(talk: Talk, request: Request) -> dict[str, Any]:
    model = field(request, "model", str, required=False)
    if model == "":
        raise Refused("set_model: the field 'model' must be the name of a model or null")
    await talk.wire.started()
    talk.choose_model(model)
    return {}


async def set_max_thinking_tokens(talk: Talk, request: Request) -> dict[str, Any]:
    tokens = field(request, "max_thinking_tokens", int, required=False)
    if tokens is not None and tokens < 0:
        raise Refused("set_max_thinking_tokens: the field 'max_thinking_tokens' must not be negative")
    talk.session.options.max_thinking_tokens = tokens or None
    return {}


async def rewind_files(talk: Talk, request: Request) -> dict[str, Any]:
    message = field(request, "user_message_id", str)
    dry_run = bool(field(request, "dry_run", bool, required=False))
    await talk.wire.started()
    try:
        done = talk.session.rewind_files(message, dry_run=dry_run)
    except SessionError as error:
        raise Refused(error.message) from None
    if not done.get("canRewind"):
        raise Refused(str(done.get("error") or "No file checkpoint found for this message"))
    return done


async def get_context_usage(talk: Talk, request: Request) -> dict[str, Any]:
    from kernel_control.usage import usage

    await talk.wire.started()
    return usage(talk.session)


# -- MCP servers -----------------------------------------------------------------------------------------------------------
async def mcp_status(talk: Talk, request: Request) -> dict[str, Any]:
    await talk.wire.started()
    bridge = talk.session.plugin_state.get("mcp")
    return {"mcpServers": bridge.report() if bridge is not None else []}


async def mcp_reconnect(talk: Talk, request: Request) -> dict[str, Any]:
    name = field(request, "serverName", str)
    await talk.wire.started()
    try:
        await _bridge(talk, name).reconnect(name)
    except KeyError:
        raise Refused(_unknown(name)) from None
    except ConnectionError as error:
        raise Refused(f"the MCP server {name!r} does not connect: {error}") from None
    return {}


async def mcp_toggle(talk: Talk, request: Request) -> dict[str, Any]:
    name, enabled = field(request, "serverName", str), field(request, "enabled", bool)
    await talk.wire.started()
    try:
        await _bridge(talk, name).toggle(name, enabled)
    except KeyError:
        raise Refused(_unknown(name)) from None
    return {}


async def mcp_set_servers(talk: Talk, request: Request) -> dict[str, Any]:
    servers = field(request, "servers", dict)
    await talk.wire.started()
    bridge = talk.session.plugin_state.get("mcp")
    if bridge is None:
        raise Refused("mcp_set_servers: this session began without any MCP server; start it with --mcp-config")
    done: dict[str, Any] = await bridge.set_servers(servers)
    return done


def _bridge(talk: Talk, name: str) -> Any:
    bridge = talk.session.plugin_state.get("mcp")
    if bridge is None:
        raise Refused(_unknown(name))
    return bridge


def _unknown(name: str) -> str:
    return f"there is no MCP server {name[:80]!r}"


# -- tasks -----------------------------------------------------------------------------------------------------------------
async def stop_task(talk: Talk, request: Request) -> dict[str, Any]:
    task = _tasks(talk).get(field(request, "task_id", str))
    if task is None or task.status != "running":
        raise Refused(f"stop_task: no task {request['task_id'][:80]!r} is running")
    await task.stop()
    return {}


def _tasks(talk: Talk) -> dict[str, Any]:
    """The table of background tasks, which the plugin ``tools-shell`` describes."""
    found: dict[str, Any] = talk.session.plugin_state.get("tasks") or {}
    return found


HANDLERS: dict[str, Callable[[Talk, Request], Awaitable[dict[str, Any]]]] = {
    handler.__name__: handler for handler in (
        interrupt, set_permission_mode, set_model, set_max_thinking_tokens, rewind_files, get_context_usage, mcp_status,
        mcp_reconnect, mcp_toggle, mcp_set_servers, stop_task)}
