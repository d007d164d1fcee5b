"""``kernel serve``, ``kernel serve status``, ``kernel serve sessions``, ``kernel serve stop``."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel import UsageError
from kernel_serve.places import default_socket

SocketOption = Annotated[Path | None, typer.Option("--socket", help="the unix socket; the configuration folder's by default")]
JsonOption = Annotated[bool, typer.Option("--json", help="one JSON object")]


def serve_(
    socket: SocketOption = None,
    port: Annotated[int | None, typer.Option(help="listen on TCP as well; 0: any free port", min=0, max=65535)] = None,
    host: Annotated[str, typer.Option(help="the address for --port")] = "127.0.0.1",
    allow_remote: Annotated[bool, typer.Option("--allow-remote", help="permit a --host that other machines reach")] = False,
    max_sessions: Annotated[int, typer.Option(help="sessions that may be open at once", min=1)] = 200,
    session_idle: Annotated[float, typer.Option(help="seconds until a session that nobody listens to and that says nothing is "
                                                     "closed; 0: never", min=0)] = 1800,
    idle_exit: Annotated[float, typer.Option(help="seconds without a session until the server ends; 0: never", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="what a program wants to know, as one line of JSON")] = False,
) -> None:
    import asyncio

    from kernel_serve.server import Limits, Server

    if os.environ.get("KERNEL_HARNESS"):
        raise UsageError("a locked harness owns its whole process and cannot be served with others", context="KERNEL_HARNESS",
                         hint="unset it for kernel serve")
    if port is not None and not _is_local(host):
        if not allow_remote:
            raise UsageError(f"{host} may be reached from other machines, and the token is worth your account",
                             context="--host", hint="--allow-remote permits it; better leave it at 127.0.0.1 and use ssh -L")
        print(f"Warning: {host} may be reached from other machines. Whoever has the token can run commands as you, and "
              "nothing is encrypted", file=sys.stderr)
    path = os.path.abspath(socket.expanduser()) if socket is not None else default_socket()

    async def run() -> str:
        server = Server(path, tcp=None if port is None else (host, port),
                        limits=Limits(max_sessions, session_idle, idle_exit))

        def ready() -> None:
            facts = server.status()
            also = f" and {facts['url']}" if facts["url"] else ""
            print(json.dumps(facts) if as_json else f"kernel serve: {path}{also} (process {facts['pid']}); kernel -p --attach "
                  "runs here", flush=True)

        return await server.run(ready)

    _alone()
    why = asyncio.run(run())
    if not as_json:
        print(f"kernel serve: ended ({why})", file=sys.stderr)


def _is_local(host: str) -> bool:
    import ipaddress

    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _alone() -> None:
    """No session inherits a folder or an input of the one who started the server."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.chdir("/")


def _ask(socket: Path | None, method: str, target: str) -> Any:
    from kernel_serve.client import Client, NoServer, Rejected

    try:
        return Client(os.path.abspath(socket.expanduser()) if socket is not None else default_socket()).request(method, target)
    except (NoServer, Rejected) as error:
        raise UsageError(str(error)) from None


def status_(socket: SocketOption = None, as_json: JsonOption = False) -> None:
    facts = _ask(socket, "GET", "/v1/status")
    print(json.dumps(facts, indent=1) if as_json else "\n".join(f"{name:<13} {value}" for name, value in facts.items()
                                                                if value is not None))


def sessions_(socket: SocketOption = None, as_json: JsonOption = False) -> None:
    rows = _ask(socket, "GET", "/v1/sessions")["sessions"]
    if as_json:
        print(json.dumps(rows, indent=1))
    elif not rows:
        print("No session is open.")
    for row in () if as_json else rows:
        line = (f"{row['id']:<36}  {row['state']:<8}  {row.get('turns', 0):>4} turns  {row['followers']} listening  "
                f"{row.get('model') or '?'}  {row['cwd']}")
        print("".join(c if c.isprintable() else "?" for c in line))  # a folder's name may hold anything


def stop_(socket: SocketOption = None, as_json: JsonOption = False) -> None:
    import time

    pid = _ask(socket, "GET", "/v1/status")["pid"]
    _ask(socket, "POST", "/v1/stop")
    until = time.monotonic() + 30
    while time.monotonic() < until and _lives(pid):
        time.sleep(0.05)
    ended = not _lives(pid)
    print(json.dumps({"pid": pid, "ended": ended}) if as_json else
          f"The server (process {pid}) has ended." if ended else f"The server (process {pid}) was told to end and still runs.")
    raise typer.Exit(0 if ended else 1)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except ProcessLookupError:
        return False
    except OSError:
        return True
