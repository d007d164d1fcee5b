"""Every limit of the bridge, with the variable that changes it (MCP contract, sections 2 and 5)."""

from __future__ import annotations

import os

from msgspec import Struct

MAX_PAGES = 100
MAX_ITEMS = 10_000
"""What one list of a server may come to; the rest is left out and said."""
RESULT_CHARS_CAP = 500_000
CHARS_PER_TOKEN = 4
"""What a token is taken to be: no tokenizer runs here."""
DEBOUNCE_S = 0.2
"""How long the bridge waits for the end of a storm of change notices before it lists again."""
DEBOUNCE_MOST_S = 5.0
RETRY_S = 0.5
RECONNECT_S = 1.0
"""The first wait before a connection that had worked is opened again; each next one is twice as long."""
FIRST_TRIES = 3
RECONNECTS = 5


class Limits(Struct, frozen=True, kw_only=True):
    """Seconds, characters and counts. ``None``: no limit."""

    start_s: float = 30.0
    connect_wait_s: float = 5.0
    extras_s: float = 5.0
    """How long a start waits for the lists of prompts and resources."""
    call_s: float = 100_000.0
    first_byte_s: float = 60.0
    idle_remote_s: float | None = 300.0
    idle_local_s: float | None = 1800.0
    result_chars: int = 25_000 * CHARS_PER_TOKEN
    warn_chars: int = 10_000 * CHARS_PER_TOKEN
    local: int = 20
    remote: int = 20


def read() -> Limits:
    """The limits of this process. A value that is no positive number is ignored."""
    start, wait = _ms("MCP_TIMEOUT"), _ms("MCP_CONNECT_TIMEOUT_MS")
    call = _ms("MCP_TOOL_TIMEOUT")
    base = Limits()
    idle = _ms("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", zero=True)
    remote, local = (base.idle_remote_s, base.idle_local_s) if idle is None else (idle or None, idle or None)
    tokens = _number("MAX_MCP_OUTPUT_TOKENS")
    return Limits(
        start_s=start or base.start_s, extras_s=min(base.extras_s, (start or base.start_s) / 2),
        connect_wait_s=wait or base.connect_wait_s, call_s=call or base.call_s,
        first_byte_s=max(base.first_byte_s, call or 0.0), idle_remote_s=remote, idle_local_s=local,
        result_chars=(tokens or 25_000) * CHARS_PER_TOKEN, local=_number("MCP_SERVER_CONNECTION_BATCH_SIZE") or base.local,
        remote=_number("MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE") or base.remote)


def _number(name: str, *, zero: bool = False) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 12 and (zero or int(text)) else None


def _ms(name: str, *, zero: bool = False) -> float | None:
    value = _number(name, zero=zero)
    return None if value is None else value / 1000
