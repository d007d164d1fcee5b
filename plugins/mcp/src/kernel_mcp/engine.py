"""The package ``mcp``: imported in a thread when the first server is there, since that takes most of a second."""

from __future__ import annotations

import logging
from functools import cache


def load() -> None:
    """Import what every connection needs. Safe to call from several threads."""
    _quiet()
    import mcp.client.client
    import mcp.client.session
    import mcp.client.streamable_http  # noqa: F401


@cache
def _quiet() -> None:
    """The package logs what it survives; without a handler Python would print that on stderr."""
    for name in ("mcp", "client", "httpx2", "httpcore2"):
        logging.getLogger(name).addHandler(logging.NullHandler())
