"""``kernel mcp ...``: add, add-json, list, get, remove, reset-project-choices, login, logout, serve (MCP contract, 1.4)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel import KernelError, UsageError, run_app
from kernel_mcp.entries import RESERVED, BadEntry, Server, parse
from kernel_mcp.redact import without_secrets
from kernel_mcp.store import PROJECT_FILE, change, global_config, own_entry, project_entry, read_object

if TYPE_CHECKING:
    from kernel_mcp.desk import Desk

SCOPES = ("local", "project", "user")
TRANSPORTS = ("stdio", "http", "sse")
CHECK_S = 10.0
PLACES = {"local": "the local config of this project", "project": f"the project's {PROJECT_FILE}", "user": "the user config"}


class McpCommand:
    """Exit codes: 0 fine, 1 it could not be done or a server is not well, 2 wrong usage."""

    name = "mcp"
    summary = "MCP servers: add, add-json, list, get, remove, reset-project-choices, login, logout, serve"

    def run(self, args: list[str]) -> int:
        try:
            return run_app(_app(), args or ["--help"], "kernel mcp")
        except KernelError as error:
            print(f"Error: {error}", file=sys.stderr)
            return 2 if isinstance(error, UsageError) else 1


def _app() -> Any:
    import typer

    app = typer.Typer(add_completion=False, help="MCP servers.", no_args_is_help=True)
    option = typer.Option

    @app.command("add", help="Add a server: NAME URL, or NAME -- COMMAND [ARGUMENTS].")
    def add_(name: str, target: list[str] = typer.Argument(..., help="an address, or a command behind --"),  # noqa: B008
             scope: str = option("local", "--scope", "-s", help="local, project or user"),
             transport: str = option("", "--transport", "-t", help="stdio, http or sse"),
             env: list[str] = typer.Option([], "--env", "-e", help="NAME=VALUE for the server's process"),  # noqa: B008
             header: list[str] = typer.Option([], "--header", "-H", help="'Name: value' for each request"),  # noqa: B008
             client_id: str = option("", "--client-id", help="of a client that was registered by hand"),
             callback_port: int = option(0, "--callback-port", help="where a login comes back")) -> int:
        return add(name, target, scope, transport, env, header, client_id, callback_port)

    @app.command("add-json", help="Add a server from one JSON object.")
    def add_json_(name: str, entry: str, scope: str = option("local", "--scope", "-s")) -> int:
        return add_json(name, entry, scope)

    @app.command("list", help="Connect to every server and say how it is.")
    def list_(as_json: bool = option(False, "--json"), timeout: float = option(CHECK_S, "--timeout", help="seconds for all"),
              check: bool = option(True, "--check/--no-check", help="whether to connect")) -> int:
        return listed(None, as_json, timeout, check)

    @app.command("get", help="Everything about one server.")
    def get_(name: str, as_json: bool = option(False, "--json"), timeout: float = option(CHECK_S, "--timeout"),
             check: bool = option(True, "--check/--no-check")) -> int:
        return listed(name, as_json, timeout, check)

    @app.command("remove", help="Remove a server from a config.")
    def remove_(name: str, scope: str = option("", "--scope", "-s", help="where several have it")) -> int:
        return remove(name, scope)

    @app.command("reset-project-choices", help="Forget which servers of the project's file were approved or rejected.")
    def reset_() -> int:
        return reset()

    @app.command("login", help="Log in at a server.")
    def login_(name: str, browser: bool = option(True, "--browser/--no-browser", help="whether to open one")) -> int:
        return login(name, browser)

    @app.command("logout", help="Forget the login at a server.")
    def logout_(name: str) -> int:
        return logout(name)

    @app.command("serve", help="Offer this harness's own tools as an MCP server on stdin and stdout.")
    def serve_(permission_mode: str = option("", "--permission-mode"), allowed: str = option("", "--allowedTools"),
               disallowed: str = option("", "--disallowedTools"), debug: bool = option(False, "--debug")) -> int:
        from kernel_mcp.serve import serve

        return serve(permission_mode, allowed, disallowed, debug)

    return app


# -- configs ----------------------------------------------------------------------------------------------------------------
def _desk() -> Desk:
    from kernel_mcp.desk import Desk

    return Desk(Path.cwd())


def _checked(name: str, scope: str) -> None:
    """:raises UsageError: the name or the scope cannot be used, or nothing may be added here."""
    from kernel import Settings
    from kernel_mcp.sources import CANNOT_ADD, managed_file

    if scope not in SCOPES:
        raise UsageError(f"--scope {scope}: expected one of {', '.join(SCOPES)}")
    if not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise UsageError(f"{name!r} is no name for a server", hint="letters, digits, - and _")
    if name in RESERVED:
        raise UsageError(f"the name {name!r} is reserved", hint="choose another")
    if managed_file(Settings.load(Path.cwd())).exists():
        raise KernelError(CANNOT_ADD)


def _pairs(texts: Iterable[str], sign: str, what: str) -> dict[str, str]:
    made = {}
    for text in texts:
        name, found, value = text.partition(sign)
        if not found or not name.strip():
            raise UsageError(f"{what} {text!r}: expected NAME{sign}VALUE")
        made[name.strip()] = value if sign == "=" else value.strip()
    return made


def add(name: str, target: list[str], scope: str, transport: str, env: list[str], header: list[str], client_id: str = "",
        callback_port: int = 0) -> int:
    """Write one entry; fails where the scope has the name."""
    if transport and transport not in TRANSPORTS:
        raise UsageError(f"--transport {transport}: expected one of {', '.join(TRANSPORTS)}")
    address = len(target) == 1 and re.match(r"https?://", target[0], re.IGNORECASE) is not None
    kind = transport or ("http" if address else "stdio")
    entry: dict[str, Any]
    if kind == "stdio":
        if address:
            raise UsageError(f"{target[0]} is an address and no command", hint="--transport http")
        if header:
            raise UsageError("--header is for servers with an address", hint="--env sets variables of a process")
        entry = {"type": "stdio", "command": target[0], "args": target[1:], "env": _pairs(env, "=", "--env")}
    else:
        if not address:
            raise UsageError(f"{' '.join(target)!r} is no address", hint="http:// or https://, and nothing behind it")
        if env:
            raise UsageError("--env is for servers that are started here", hint="--header sets what is sent")
        entry = {"type": kind, "url": target[0], "headers": _pairs(header, ":", "--header")}
        oauth = {"clientId": client_id, "callbackPort": callback_port}
        entry |= {"oauth": {k: v for k, v in oauth.items() if v}} if any(oauth.values()) else {}
    return _write(name, {k: v for k, v in entry.items() if v not in ({}, [])}, scope)


def add_json(name: str, text: str, scope: str) -> int:
    try:
        entry = json.loads(text)
    except ValueError as error:
        raise UsageError(f"is not valid JSON: {error}", context="add-json") from None
    return _write(name, entry, scope)


def _write(name: str, entry: Any, scope: str) -> int:
    _checked(name, scope)
    try:
        parse(name, entry, "user", "")
    except BadEntry as error:
        raise UsageError(str(error), context=f"server {name!r}") from None

    def put(servers: Any) -> None:
        if not isinstance(servers, dict):
            raise KernelError("mcpServers is no object", context=PLACES[scope], hint="mend the file")
        if name in servers:
            raise KernelError(f"there is an MCP server {name!r} already in {PLACES[scope]}", hint=f"kernel mcp remove {name}")
        servers[name] = entry

    cwd = Path.cwd()
    if scope == "project":
        path = cwd / PROJECT_FILE
        change(path, lambda data: put(data.setdefault("mcpServers", {})), mode=None if path.exists() else 0o644)
    else:
        path = global_config()
        change(path, lambda data: put((own_entry(data, cwd) if scope == "local" else data).setdefault("mcpServers", {})))
    print(f"Added the MCP server {name!r} to {PLACES[scope]} ({path})")
    return 0


def remove(name: str, scope: str) -> int:
    cwd = Path.cwd()
    config = read_object(global_config()) or {}
    has = {"local": name in (project_entry(config, cwd).get("mcpServers") or {}),
           "project": name in ((read_object(cwd / PROJECT_FILE) or {}).get("mcpServers") or {}),
           "user": name in (config.get("mcpServers") or {})}
    found = [s for s in SCOPES if has[s] and scope in ("", s)]
    if not found:
        raise KernelError(f"there is no MCP server {name!r}" + (f" in {PLACES[scope]}" if scope in PLACES else ""),
                          hint="kernel mcp list")
    if len(found) > 1:
        raise UsageError(f"several configs have an MCP server {name!r}: {', '.join(found)}", hint="say which with --scope")

    def drop(data: dict[str, Any]) -> None:
        (own_entry(data, cwd) if found[0] == "local" else data)["mcpServers"].pop(name, None)

    change(cwd / PROJECT_FILE if found[0] == "project" else global_config(), drop)
    print(f"Removed the MCP server {name!r} from {PLACES[found[0]]}")
    return 0


def reset() -> int:
    """The choices stand in the project's local settings, and in the global config of older versions."""
    cwd = Path.cwd()
    keys = ("enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers")

    def clear(data: dict[str, Any]) -> None:
        for key in keys:
            data.pop(key, None)

    local = cwd / ".claude" / "settings.local.json"
    if local.exists():
        change(local, clear)
    if project_entry(read_object(global_config()) or {}, cwd):
        change(global_config(), lambda data: clear(own_entry(data, cwd)))
    print("The choices about servers of the project's file are forgotten; the next session asks again")
    return 0


