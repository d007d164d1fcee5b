"""HTTP clients, kept between requests so that their connections are.

TLS is verified always. Where the address is plain ``http://`` no certificates are loaded, which takes longer than a
local request; the context given instead trusts nobody, so TLS that is met all the same fails.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from anyio.lowlevel import current_token

from kernel import ModelError

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx

KEEP_ALIVE_S = 120.0
"""An idle connection is kept this long, so that it outlives the tools of a turn."""


class Line:
    """One client and who is using it."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.users = 0
        self.retired = False


class Connections:
    """The clients of one provider: one for TLS, one for plain addresses, made when they are first needed."""

    def __init__(self) -> None:
        self._lines: dict[bool, Line] = {}
        self._loop: object = None
        self._trust: SSLContext | None = None

    def take(self, secure: bool) -> Line:
        """A client for the running event loop; ``give_back`` must follow.

        :raises ModelError: the proxy variables cannot be used.
        """
        loop = current_token()
        if loop != self._loop:  # connections belong to their event loop; those of another one are of no use
            self._lines, self._loop = {}, loop
        line = self._lines.get(secure)
        if line is None:
            line = self._lines[secure] = Line(self._client(secure))
        line.users += 1
        return line

    async def give_back(self, line: Line, *, broken: bool = False) -> None:
        """End of a request. After a broken connection the next request gets a new client, so surely a new connection."""
        line.users -= 1
        if broken:
            line.retired = True
            for secure, current in list(self._lines.items()):
                if current is line:
                    del self._lines[secure]
        if line.retired and line.users == 0:
            await line.client.aclose()

    async def aclose(self) -> None:
        lines, self._lines = list(self._lines.values()), {}
        for line in lines:
            line.retired = True
            await line.client.aclose()

    def _client(self, secure: bool) -> httpx.AsyncClient:
        _without_its_command_line()
        import httpx

        if self._trust is None and (secure or _proxy_needs_tls()):
            self._trust = httpx.create_ssl_context()
        try:
            return httpx.AsyncClient(
                verify=self._trust or _trust_nobody(), follow_redirects=False,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=KEEP_ALIVE_S))
        except (ValueError, ImportError, httpx.InvalidURL) as error:  # its text may hold the proxy's password
            raise ModelError(f"the proxy settings of the environment cannot be used ({type(error).__name__})",
                             kind="connection_error", should_retry=False, context="plugin model-anthropic",
                             hint="check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY") from None


def _without_its_command_line() -> None:
    """Keep httpx from importing its command line, which brings click and rich along where those are installed."""
    missing: Any = None
    if "httpx" not in sys.modules:
        sys.modules["httpx._main"] = missing  # counts as an ImportError, for which httpx is prepared
        import httpx  # noqa: F401

        sys.modules.pop("httpx._main", None)  # another thread may have been here, too


def _proxy_needs_tls() -> bool:
    return any(os.environ.get(name, "").lower().startswith("https:")
               for proxy in ("http_proxy", "all_proxy") for name in (proxy, proxy.upper()))


def _trust_nobody() -> SSLContext:
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
