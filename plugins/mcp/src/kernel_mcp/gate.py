"""HTTP to one server: limits the package does not set, and what a failed request was (MCP contract, sections 2 and 5).

The package closes the whole connection when one request cannot be sent. Here such a request becomes an answer with an error
status, so that it fails alone, and the reason is kept for whoever asks.
"""

from __future__ import annotations

import re
from typing import Any

import anyio
import httpx2

from kernel_mcp.redact import without_secrets
from kernel_mcp.stdio import MAX_LINE

_METADATA = re.compile(r"/\.well-known/(oauth-authorization-server|openid-configuration)")
NO_ANSWER = 599
"""The status of an answer that stands for a request which got none."""


class Gate(httpx2.AsyncBaseTransport):
    """The innermost transport. ``status`` and ``fault`` are those of the last message; 0 and empty where it was fine.

    :param first_byte_s: how long a server may take until its answer begins.
    """

    def __init__(self, first_byte_s: float) -> None:
        self._inner = httpx2.AsyncHTTPTransport(retries=0)
        self._first_byte_s = first_byte_s
        self.status = 0
        self.fault = ""
        self.lost = False
        """Whether the last request did not reach the server, rather than that it was slow."""
        self.logged_in = False
        """Whether requests carry a token of a login."""
        self.metadata_url: str | None = None
        """Where the authorization server's metadata lies, where it is not to be searched for."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        fault = ""
        if self.metadata_url and _METADATA.search(request.url.path):
            request = httpx2.Request("GET", self.metadata_url, headers={"accept": "application/json"})
        try:
            with anyio.fail_after(self._first_byte_s):
                response = await self._inner.handle_async_request(request)
        except TimeoutError:
            self.lost = False
            fault = f"no answer began within {self._first_byte_s:g} seconds"
        except httpx2.TransportError as error:
            self.lost = True
            fault = f"{type(error).__name__}: {without_secrets(str(error))}" if str(error) else type(error).__name__
        if fault:
            self.status, self.fault = NO_ANSWER, fault
            return httpx2.Response(NO_ANSWER, request=request, content=fault.encode())
        self.lost = False
        if response.status_code >= 400:
            self.status, self.fault = response.status_code, f"HTTP {response.status_code} {response.reason_phrase}".strip()
        elif request.method == "POST":
            self.status, self.fault = 0, ""
        if "event-stream" not in response.headers.get("content-type", ""):
            response.stream = _Capped(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Capped(httpx2.AsyncByteStream):
    """A body that ends in an error where it grows beyond what one message may be."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> Any:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_LINE:
                raise TooMuch(f"the server sent an answer of more than {MAX_LINE // 2**20} MiB")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class TooMuch(httpx2.StreamError):
    """A body over the limit; the package turns errors of this family into the answer of one request."""


def http_client(gate: Gate, headers: dict[str, str] | None, auth: Any) -> httpx2.AsyncClient:
    """A client for one server. Reads have no limit of their own here: a stream may be silent, calls have idle limits."""
    return httpx2.AsyncClient(transport=gate, headers=headers, auth=auth, follow_redirects=False,
                              timeout=httpx2.Timeout(30.0, read=None))