# -- what is there ------------------------------------------------------------------------------------------------------------
def listed(name: str | None, as_json: bool, timeout: float, check: bool) -> int:
    """Exit code 1 where a server that should work does not."""
    desk = _desk()
    found = desk.gathered()
    for text in found.warnings:
        print(text, file=sys.stderr)
    servers = [s for n, s in sorted(found.servers.items()) if name in (None, n)]
    off = {n: pair for n, pair in found.disabled.items() if name in (None, n)}
    if name is not None and not servers and not off:
        raise KernelError(f"there is no MCP server {name!r}", hint="kernel mcp list")
    facts = _health(desk, servers, timeout) if check else {s.name: {"status": "not checked", "error": ""} for s in servers}
    rows = [{"name": s.name, "scope": s.scope, "source": s.source, "config": s.shown(), **facts[s.name]} for s in servers]
    rows += [{"name": n, "scope": s.scope, "source": s.source, "config": s.shown(), **_not_connected(desk, n, reason)}
             for n, (s, reason) in sorted(off.items())]
    if as_json:
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    elif not rows:
        print("No MCP servers are configured. Add one: kernel mcp add NAME URL, or kernel mcp add NAME -- COMMAND")
    for row in () if as_json else rows:
        error = f": {without_secrets(str(row['error']))}" if row.get("error") else ""
        print(f"{row['name']} ({row['scope']}): {where(row['config'])} - {row['status']}{error}")
        if name is not None:
            _details(row)
    return 1 if any(row["status"] in ("failed", "needs-auth") for row in rows) else 0


