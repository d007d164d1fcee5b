"""A search backend without a key: any server that answers as SearXNG does (``GET /search?format=json``)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from kernel import SearchHit, Session, ToolError, __version__

SECONDS = 20.0
MAX_BYTES = 4 * 1024 * 1024
_WHERE = "the setting kernel.search.url"


class SearXNG:
    """Asks the server of the setting ``kernel.search.url``, which may be a private address: a person wrote it down."""

    name = "searxng"

    async def search(self, session: Session, query: str, *, allowed_domains: list[str], blocked_domains: list[str],
                     limit: int) -> list[SearchHit]:
        url = address(session)
        words = f"{query} site:{allowed_domains[0]}" if len(allowed_domains) == 1 else query
        hits = [hit for hit in _hits(await _ask(f"{url}/search", words))
                if _wanted(hit.url, allowed_domains, blocked_domains)]
        return list(dict.fromkeys(hits))[:limit]


def address(session: Session) -> str:
    """:raises ToolError: ``search_failed``; the setting is missing or is no address."""
    given = session.settings.own("kernel.search")
    url = given.get("url") if isinstance(given, dict) else None
    if not isinstance(url, str) or not url:
        raise ToolError("search_failed", "Nothing was searched: the search backend searxng needs the address of a server. Set "
                        '{"kernel": {"search": {"name": "searxng", "url": "http://HOST:PORT"}}}.')
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound or parts.query or parts.fragment or parts.username:
        raise ToolError("search_failed", f"Nothing was searched: {_WHERE} must be http://HOST:PORT or https://HOST, with a path "
                        f"at most; it is {url[:200]!r}.")
    return url.rstrip("/").removesuffix("/search")


async def _ask(url: str, query: str) -> Any:
    """The server's answer.

    :raises ToolError: ``search_failed``, ``rate_limited``, ``timeout``.
    """
    import anyio
    import httpx

    body = bytearray()
    try:
        with anyio.fail_after(SECONDS):
            async with httpx.AsyncClient(trust_env=False, timeout=SECONDS) as client, client.stream(
                    "GET", url, params={"q": query, "format": "json"},
                    headers={"accept": "application/json", "user-agent": f"kernel/{__version__}"}) as response:
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > MAX_BYTES:
                        raise ToolError("search_failed", f"The search server's answer is larger than {MAX_BYTES:,} "
                                                         f"bytes ({_WHERE}).")
    except (TimeoutError, httpx.TimeoutException):
        raise ToolError("timeout", f"The search server did not answer within {SECONDS:g} s ({_WHERE}).", retryable=True) from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        raise ToolError("search_failed", f"The search server cannot be reached: {error or type(error).__name__} ({_WHERE}).",
                        retryable=True) from None
    code = response.status_code
    if code == 429:
        raise ToolError("rate_limited", f"The search server refuses more searches for now ({_WHERE}).", retryable=True)
    if code != 200:
        hint = ": SearXNG answers so where 'json' is not among search.formats of its settings.yml" if code == 403 else ""
        raise ToolError("search_failed", f"The search server answered with the status {code}{hint} ({_WHERE}).")
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise ToolError("search_failed", f"The search server's answer is no JSON ({_WHERE}).") from None


def _hits(answer: Any) -> list[SearchHit]:
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise ToolError("search_failed", f"The search server's answer holds no list 'results' ({_WHERE}).")
    return [SearchHit(str(r.get("title") or r["url"]), r["url"]) for r in results
            if isinstance(r, dict) and isinstance(r.get("url"), str) and r["url"].startswith(("http://", "https://"))]


def _wanted(url: str, allowed: list[str], blocked: list[str]) -> bool:
    try:
        host = (urlsplit(url).hostname or "").lower().rstrip(".")
    except ValueError:
        return False

    def under(domains: list[str]) -> bool:
        names = [d.lower().strip().strip(".") for d in domains]
        return any(host == name or host.endswith(f".{name}") for name in names if name)

    return under(allowed) if allowed else not under(blocked)
