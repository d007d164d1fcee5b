"""One GET, with everything bounded: addresses, redirections, time and size."""

from __future__ import annotations

import zlib
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kernel import ToolError, __version__
from kernel_tools_web import guard
from kernel_tools_web.guard import Access, Resolver
from kernel_tools_web.urls import BadUrl, Target, follow

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx

REDIRECTS = frozenset({301, 302, 303, 307, 308})
HEADERS = {
    "user-agent": f"kernel-User/{__version__} (kernel-harness; fetches a page for a person)",
    "accept": "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.5",
    "accept-encoding": "gzip, deflate",
}


class Limits(Struct, frozen=True, kw_only=True):
    """``seconds`` bounds a fetch as a whole, ``connect_s`` one attempt to connect. ``body``: bytes after decompression."""

    seconds: float = 60.0
    connect_s: float = 10.0
    body: int = 10 * 1024 * 1024
    redirects: int = 10


class Fetched(Struct, kw_only=True):
    """An answer. ``cut``: there was more of the body than the limit lets in."""

    target: Target
    code: int
    reason: str
    content_type: str
    body: bytes
    cut: bool


class Redirected(Struct, kw_only=True):
    """An answer that leads to another host, which is not followed. ``to`` is where, or what it says."""

    target: Target
    code: int
    reason: str
    to: str


class Client:
    """:param resolver: how names become addresses; the machine's resolver by default."""

    def __init__(self, limits: Limits | None = None, resolver: Resolver = guard.resolve) -> None:
        self.limits = limits or Limits()
        self._resolver = resolver
        self._trust: SSLContext | None = None

    async def get(self, target: Target, access: Access) -> Fetched | Redirected:
        """Ask for the target; redirections within its host are followed.

        :raises ToolError: ``blocked_address``, ``unreachable``, ``timeout``, ``too_many_redirects``, ``bad_answer``.
        """
        import anyio

        try:
            with anyio.fail_after(self.limits.seconds):
                for _ in range(self.limits.redirects + 1):
                    target = target if access.lists(target) else target.secure()
                    found = await self._once(target, access)
                    if isinstance(found, Fetched | Redirected):
                        return found
                    target = found
        except TimeoutError:
            raise ToolError("timeout", f"{target.host} did not deliver the page within {self.limits.seconds:g} s.",
                            retryable=True) from None
        raise ToolError("too_many_redirects",
                        f"{target.host} redirected more than {self.limits.redirects} times, last to {target.url}")

    async def _once(self, target: Target, access: Access) -> Fetched | Redirected | Target:
        """One request. A target comes back where the answer leads to another place on the same host."""
        import httpx

        async with AsyncExitStack() as stack:
            try:
                response = await self._send(stack, target, access)
                location = response.headers.get("location", "")
                if response.status_code not in REDIRECTS or not location:
                    body, cut = await self._body(response)
                    return Fetched(target=target, code=response.status_code, reason=_plain(response.reason_phrase),
                                   content_type=response.headers.get("content-type", ""), body=body, cut=cut)
            except httpx.TimeoutException:
                raise ToolError("timeout", f"{target.host} did not answer in time.", retryable=True) from None
            except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
                why = _plain(str(error)) or type(error).__name__
                raise ToolError("unreachable", f"{target.host} could not be fetched: {why}", retryable=True) from None
            try:
                there = follow(target, location)
            except BadUrl:
                there = None
            if there is not None and there.host == target.host:
                return there
            return Redirected(target=target, code=response.status_code, reason=_plain(response.reason_phrase),
                              to=there.url if there else _plain(location))

    async def _send(self, stack: AsyncExitStack, target: Target, access: Access) -> httpx.Response:
        """The answer's headers, from the first checked address that can be reached."""
        import httpx

        addresses = await guard.checked(target, access, self._resolver)
        proxy = _proxy(target) if access.proxy and not access.lists(target) else None
        transport = await stack.enter_async_context(self._transport(proxy))
        failure: httpx.HTTPError | None = None
        # A proxy looks the name up itself; without one the connection goes to the very addresses that were checked.
        for url in [target.url] if proxy else [target.at(address) for address in addresses]:
            request = httpx.Request("GET", url, headers={"host": target.netloc, **HEADERS}, extensions={
                "sni_hostname": target.host, "timeout": dict.fromkeys(("read", "write", "pool"), self.limits.seconds)
                | {"connect": self.limits.connect_s}})
            try:
                response = await transport.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
                continue
            stack.push_async_callback(response.aclose)
            if proxy is None:
                _check_peer(response, target, access)
            return response
        assert failure is not None
        raise failure

    def _transport(self, proxy: str | None) -> httpx.AsyncHTTPTransport:
        """One per request: a connection to an address must not be shared by two names on it.

        No client around it: that would read redirections, cookies and credentials in its own way.
        """
        import httpx

        if self._trust is None:
            self._trust = httpx.create_ssl_context()
        try:
            return httpx.AsyncHTTPTransport(verify=self._trust, trust_env=False, proxy=proxy)
        except (ImportError, ValueError, httpx.InvalidURL):  # its text may hold the proxy's password
            raise ToolError("unreachable", "The proxy settings of the environment cannot be used; check HTTPS_PROXY.") from None

    async def _body(self, response: httpx.Response) -> tuple[bytes, bool]:
        """The body up to the limit, and whether there was more."""
        inflate = _Inflate(response.headers.get("content-encoding", ""))
        parts: list[bytes] = []
        room = self.limits.body
        async for chunk in response.aiter_raw():
            data = inflate.take(chunk, room + 1)
            parts.append(data[:room])
            if len(data) > room:
                return b"".join(parts), True
            room -= len(data)
        return b"".join(parts), False


class _Inflate:
    """Decompression that never makes more than it is asked for, whatever the data promise."""

    def __init__(self, encoding: str) -> None:
        encoding = encoding.strip().lower()
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise ToolError("bad_answer", f"The server answered in the encoding {_plain(encoding)!r}, which was not offered.")
        self._decoder: Any = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding not in ("", "identity") else None
        self._start: bytes | None = b"" if encoding == "deflate" else None
        """What was taken before anything came out; some servers mean bare deflate data, which is then begun again."""

    def take(self, chunk: bytes, limit: int) -> bytes:
        if self._decoder is None:
            return chunk
        try:
            data: bytes = self._decoder.decompress(chunk, limit)
        except zlib.error:
            if self._start is None:
                raise ToolError("bad_answer", "The server's answer is damaged and cannot be decompressed.",
                                retryable=True) from None
            chunk, self._start = self._start + chunk, None
            self._decoder = zlib.decompressobj(-zlib.MAX_WBITS)
            return self.take(chunk, limit)
        if self._start is not None:
            self._start = None if data else self._start + chunk
        return data


def _check_peer(response: httpx.Response, target: Target, access: Access) -> None:
    """Once more where the connection really ends; it can only differ through a fault below this program."""
    stream = response.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream is not None else None
    if not peer or access.lists(target):
        return
    why = guard.forbidden(str(peer[0]).partition("%")[0])
    if why:
        raise guard.refusal(target, str(peer[0]), why)


def _proxy(target: Target) -> str | None:
    """The proxy that the environment names for the target."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    if proxy_bypass(target.netloc):
        return None
    return proxies.get(target.scheme) or proxies.get("all")


def _plain(text: str) -> str:
    """Text of a stranger in one printable line."""
    return "".join(c if c.isprintable() else " " for c in text)[:500].strip()
