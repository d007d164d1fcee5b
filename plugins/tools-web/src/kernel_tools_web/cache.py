"""Pages that were fetched a short while ago."""

from __future__ import annotations

from msgspec import Struct

from kernel import Session, env_number

TTL_MS = 900_000
MAX_PAGES = 32


class Page(Struct, kw_only=True):
    """A page as text. ``cut``: only its beginning is here. ``saved``: where binary content lies instead of ``text``."""

    url: str
    code: int
    reason: str
    bytes: int
    media: str
    text: str
    cut: bool = False
    saved: str | None = None


class Cache:
    """The pages of one session by URL."""

    def __init__(self) -> None:
        self._pages: dict[str, tuple[float, Page]] = {}

    @classmethod
    def of(cls, session: Session) -> Cache:
        found: Cache = session.root.plugin_state.setdefault("tools-web.cache", cls())
        return found

    def get(self, url: str, now: float) -> Page | None:
        found = self._pages.get(url)
        return found[1] if found and now < found[0] + ttl_seconds() else None

    def keep(self, url: str, page: Page, now: float) -> None:
        self._pages.pop(url, None)
        while len(self._pages) >= MAX_PAGES:
            del self._pages[next(iter(self._pages))]
        self._pages[url] = (now, page)


def ttl_seconds() -> float:
    """``CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS``; 0 switches the cache off."""
    return env_number("CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS", TTL_MS, least=0) / 1000
