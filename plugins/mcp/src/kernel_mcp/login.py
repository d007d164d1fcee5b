"""A person logs in: an address is shown and opened, and the way back is caught on a port of this machine or pasted.

Works without a browser here: open the address anywhere, and paste the address that the browser ends at (MCP contract, 7.2).
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from kernel_mcp.credentials import Credentials
    from kernel_mcp.entries import Server

WAIT_S = 300.0
PATH = "/callback"
CLIENT_METADATA_VARIABLE = "KERNEL_MCP_CLIENT_METADATA_URL"
_PAGE = (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
         b"You can close this page and go back to the terminal.\n")


class LoopbackLogin:
    """The login of ``kernel mcp login``. Create it, enter it, hand it to the host."""

    remembers = True

    def __init__(self, server: Server, credentials: Credentials, *, browser: bool = True) -> None:
        self._browser = browser
        self.client_metadata_url = os.environ.get(CLIENT_METADATA_VARIABLE) or None
        wanted = server.oauth.get("callbackPort") or credentials.redirect_port or 0
        self._sockets = _listening(wanted if isinstance(wanted, int) else 0)
        self.port: int = self._sockets[0].getsockname()[1]
        self.redirect_uri = f"http://localhost:{self.port}{PATH}"
        self._back: asyncio.Future[tuple[str, str | None, str | None]] | None = None
        self._servers: list[asyncio.Server] = []

    async def __aenter__(self) -> LoopbackLogin:
        self._back = asyncio.get_running_loop().create_future()
        for listening in self._sockets:
            self._servers.append(await asyncio.start_server(self._serve, sock=listening))
        return self

    async def __aexit__(self, *error: object) -> None:
        for server in self._servers:
            server.close()
        if self._pasting:
            with suppress(Exception):
                asyncio.get_running_loop().remove_reader(sys.stdin)

    _pasting = False

    async def show(self, url: str) -> None:
        print(f"Open this address to log in:\n\n  {url}\n", file=sys.stderr)
        if self._browser:
            import webbrowser

            with suppress(Exception):
                await asyncio.to_thread(webbrowser.open, url)
        print("Waiting. Where the browser is on another machine, paste the address that it ends at here.", file=sys.stderr)
        with suppress(Exception):  # a stdin that cannot be watched: the port alone must do
            asyncio.get_running_loop().add_reader(sys.stdin, self._pasted)
            self._pasting = True

    async def answer(self) -> tuple[str, str | None, str | None]:
        assert self._back is not None
        return await asyncio.wait_for(self._back, WAIT_S)

    def _pasted(self) -> None:
        line = sys.stdin.readline()
        if not line:
            asyncio.get_running_loop().remove_reader(sys.stdin)
            self._pasting = False
            return
        self._take(line.strip())

    def _take(self, address: str) -> None:
        """The answer in an address; one that holds none is ignored."""
        query = {key: values[0] for key, values in parse_qs(urlsplit(address).query).items()}
        if self._back is None or self._back.done():
            return
        if "error" in query:
            said = query.get("error_description") or query["error"]
            self._back.set_exception(PermissionError(f"the login was refused: {said[:300]}"))
        elif "code" in query:
            self._back.set_result((query["code"], query.get("state"), query.get("iss")))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await asyncio.wait_for(reader.readline(), 5)
            method, _, rest = line.decode("latin-1").partition(" ")
            target = rest.split(" ")[0]
            if method == "GET" and urlsplit(target).path == PATH:
                writer.write(_PAGE)
                self._take(target)
            else:
                writer.write(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n")
            await writer.drain()
        except (OSError, ValueError, TimeoutError):
            pass
        finally:
            writer.close()


def _listening(port: int) -> list[socket.socket]:
    """Sockets on the loopback addresses that ``localhost`` may mean.

    :raises OSError: the port is taken.
    """
    first = socket.create_server(("127.0.0.1", port))
    found: list[Any] = [first]
    with suppress(OSError):
        found.append(socket.create_server(("::1", first.getsockname()[1]), family=socket.AF_INET6))
    return found
