"""What is known of the models: a table, the aliases, and how a request must say "think".

Sizes in tokens, prices in US dollars for a million tokens. The prices are the list prices of the first-party API on
2026-11-30: no batch, regional or fast-mode rates, and the rate for short prompts where a model has two (Haiku 5.5
costs five times as much once a prompt is longer than 100,000 tokens). A cache write is the one that lives 5 minutes.
"""

from __future__ import annotations

import os
import re
from typing import Any, Literal

from msgspec import Struct

from kernel import ModelInfo, Prices

Thinking = Literal["budget", "both", "adaptive", "always"]
"""Which ``thinking`` a model takes. ``budget``: ``enabled`` with a budget only. ``adaptive``: no budget.
``always``: no budget, and it cannot be switched off."""

LONG = 1_000_000
LONG_SUFFIX = "[1m]"
LONG_BETA = "context-1m-2025-08-07"
MIN_BUDGET = 1024
BUDGET = 31_999
"""Thinking budget where adaptive thinking is asked of a model that knows budgets only."""


class Model(Struct, frozen=True):
    info: ModelInfo
    thinking: Thinking


def _model(id: str, window: int, output: int, prices: tuple[float, float, float, float], thinking: Thinking,
           effort: bool = True) -> Model:
    return Model(ModelInfo(id=id, context_window=window, max_output=output, prices=Prices(*prices), effort=effort), thinking)


#                              prices: input, output, cache write, cache read
MODELS = {model.info.id: model for model in (
    _model("claude-fable-5-2", LONG, 128_000, (8, 40, 10, 0.20), "always"),
    _model("claude-fable-5-1", LONG, 128_000, (10, 50, 12.50, 0.25), "always"),
    _model("claude-fable-5", LONG, 128_000, (10, 50, 12.50, 1), "always"),
    _model("claude-mythos-5-1", LONG, 128_000, (10, 50, 12.50, 0.25), "always"),
    _model("claude-mythos-5", LONG, 128_000, (10, 50, 12.50, 1), "always"),
    _model("claude-opus-5-5", LONG, 128_000, (4, 20, 5, 0.20), "always"),
    _model("claude-opus-5", LONG, 128_000, (5, 25, 6.25, 0.50), "adaptive"),
    _model("claude-opus-4-8", LONG, 128_000, (5, 25, 6.25, 0.50), "adaptive"),
    _model("claude-opus-4-7", LONG, 128_000, (5, 25, 6.25, 0.50), "adaptive"),
    _model("claude-opus-4-6", 200_000, 128_000, (5, 25, 6.25, 0.50), "both"),
    _model("claude-opus-4-5", 200_000, 64_000, (5, 25, 6.25, 0.50), "budget"),
    _model("claude-opus-4-1", 200_000, 32_000, (15, 75, 18.75, 1.50), "budget", effort=False),
    _model("claude-sonnet-5-5", LONG, 128_000, (2, 10, 2.50, 0.10), "adaptive"),
    _model("claude-sonnet-5", LONG, 128_000, (2, 10, 2.50, 0.20), "adaptive"),
    _model("claude-sonnet-4-6", 200_000, 128_000, (3, 15, 3.75, 0.30), "both"),
    _model("claude-sonnet-4-5", 200_000, 64_000, (3, 15, 3.75, 0.30), "budget", effort=False),
    _model("claude-haiku-5-5", LONG, 128_000, (0.10, 0.50, 0.125, 0.01), "adaptive"),
    _model("claude-haiku-4-5", 200_000, 64_000, (1, 5, 1.25, 0.10), "budget", effort=False),
)}

ALIASES = {"default": "sonnet", "sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5", "haiku": "claude-haiku-5-5",
           "fable": "claude-fable-5-2"}
FAMILIES = ("sonnet", "opus", "haiku", "fable")
_DATED = re.compile(r"-\d{8}$|-latest$")


def split(model: str) -> tuple[str, bool]:
    """The id as the API knows it, and whether the name asks for the long window (``sonnet[1m]``)."""
    model = model.strip()
    return (model[: -len(LONG_SUFFIX)], True) if model.lower().endswith(LONG_SUFFIX) else (model, False)


def known(id: str) -> Model | None:
    """The table's row for an id; a dated snapshot has its model's row."""
    return MODELS.get(id) or MODELS.get(_DATED.sub("", id))


def resolve(name: str) -> ModelInfo | None:
    """The model behind an alias or id. An id that the table does not know is served without prices."""
    base, long = split(name)
    id = _behind(base)
    if not id:
        return None
    if id.lower().endswith(LONG_SUFFIX):  # the variable behind an alias may carry the suffix
        id, long = id[: -len(LONG_SUFFIX)], True
    model = known(id)
    window = model.info.context_window if model else _assumed_window()
    if long and window < LONG:  # the suffix stays in the id, so that the request asks for the long window
        window, id = LONG, id + LONG_SUFFIX
    if model is None:
        return ModelInfo(id=id, context_window=window)
    return ModelInfo(id=id, context_window=window, max_output=model.info.max_output, prices=model.info.prices,
                     effort=model.info.effort)


def _behind(name: str) -> str:
    """The id behind an alias; any other name is an id."""
    alias = name.lower()
    if alias not in ALIASES:
        return name
    if alias == "default":
        alias = ALIASES[alias]
    given = os.environ.get(f"ANTHROPIC_DEFAULT_{alias.upper()}_MODEL", "").strip()
    if not given and alias == "haiku":
        given = os.environ.get("ANTHROPIC_SMALL_FAST_MODEL", "").strip()
    return given or ALIASES[alias]


def _assumed_window() -> int:
    given = os.environ.get("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "")
    return int(given) if given.isdigit() and int(given) > 0 else 200_000


def thinking_for(id: str, wanted: dict[str, Any] | None, max_tokens: int) -> dict[str, Any] | None:
    """The ``thinking`` field in the form that the model accepts; unchanged for a model that the table does not know.

    ``None`` leaves the field out, which is the model's own default.
    """
    if wanted is None:
        return None
    model = known(split(id)[0])
    takes = model.thinking if model else None
    kind = wanted.get("type")
    if kind == "disabled":
        return None if takes == "always" else wanted
    if kind == "enabled" and takes in ("adaptive", "always"):
        return {"type": "adaptive", **{k: v for k, v in wanted.items() if k not in ("type", "budget_tokens")}}
    if kind == "adaptive" and takes == "budget":
        wanted = {**wanted, "type": "enabled", "budget_tokens": min(BUDGET, max(MIN_BUDGET, max_tokens // 2))}
    budget = wanted.get("budget_tokens")
    if wanted.get("type") == "enabled" and isinstance(budget, int) and budget >= max_tokens:
        if max_tokens <= MIN_BUDGET:  # there is no room to think in (loop contract, 5.2, row 20)
            return None
        return {**wanted, "budget_tokens": max_tokens - 1}
    return wanted
