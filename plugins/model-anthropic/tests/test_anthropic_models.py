"""The model table, aliases, and the form in which a model is told to think."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from kernel_model_anthropic import models


@pytest.mark.parametrize(("name", "environment", "id"), [
    ("sonnet", {}, "claude-sonnet-5-5"),
    ("Opus", {}, "claude-opus-5-5"),
    ("haiku", {}, "claude-haiku-5-5"),
    ("fable", {}, "claude-fable-5-2"),
    ("default", {}, "claude-sonnet-5-5"),
    ("default", {"ANTHROPIC_DEFAULT_SONNET_MODEL": "mine"}, "mine"),
    ("sonnet", {"ANTHROPIC_DEFAULT_SONNET_MODEL": "claude-sonnet-4-5"}, "claude-sonnet-4-5"),
    ("opus", {"ANTHROPIC_DEFAULT_OPUS_MODEL": "claude-opus-4-8"}, "claude-opus-4-8"),
    ("fable", {"ANTHROPIC_DEFAULT_FABLE_MODEL": "claude-fable-5"}, "claude-fable-5"),
    ("haiku", {"ANTHROPIC_DEFAULT_HAIKU_MODEL": "claude-haiku-4-5"}, "claude-haiku-4-5"),
    ("haiku", {"ANTHROPIC_SMALL_FAST_MODEL": "claude-haiku-4-5"}, "claude-haiku-4-5"),
    ("haiku", {"ANTHROPIC_SMALL_FAST_MODEL": "a", "ANTHROPIC_DEFAULT_HAIKU_MODEL": "b"}, "b"),
    ("claude-sonnet-4-5", {"ANTHROPIC_DEFAULT_SONNET_MODEL": "other"}, "claude-sonnet-4-5"),
    ("claude-sonnet-4-5-20250929", {}, "claude-sonnet-4-5-20250929"),
])
def test_a_name_stands_for_an_id(name: str, environment: dict[str, str], id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    info = models.resolve(name)
    assert info is not None and info.id == id


def test_a_dated_id_has_the_facts_of_its_model() -> None:
    info = models.resolve("claude-haiku-4-5-20251001")
    assert info is not None and info.prices is not None
    assert (info.context_window, info.max_output, info.prices.input, info.effort) == (200_000, 64_000, 1, False)


def test_an_unknown_id_is_served_without_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    info = models.resolve("my-gateway/some-model")
    assert info is not None and info.prices is None and info.context_window == 200_000 and not info.effort
    monkeypatch.setenv("CLAUDE_CODE_MAX_CONTEXT_TOKENS", "32000")
    smaller = models.resolve("my-gateway/some-model")
    assert smaller is not None and smaller.context_window == 32_000


@pytest.mark.parametrize("name", ["", "  ", "[1m]"])
def test_a_blank_name_is_not_served(name: str) -> None:
    assert models.resolve(name) is None


@pytest.mark.parametrize(("name", "id", "window"), [
    ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5[1m]", 1_000_000),
    ("sonnet[1m]", "claude-sonnet-5-5", 1_000_000),          # long by itself: nothing to ask for
    ("claude-opus-4-6[1M]", "claude-opus-4-6[1m]", 1_000_000),
    ("claude-opus-4-6", "claude-opus-4-6", 200_000),
])
def test_the_suffix_asks_for_the_long_window_where_the_model_has_a_short_one(name: str, id: str, window: int) -> None:
    info = models.resolve(name)
    assert info is not None and (info.id, info.context_window) == (id, window)


@pytest.mark.parametrize("model", models.MODELS.values(), ids=lambda m: m.info.id)
def test_every_row_is_plausible(model: models.Model) -> None:
    prices = model.info.prices
    assert prices is not None
    assert prices.cache_read < prices.input < prices.cache_write < prices.output
    assert prices.cache_write == pytest.approx(prices.input * 1.25)
    assert model.info.max_output < model.info.context_window
    assert models.known(model.info.id) is model


ENABLED = {"type": "enabled", "budget_tokens": 8000}


@pytest.mark.parametrize(("id", "wanted", "sent"), [
    ("claude-sonnet-4-5", ENABLED, ENABLED),
    ("claude-sonnet-4-5[1m]", ENABLED, ENABLED),
    ("claude-opus-4-6", ENABLED, ENABLED),
    ("claude-sonnet-5-5", ENABLED, {"type": "adaptive"}),
    ("claude-opus-5-5", {**ENABLED, "display": "omitted"}, {"type": "adaptive", "display": "omitted"}),
    ("claude-opus-5-5", {"type": "disabled"}, None),
    ("claude-sonnet-5-5", {"type": "disabled"}, {"type": "disabled"}),
    ("claude-sonnet-4-5", {"type": "adaptive"}, {"type": "enabled", "budget_tokens": 16_000}),
    ("claude-opus-4-6", {"type": "adaptive"}, {"type": "adaptive"}),
    ("unknown", {"type": "adaptive"}, {"type": "adaptive"}),
    ("unknown", ENABLED, ENABLED),
    ("unknown", {"type": "enabled", "budget_tokens": 64_000}, {"type": "enabled", "budget_tokens": 31_999}),
    ("claude-opus-5-5", None, None),
])
def test_thinking_is_asked_for_in_the_form_the_model_accepts(id: str, wanted: dict | None, sent: dict | None) -> None:
    assert models.thinking_for(id, wanted, 32_000) == sent


@given(st.sampled_from([*models.MODELS, "unknown"]), st.integers(1, 200_000), st.integers(1024, 200_000),
       st.sampled_from(["enabled", "adaptive", "disabled"]))
def test_a_thinking_budget_always_fits(id: str, max_tokens: int, budget: int, kind: str) -> None:
    """1024 <= budget < max_tokens (loop contract, 2.1), or nothing is asked for."""
    wanted = {"type": kind, **({"budget_tokens": budget} if kind == "enabled" else {})}
    sent = models.thinking_for(id, wanted, max_tokens)
    if sent and "budget_tokens" in sent:
        assert sent["type"] == "enabled" and 1024 <= sent["budget_tokens"] < max_tokens
