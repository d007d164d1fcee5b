"""The model protocol: what a provider is asked, what it streams, what an answer is (loop contract, sections 2 and 4)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct, field

from kernel.messages import Block, History

StreamEvent = dict[str, Any]
"""One event of the Messages API's stream, as a dictionary; the common language of all providers."""


class Prices(Struct, frozen=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    cache_write: float
    cache_read: float


class ModelInfo(Struct, frozen=True, kw_only=True):
    """What a provider knows of a model. Sizes in tokens. ``prices`` is ``None`` for a model it does not know."""

    id: str
    context_window: int = 200_000
    max_output: int = 32_000
    prices: Prices | None = None
    effort: bool = False


MOST_TOKENS = 2**53
"""A count above it is nonsense, and not a number in every program that reads the result."""


class Usage(Struct, kw_only=True):
    """Token counts of one response, or of several added up (loop contract, section 12)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation: dict[str, int] = field(
        default_factory=lambda: {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0})
    server_tool_use: dict[str, int] = field(
        default_factory=lambda: {"web_search_requests": 0, "web_fetch_requests": 0})
    service_tier: str = "standard"

    def take(self, wire: dict[str, Any] | None) -> None:
        """Overwrite with the numbers that a stream event carries; they are totals, missing ones keep their value."""
        wire = wire if isinstance(wire, dict) else {}
        for name in ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
            value = wire.get(name)
            if isinstance(value, int) and 0 <= value < MOST_TOKENS:
                setattr(self, name, value)
        for name in ("cache_creation", "server_tool_use"):
            value = wire.get(name)
            if isinstance(value, dict):
                getattr(self, name).update({k: v for k, v in value.items() if isinstance(v, int) and 0 <= v < MOST_TOKENS})
        tier = wire.get("service_tier")
        if isinstance(tier, str):
            self.service_tier = tier

    def add(self, other: Usage) -> None:
        for name in ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, theirs in ((self.cache_creation, other.cache_creation), (self.server_tool_use, other.server_tool_use)):
            for key, value in theirs.items():
                mine[key] = mine.get(key, 0) + value

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens

    def cost(self, prices: Prices | None) -> float:
        """US dollars; 0 where the price is not known."""
        if prices is None:
            return 0.0
        return (self.input_tokens * prices.input + self.output_tokens * prices.output
                + self.cache_creation_input_tokens * prices.cache_write
                + self.cache_read_input_tokens * prices.cache_read) / 1_000_000


class ModelRequest(Struct, kw_only=True):
    """One request. ``system``: text blocks in their layers. ``tools``: definitions in a fixed order.

    ``history`` is read only: a provider takes ``history.encode(mark)`` (bytes) or ``history.wire()`` (objects).
    ``extra`` holds fields that are passed through as they are. ``betas`` are names of beta features. ``headers`` go along where
    the provider speaks HTTP (a middleware's ``traceparent``), and ``heard`` is called with the answer's headers.
    """

    model: str
    max_tokens: int
    system: list[Block]
    tools: list[dict[str, Any]]
    history: History
    tool_choice: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None
    effort: str | None = None
    betas: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    heard: Callable[[Mapping[str, str]], None] | None = None


class Response(Struct, kw_only=True):
    """One assembled answer. ``blocks`` holds complete blocks only.

    ``bad_inputs``: call id -> why its input does not parse; such a call is never run. ``incomplete``: the stream broke
    after something complete had arrived. ``cut_call``: a tool call was cut off and dropped.
    """

    id: str
    model: str
    blocks: list[Block]
    stop_reason: str | None
    usage: Usage
    stop_sequence: str | None = None
    stop_details: dict[str, Any] | None = None
    bad_inputs: dict[str, str] = field(default_factory=dict)
    incomplete: bool = False
    cut_call: bool = False

    @property
    def calls(self) -> list[Block]:
        return [b for b in self.blocks if b.get("type") == "tool_use"]


@runtime_checkable
class ModelProvider(Protocol):
    """A source of model answers. Registered by ``register_models`` under ``name``; settings choose by model or name.

    A provider never retries and never repairs: it raises, the kernel's one policy decides (loop contract, 8.2).
    """

    name: str

    def resolve(self, model: str) -> ModelInfo | None:
        """The model behind a name or alias; ``None`` where this provider does not serve it. Makes no request."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Send the request and yield the stream's events in order, ``ping`` included.

        :raises ModelError: with status, kind and the server's word on retrying.
        :raises StreamError: after the first event.
        """

    async def aclose(self) -> None:
        """Close connections."""


ModelCaller = Callable[[ModelRequest], AsyncIterator[StreamEvent]]
"""Sends one request; middleware wraps it (``register_middleware``)."""

Sleeper = Callable[[float], Awaitable[None]]
