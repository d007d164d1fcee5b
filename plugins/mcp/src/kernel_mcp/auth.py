"""OAuth of remote servers."""

from __future__ import annotations

from typing import Any


async def provider_of(host: Any, server: Any, gate: Any) -> Any:
    return None