def _not_connected(desk: Desk, name: str, reason: str) -> dict[str, str]:
    """Status and words for a server that is not connected here. Who may connect an undecided one differs from mode to mode."""
    import msgspec

    from kernel_mcp.sources import PENDING_APPROVAL, approval

    if reason != PENDING_APPROVAL:
        return {"status": "disabled", "error": reason}
    asked = approval(name, msgspec.structs.replace(desk.options, print_mode=True), desk.settings)
    return {"status": "pending approval", "error": "an interactive session asks first, kernel -p "
            + ("leaves it out" if asked else "connects it without asking")}


def _details(row: dict[str, Any]) -> None:
    print(f"  from: {row['source']}")
    for key in ("type", "env", "headers", "timeout"):
        if row["config"].get(key):
            print(f"  {key}: {row['config'][key]}")
    if row.get("tools"):
        print(f"  tools: {', '.join(row['tools'])}")


def where(config: dict[str, Any]) -> str:
    """The address or the command of an entry, as it was written: expanded values may be secret."""
    if config.get("url"):
        return str(config["url"])
    return " ".join([str(config.get("command") or config["type"]), *map(str, config.get("args") or ())])


def _health(desk: Desk, servers: list[Server], timeout: float) -> dict[str, dict[str, Any]]:
    import anyio

    from kernel_mcp.desk import connected

    if not servers:
        return {}
    print(f"Connecting to {len(servers)} server{'s' if len(servers) != 1 else ''} ...", file=sys.stderr)
    return {link.server.name: link.facts for link in anyio.run(partial(connected, desk, servers, seconds=timeout))}


# -- logins -------------------------------------------------------------------------------------------------------------------
def _remote(desk: Desk, name: str) -> Server:
    found = desk.gathered()
    server = found.servers.get(name) or (found.disabled[name][0] if name in found.disabled else None)
    if server is None:
        raise KernelError(f"there is no MCP server {name!r}", hint="kernel mcp list")
    if server.kind not in ("http", "sse"):
        raise KernelError(f"the MCP server {name!r} is of type {server.kind}, which knows no login")
    return server


def login(name: str, browser: bool) -> int:
    import anyio

    from kernel_mcp.credentials import Credentials, place
    from kernel_mcp.desk import connected
    from kernel_mcp.login import WAIT_S, LoopbackLogin

    desk = _desk()
    server = _remote(desk, name)
    credentials = Credentials(server, place())

    async def run() -> Any:
        async with LoopbackLogin(server, credentials, browser=browser) as person:
            return (await connected(desk, [server], seconds=WAIT_S, login=person))[0]

    try:
        link = anyio.run(run)
    except OSError as error:
        raise KernelError(f"the port for the way back cannot be used: {error.strerror or error}") from None
    if link.facts["status"] != "connected":
        raise KernelError(f"the login at {name!r} failed: {link.facts['error']}")
    print(f"Logged in at {name!r}" if credentials.has_login else f"{name!r} is connected; it asked for no login")
    return 0


def logout(name: str) -> int:
    from kernel_mcp.credentials import Credentials, place

    had = Credentials(_remote(_desk(), name), place()).forget()
    print(f"The login at {name!r} is forgotten" if had else f"There was no login at {name!r}")
    return 0
