"""Asking the model once: the one retry policy, and a stream that breaks anywhere (loop contract, section 8)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel import request as policy
from kernel.errors import ModelError, StreamError
from kernel.middleware import Middleware
from kernel.models import ModelInfo, ModelRequest, Response
from kernel.output import StreamMessage, SystemMessage
from kernel.request import category, is_transient, max_retries, respond, wait_seconds
from kernel.session import Session
from kernel.testing import FakeClock, Kit, module

pytestmark = pytest.mark.anyio

Event = dict[str, Any]


class Recorded:
    """A provider that plays attempts: each a list of events, an error, or events with an error behind them."""

    name = "anthropic"

    def __init__(self, *attempts: Sequence[Event | Exception], then: Sequence[Event | Exception] | None = None) -> None:
        self.attempts = list(attempts)
        self.then = then
        self.requests: list[ModelRequest] = []

    def resolve(self, model: str) -> ModelInfo:
        return ModelInfo(id=model)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Event]:
        self.requests.append(request)
        attempt = self.attempts.pop(0) if self.attempts else self.then
        assert attempt is not None, "asked more often than expected"
        for event in attempt:
            if isinstance(event, Exception):
                raise event
            yield event

    async def aclose(self) -> None:
        pass


def block(index: int, kind: str, **fields: Any) -> list[Event]:
    deltas = {"text": [{"type": "text_delta", "text": "hello "}, {"type": "text_delta", "text": "world"}],
              "thinking": [{"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "s"}],
              "tool_use": [{"type": "input_json_delta", "partial_json": p} for p in ('{"x":', " 1}")]}
    return [{"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}},
            *({"type": "content_block_delta", "index": index, "delta": d} for d in deltas.get(kind, [])),
            {"type": "content_block_stop", "index": index}]


def whole(*blocks: list[Event], reason: str = "end_turn") -> list[Event]:
    return [{"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": 3}}},
            *(e for b in blocks for e in b),
            {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 4}}, {"type": "message_stop"}]


TEXT = whole(block(0, "text", text=""))
LOST = StreamError("lost", kind="connection_error")


def failure(status: int | None = None, kind: str = "api_error", **more: Any) -> list[Event | Exception]:
    return [ModelError("failed", kind=kind, status=status, **more)]


def opened(path: Path, model: Recorded, **options: Any) -> tuple[Session, FakeClock, Kit]:
    clock = FakeClock()
    kit = Kit(path, model=model, clock=clock, **options)
    session = kit.open()
    session.history.append("user", "go")
    return session, clock, kit


async def asked(path: Path, model: Recorded, **options: Any) -> tuple[Response | ModelError, FakeClock, list[dict[str, Any]]]:
    """The answer or the error, the clock, and the ``api_retry`` messages."""
    session, clock, kit = opened(path, model, **options)
    try:
        outcome: Response | ModelError = await respond(session, session.request())
    except ModelError as error:
        outcome = error
    return outcome, clock, [m.data for m in kit.outputs if isinstance(m, SystemMessage) and m.subtype == "api_retry"]


# -- the policy, in numbers ---------------------------------------------------------------------------------------------
def test_the_backoff_doubles_up_to_its_cap_and_jitter_takes_a_quarter_off_at_most() -> None:
    error = ModelError("x", kind="api_error", status=500)
    for attempt in range(1, 16):
        longest = min(0.5 * 2 ** (attempt - 1), 32.0)
        assert wait_seconds(attempt, error, 0.0) == longest
        assert wait_seconds(attempt, error, 1.0) == longest * 0.75
    assert wait_seconds(15, error, 0.0) == policy.BACKOFF_CAP_S


@pytest.mark.parametrize(("asked_for", "waited"), [
    (None, 0.5), (0.1, 0.5), (7.5, 7.5), (60.0, 60.0), (60.001, None), (3600.0, None)])
def test_the_servers_wait_counts_if_it_is_longer_and_not_too_long(asked_for: float | None, waited: float | None) -> None:
    assert wait_seconds(1, ModelError("x", kind="rate_limit_error", status=429, retry_after=asked_for), 0.0) == waited
    assert policy.LONGEST_WAIT_S == 60


@pytest.mark.parametrize(("status", "again"), [
    *((s, True) for s in (408, 409, 429, 500, 502, 504, 529)), *((s, False) for s in (400, 401, 402, 403, 404, 413, 422))])
def test_which_statuses_are_tried_again(status: int, again: bool) -> None:
    assert is_transient(ModelError("x", kind="whatever", status=status)) == again
    for word in (True, False):
        assert is_transient(ModelError("x", kind="whatever", status=status, should_retry=word)) == word


@pytest.mark.parametrize(("kind", "again"), [
    ("connection_error", True), ("timeout_error", True), ("api_error", True), ("overloaded_error", True),
    ("rate_limit_error", True), ("conflict_error", True), ("not_a_model_response", False),
    ("certificate_error", False), ("invalid_request_error", False),
    ("authentication_error", False), ("provider_error", False)])
def test_which_failures_without_a_status_are_tried_again(kind: str, again: bool) -> None:
    assert is_transient(ModelError("x", kind=kind)) == again


@pytest.mark.parametrize(("given", "limit"), [
    (None, 10), ("", 10), ("0", 0), ("3", 3), ("15", 15), ("16", 15), ("999", 15), ("-1", 10), ("many", 10), ("²", 10)])
def test_the_number_of_retries(given: str | None, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if given is not None:
        monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", given)
    assert max_retries() == limit


@pytest.mark.parametrize(("kind", "status", "name"), [
    ("overloaded_error", 529, "overloaded"), ("x", 529, "overloaded"), ("rate_limit_error", 429, "rate_limit"),
    ("authentication_error", 401, "authentication_failed"), ("permission_error", 403, "authentication_failed"),
    ("billing_error", 402, "billing_error"), ("not_found_error", 404, "model_not_found"),
    ("invalid_request_error", 400, "invalid_request"), ("request_too_large", 413, "invalid_request"),
    ("api_error", 500, "server_error"), ("api_error", 503, "server_error"),
    ("connection_error", None, "unknown"), ("overloaded_error", None, "overloaded"), ("conflict_error", 409, "unknown")])
def test_the_class_of_an_error_on_the_stream(kind: str, status: int | None, name: str) -> None:
    assert category(ModelError("x", kind=kind, status=status)) == name


# -- the policy at work -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("limit", "status"), [(None, 529), ("2", 500), ("0", 500), ("99", 429)])
async def test_a_failing_request_is_tried_again_as_often_as_allowed_and_every_wait_is_told(
        limit: str | None, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if limit:
        monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", limit)
    retries = min(int(limit or 10), 15)
    model = Recorded(then=failure(status, "overloaded_error"))
    outcome, clock, told = await asked(tmp_path, model)
    assert isinstance(outcome, ModelError) and outcome.status == status
    assert len(model.requests) == retries + 1
    assert len(clock.sleeps) == len(told) == retries
    for number, (slept, message) in enumerate(zip(clock.sleeps, told, strict=True), 1):
        longest = min(0.5 * 2 ** (number - 1), 32.0)
        assert longest * 0.75 <= slept <= longest
        assert message == {"attempt": number, "max_retries": retries, "retry_delay_ms": round(slept * 1000),
                           "error_status": status, "error": "overloaded"}


async def test_a_request_that_works_at_last_gives_one_answer(tmp_path: Path) -> None:
    model = Recorded(failure(500), failure(kind="connection_error"), TEXT)
    outcome, clock, told = await asked(tmp_path, model)
    assert isinstance(outcome, Response) and outcome.blocks == [{"type": "text", "text": "hello world"}]
    assert [m["error_status"] for m in told] == [500, None]
    assert model.requests[0] == model.requests[2]


@pytest.mark.parametrize("error", [
    failure(400, "invalid_request_error"), failure(401, "authentication_error"), failure(404, "not_found_error"),
    failure(None, "not_a_model_response"), failure(429, "rate_limit_error", should_retry=False),
    failure(429, "rate_limit_error", retry_after=61.0)])
async def test_a_failure_that_would_not_help_is_reported_at_once(error: list[Any], tmp_path: Path) -> None:
    model = Recorded(error)
    outcome, clock, told = await asked(tmp_path, model)
    assert outcome is error[0]
    assert (len(model.requests), clock.sleeps, told) == (1, [], [])


async def test_the_servers_wait_is_slept(tmp_path: Path) -> None:
    outcome, clock, told = await asked(tmp_path, Recorded(failure(429, retry_after=12.0), TEXT))
    assert isinstance(outcome, Response)
    assert clock.sleeps == [12.0] and told[0]["retry_delay_ms"] == 12000


async def test_the_servers_word_beats_the_status(tmp_path: Path) -> None:
    outcome, clock, _ = await asked(tmp_path, Recorded(failure(400, should_retry=True), TEXT))
    assert isinstance(outcome, Response) and len(clock.sleeps) == 1


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("index"), RuntimeError("bug"), OSError("disk")])
async def test_a_provider_that_breaks_is_a_failed_request_and_no_crash(error: Exception, tmp_path: Path) -> None:
    outcome, clock, _ = await asked(tmp_path, Recorded([error]))
    assert isinstance(outcome, ModelError) and type(error).__name__ in outcome.message
    assert (outcome.kind, clock.sleeps) == ("provider_error", [])


async def test_an_exception_of_a_middleware_is_a_failure_of_the_request(tmp_path: Path) -> None:
    class Odd(Middleware):
        name = "odd"

        def around_model(self, request: ModelRequest, next: Any) -> AsyncIterator[Event]:
            raise LookupError("middleware")

    brings = module(register_middleware=lambda register: register(Odd()))
    outcome, _, _ = await asked(tmp_path, Recorded(TEXT), hooks={"m": brings})
    assert isinstance(outcome, ModelError) and "LookupError: middleware" in outcome.message


# -- a stream that breaks ---------------------------------------------------------------------------------------------------
THINKING = {"thinking", "redacted_thinking"}
FULL = whole(block(0, "thinking", thinking="", signature=""), block(1, "text", text=""),
             block(2, "tool_use", id="a", name="Read", input={}), block(3, "tool_use", id="b", name="Read", input={}))
NO_THINKING = whole(block(0, "text", text=""), block(1, "tool_use", id="a", name="Read", input={}))
ONLY_THINKING = whole(block(0, "thinking", thinking="", signature=""), block(1, "redacted_thinking", data="x"))
SERVER = whole(block(0, "server_tool_use", id="s", name="web_search", input={}),
               block(1, "web_search_tool_result", tool_use_id="s", content=[]), block(2, "text", text=""))
RECORDINGS = {"full": FULL, "no thinking": NO_THINKING, "only thinking": ONLY_THINKING, "server": SERVER}


def state(events: list[Event]) -> tuple[str, list[str]]:
    """The row of the table in 8.3, and the kinds of the blocks that are whole; written down again, on purpose."""
    begun = [e["content_block"]["type"] for e in events if e["type"] == "content_block_start"]
    complete = begun[: sum(e["type"] == "content_block_stop" for e in events)]
    if any(e["type"] == "message_delta" for e in events):
        return "whole", complete
    if not complete:
        return "again", []
    if set(begun) <= THINKING:
        return "quickly", complete
    return "keep", complete


CUTS = [(name, at) for name, events in RECORDINGS.items() for at in range(len(events) + 1)]


@pytest.mark.parametrize("error", [
    LOST, StreamError("overloaded", kind="overloaded_error"), ModelError("gone", kind="api_error", status=500),
    ModelError("no", kind="invalid_request_error", status=400, should_retry=True)], ids=["lost", "event", "status", "told"])
@pytest.mark.parametrize(("name", "at"), CUTS)
async def test_a_stream_that_breaks_at_any_event(name: str, at: int, error: ModelError, tmp_path: Path) -> None:
    events = RECORDINGS[name][:at]
    row, kinds = state(events)
    model = Recorded([*events, error], TEXT)
    outcome, clock, told = await asked(tmp_path, model)
    assert isinstance(outcome, Response)
    if row == "whole":
        assert (len(model.requests), outcome.incomplete) == (1, False)
        assert [b["type"] for b in outcome.blocks] == kinds
    elif row == "keep":  # never sent again: its calls could run twice
        assert (len(model.requests), outcome.incomplete, told) == (1, True, [])
        answered = "web_search_tool_result" in kinds
        assert [b["type"] for b in outcome.blocks] == [k for k in kinds if k != "server_tool_use" or answered]
    elif row == "quickly":
        assert (len(model.requests), clock.sleeps, told) == (2, [], [])
        assert [b["type"] for b in outcome.blocks] == ["text"]
    else:
        assert (len(model.requests), len(clock.sleeps), len(told)) == (2, 1, 1)
        assert [b["type"] for b in outcome.blocks] == ["text"] and not outcome.incomplete


@pytest.mark.parametrize(("name", "at"), CUTS)
async def test_a_stream_that_just_ends_is_a_lost_connection(name: str, at: int, tmp_path: Path) -> None:
    events = RECORDINGS[name][:at]
    row, _ = state(events)
    model = Recorded(list(events), TEXT)
    outcome, _, _ = await asked(tmp_path, model)
    assert isinstance(outcome, Response)
    assert len(model.requests) == (1 if row in ("whole", "keep") else 2)
    assert outcome.incomplete == (row == "keep")


async def test_thinking_that_is_lost_again_and_again_ends_the_run(tmp_path: Path) -> None:
    model = Recorded(then=[*FULL[:5], LOST])
    outcome, clock, told = await asked(tmp_path, model)
    assert isinstance(outcome, StreamError) and "connection was lost before a response" in outcome.message
    assert len(model.requests) == 1 + policy.THINKING_RESENDS
    assert (clock.sleeps, told) == ([], [])


async def test_quick_resends_do_not_use_up_retries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "1")
    model = Recorded([*FULL[:5], LOST], failure(500), [*FULL[:5], LOST], TEXT)
    outcome, _, told = await asked(tmp_path, model)
    assert isinstance(outcome, Response) and len(told) == 1


async def test_a_call_whose_input_was_complete_is_kept_and_one_that_was_open_is_not(tmp_path: Path) -> None:
    cut = next(n for n, e in enumerate(FULL) if e.get("index") == 3 and e["type"] == "content_block_stop")
    outcome, _, _ = await asked(tmp_path, Recorded([*FULL[:cut], LOST]))
    assert isinstance(outcome, Response)
    assert [c["id"] for c in outcome.calls] == ["a"]


# -- what is shown ------------------------------------------------------------------------------------------------------------
async def test_raw_events_go_out_when_they_are_asked_for(tmp_path: Path) -> None:
    events = [FULL[0], {"type": "ping"}, *FULL[1:]]
    session, _, kit = opened(tmp_path, Recorded(events), include_partial_messages=True)
    await respond(session, session.request())
    shown = [m for m in kit.outputs if isinstance(m, StreamMessage)]
    assert [m.event for m in shown] == FULL
    assert [m.ttft_ms is not None for m in shown] == [True] + [False] * (len(FULL) - 1)
    assert {m.parent_tool_use_id for m in shown} == {None}


async def test_no_raw_event_goes_out_otherwise(tmp_path: Path) -> None:
    session, _, kit = opened(tmp_path, Recorded(FULL))
    await respond(session, session.request())
    assert kit.outputs == []


async def test_the_time_in_requests_is_counted_without_the_waits(tmp_path: Path) -> None:
    class Slow(Recorded):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Event]:
            await clock.sleep(3.0)
            async for event in super().stream(request):
                yield event

    clock = FakeClock()
    kit = Kit(tmp_path, model=Slow(failure(500), TEXT), clock=clock)
    session = kit.open()
    await respond(session, session.request())
    assert session.spending.api_seconds == 6.0


async def test_a_request_is_the_same_objects_from_turn_to_turn(tmp_path: Path) -> None:
    session, _, _ = opened(tmp_path, Recorded(TEXT, TEXT))
    one, two = session.request(), session.request(max_tokens=5)
    assert one.system is two.system and one.tools is two.tools and one.history is two.history
    assert two.max_tokens == 5


@pytest.mark.parametrize(("given", "sent"), [
    (None, 32_000), ("1000", 1000), ("64000", 32_000), ("0", 32_000), ("x", 32_000), ("", 32_000), ("²", 32_000)])
async def test_max_tokens_follow_the_variable_up_to_the_models_maximum(
        given: str | None, sent: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if given is not None:
        monkeypatch.setenv("CLAUDE_CODE_MAX_OUTPUT_TOKENS", given)
    session, _, _ = opened(tmp_path, Recorded())
    assert session.request().max_tokens == sent


@pytest.mark.parametrize(("options", "thinking"), [
    ({}, None), ({"thinking": "adaptive"}, {"type": "adaptive"}), ({"thinking": "disabled"}, {"type": "disabled"}),
    ({"max_thinking_tokens": 5000}, {"type": "enabled", "budget_tokens": 5000}),
    ({"thinking": "adaptive", "extra": {"thinking_display": "omitted"}}, {"type": "adaptive", "display": "omitted"}),
    ({"thinking": "disabled", "extra": {"thinking_display": "omitted"}}, {"type": "disabled"}),
    ({"max_thinking_tokens": 10}, {"type": "enabled", "budget_tokens": 1024})])
async def test_the_thinking_field(options: dict[str, Any], thinking: Any, tmp_path: Path) -> None:
    session, _, _ = opened(tmp_path, Recorded(), **options)
    assert session.request().thinking == thinking


