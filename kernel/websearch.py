"""The search backend protocol: who searches the web where the model's provider does not (tools contract, section 12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from kernel.session import Session


class SearchHit(NamedTuple):
    """One result. ``url`` is absolute; both are strangers' words."""

    title: str
    url: str


class SearchBackend(Protocol):
    """Registered by ``register_search_backends`` under ``name``; the setting ``kernel.search`` chooses."""

    name: str

    async def search(self, session: Session, query: str, *, allowed_domains: list[str], blocked_domains: list[str],
                     limit: int) -> list[SearchHit]:
        """The best hits first. At most one of the lists of domains is given; a domain stands for its subdomains too.

        :param limit: how many hits are wanted at most.
        :raises ToolError: nothing was searched, and which setting is to be looked at.
        """
