"""What a conversation costs: tokens by model, US dollars, seconds of waiting for models (loop contract, section 12)."""

from __future__ import annotations

from typing import Any

from kernel.models import ModelInfo, Usage


class Spending:
    """Counts of one session. A subagent's count for its parent as well.

    ``turn``: usage of the run that is on, without side requests and subagents. ``last``: of the last answer. ``by_model``: the
    ``modelUsage`` of the result message. ``usd``: US dollars. ``api_seconds``: time spent on requests.
    """

    def __init__(self, parent: Spending | None = None) -> None:
        self._parent = parent
        self.turn = Usage()
        self.last = Usage()
        self.by_model: dict[str, dict[str, Any]] = {}
        self.usd = 0.0
        self.api_seconds = 0.0

    def answer(self, info: ModelInfo, usage: Usage) -> None:
        """Count an answer of the conversation itself."""
        self.turn.add(usage)
        self.last = usage
        self.aside(info, usage)

    def aside(self, info: ModelInfo, usage: Usage) -> None:
        """Count an answer that is not part of the conversation."""
        if self._parent is not None:
            self._parent.aside(info, usage)
        cost = usage.cost(info.prices)
        self.usd += cost
        mine = self.by_model.setdefault(info.id, {
            "inputTokens": 0, "outputTokens": 0, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0,
            "webSearchRequests": 0, "costUSD": 0.0, "contextWindow": info.context_window,
            "maxOutputTokens": info.max_output})
        for name, amount in (("inputTokens", usage.input_tokens), ("outputTokens", usage.output_tokens),
                             ("cacheReadInputTokens", usage.cache_read_input_tokens),
                             ("cacheCreationInputTokens", usage.cache_creation_input_tokens),
                             ("webSearchRequests", usage.server_tool_use.get("web_search_requests", 0)), ("costUSD", cost)):
            mine[name] += amount

    def waited(self, seconds: float) -> None:
        """Count time spent on a request."""
        self.api_seconds += seconds
        if self._parent is not None:
            self._parent.waited(seconds)
