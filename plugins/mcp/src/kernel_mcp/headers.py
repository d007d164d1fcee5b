"""Headers of a remote server: the entry's own, and those that a helper prints (MCP contract, 7.4)."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from kernel_mcp.entries import Server
    from kernel_mcp.host import Host

LIMIT_S = 10.0
_PARTS = frozenset("TOKEN SECRET PASSWORD PASSWD PASSPHRASE KEY AUTH COOKIE PAT DSN CREDENTIAL CREDENTIALS".split())


async def headers_of(host: Host, server: Server) -> dict[str, str]:
    """The headers for a new connection; a helper's beat static ones of the same name.

    :raises ConnectionError: the helper failed, so that the server would only refuse us.
    """
    headers = dict(server.headers)
    if not server.headers_helper:
        return headers
    if server.scope in ("project", "local", "agent") and not host.session.settings.trusted:
        host.session.notice(f"the headersHelper of the MCP server {server.name!r} does not run: this workspace has not been "
                            "trusted")
        return headers
    made = await _run(host, server)
    lower = {name.lower() for name in made}
    return {**{k: v for k, v in headers.items() if k.lower() not in lower}, **made}


async def _run(host: Host, server: Server) -> dict[str, str]:
    env = {**os.environ, "CLAUDE_CODE_MCP_SERVER_NAME": server.name, "CLAUDE_CODE_MCP_SERVER_URL": server.url}
    if server.scope in ("project", "local", "agent", "plugin"):
        env = {k: v for k, v in env.items() if not is_credential(k)}
    env |= server.places
    process = await anyio.open_process(["/bin/sh", "-c", server.headers_helper], cwd=_place(host, server), env=env,
                                       start_new_session=True)
    out = b""
    try:
        with anyio.fail_after(LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(_drop, process.stderr)
                assert process.stdout is not None
                async for chunk in process.stdout:
                    out += chunk
                    if len(out) > 1_000_000:
                        raise ConnectionError("its headersHelper prints too much")
            code = await process.wait()
    except TimeoutError:
        raise ConnectionError(f"its headersHelper did not end within {LIMIT_S:g} seconds") from None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, 9)
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(1):
                await process.aclose()
    if code != 0:
        raise ConnectionError(f"its headersHelper ended with exit code {code}")
    try:
        made = json.loads(out.decode("utf-8", "replace"))
    except ValueError:
        made = None
    if not isinstance(made, dict) or any(not isinstance(v, str) or re.search(r"[\r\n\0]", k + v) for k, v in made.items()):
        raise ConnectionError("its headersHelper must print one JSON object of texts")
    return made


async def _drop(stream: object) -> None:
    if stream is not None:
        async for _ in stream:  # type: ignore[attr-defined]
            pass


def _place(host: Host, server: Server) -> Path:
    if server.root:
        return Path(server.root)
    return host.session.settings.config_dir if server.scope in ("user", "managed") else Path(host.cwd)


def is_credential(name: str) -> bool:
    """Whether a variable's name says that it holds a credential."""
    return any(part in _PARTS for part in re.split(r"[^A-Z0-9]+", name.upper()))
