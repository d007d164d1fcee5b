"""What is sent: body, cache marks, headers, credentials."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from kernel_model_anthropic.body import Bodies
from kernel_model_anthropic.provider import Anthropic
from kernel_model_anthropic.target import target

from kernel import History, ModelError, ModelRequest, StreamEvent

SYSTEM = [{"type": "text", "text": "rules"}, {"type": "text", "text": "environment"}]
TOOLS = [{"name": "Read", "description": "d", "input_schema": {"type": "object"}},
         {"name": "Bash", "description": "d", "input_schema": {"type": "object"}}]
MARK = {"cache_control": {"type": "ephemeral"}}


def make(**changes: Any) -> ModelRequest:
    given: dict[str, Any] = {"model": "claude-sonnet-5-5", "max_tokens": 1000, "system": SYSTEM, "tools": TOOLS,
                             "history": History([("user", "hello")]), **changes}
    return ModelRequest(**given)


def built(request: ModelRequest) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(Bodies().build(request))
    return value


def count_marks(value: Any) -> int:
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(count_marks(v) for v in value.values())
    return sum(map(count_marks, value)) if isinstance(value, list) else 0


# -- body -----------------------------------------------------------------------------------------------------------------
def test_the_whole_body() -> None:
    assert built(make()) == {
        "model": "claude-sonnet-5-5", "max_tokens": 1000, "stream": True, "tools": TOOLS,
        "system": [{**SYSTEM[0], **MARK}, {**SYSTEM[1], **MARK}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello", **MARK}]}]}


def test_optional_fields_stand_only_where_they_are_asked_for() -> None:
    body = built(make(thinking={"type": "adaptive"}, effort="low", tool_choice={"type": "none"},
                      extra={"stop_sequences": ["x"], "output_config": {"format": {"type": "json_schema"}}}))
    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": "low", "format": {"type": "json_schema"}}
    assert body["tool_choice"] == {"type": "none"}
    assert body["stop_sequences"] == ["x"]
    assert "temperature" not in body


def test_without_system_and_tools_the_fields_are_left_out() -> None:
    body = built(make(system=[], tools=[], tool_choice={"type": "none"}))
    assert body.keys() == {"model", "max_tokens", "stream", "messages"}


def test_extra_fields_never_replace_model_messages_or_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_EXTRA_BODY", '{"stream": false, "metadata": {"user_id": "me"}, "max_tokens": 1}')
    body = built(make(extra={"messages": [], "model": "other", "service_tier": "auto"}))
    assert body["stream"] is True and body["model"] == "claude-sonnet-5-5" and len(body["messages"]) == 1
    assert body["max_tokens"] == 1000 and body["metadata"] == {"user_id": "me"} and body["service_tier"] == "auto"


@pytest.mark.parametrize("value", ["[1]", "{", "nonsense"])
def test_an_extra_body_that_is_no_object_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_EXTRA_BODY", value)
    with pytest.raises(ModelError, match="CLAUDE_CODE_EXTRA_BODY"):
        built(make())


def test_the_conversation_is_the_history_s_own_bytes() -> None:
    history = History([("user", "one"), ("assistant", "two"), ("user", "three")])
    assert Bodies().build(make(history=history)).endswith(b',"messages":' + history.encode(MARK) + b"}")


def test_system_and_tools_are_encoded_once_per_list() -> None:
    bodies = Bodies()
    kept = bodies._encoded
    first = kept.get(TOOLS, {})
    assert kept.get(TOOLS, {}) is first
    assert kept.get(list(TOOLS), {}) is not first


def test_a_list_that_grew_in_place_is_encoded_anew() -> None:
    bodies, tools = Bodies(), list(TOOLS)
    request = make(tools=tools)
    assert len(json.loads(bodies.build(request))["tools"]) == 2
    tools.append({"name": "New", "input_schema": {"type": "object"}})
    assert [t["name"] for t in json.loads(bodies.build(request))["tools"]] == ["Read", "Bash", "New"]
    tools[0] = {"name": "Other", "input_schema": {"type": "object"}}
    assert json.loads(bodies.build(request))["tools"][0]["name"] == "Other"


def test_many_conversations_do_not_make_the_kept_bytes_grow() -> None:
    bodies = Bodies()
    for n in range(100):
        bodies.build(make(system=[{"type": "text", "text": str(n)}]))
    assert len(bodies._encoded._kept) <= 16


def test_half_a_character_in_the_system_prompt_is_replaced() -> None:
    assert built(make(system=[{"type": "text", "text": "a\ud83d b"}]))["system"][0]["text"] == "a? b"


# -- cache marks -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("system", "tools", "where"), [
    (2, 2, {"system": [0, 1], "tools": []}),
    (1, 2, {"system": [0], "tools": []}),
    (3, 0, {"system": [0, 2], "tools": []}),
    (0, 2, {"system": [], "tools": [1]}),
    (0, 0, {"system": [], "tools": []}),
])
def test_marks_stand_at_the_ends_of_what_does_not_change(system: int, tools: int, where: dict[str, list[int]]) -> None:
    body = built(make(system=[{"type": "text", "text": f"s{n}"} for n in range(system)],
                      tools=[{"name": f"t{n}", "input_schema": {}} for n in range(tools)]))
    for part, expected in where.items():
        assert [n for n, item in enumerate(body.get(part, [])) if "cache_control" in item] == expected
    assert body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}


BLOCKS = st.lists(st.booleans(), max_size=4)


@given(BLOCKS, BLOCKS, st.lists(BLOCKS.filter(bool), min_size=1, max_size=4))
@settings(deadline=None)
def test_never_more_than_four_marks_and_never_none(system: list[bool], tools: list[bool], messages: list[list[bool]]) -> None:
    """Marks that others set are counted; ours fill what is left."""
    def block(marked: bool) -> dict[str, Any]:
        return {"type": "text", "text": "x", **(MARK if marked else {})}

    theirs = sum(system) + sum(tools) + sum(map(sum, messages))
    named = [{"name": str(n), **(MARK if marked else {})} for n, marked in enumerate(tools)]
    body = built(make(system=[block(m) for m in system], tools=named,
                      history=History([("user", [block(m) for m in message]) for message in messages])))
    assert max(1, theirs) <= count_marks(body) <= max(4, theirs)


def test_marks_inside_tool_results_count_too() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "r", **MARK}] * 3}
    history = History([("user", "q"), ("assistant", [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]),
                       ("user", [result])])
    body = built(make(history=history))
    assert count_marks(body) == 4 and "cache_control" in body["messages"][-1]["content"][-1]


@pytest.mark.parametrize(("variable", "model", "marks"), [
    ("DISABLE_PROMPT_CACHING", "claude-sonnet-5-5", 0),
    ("DISABLE_PROMPT_CACHING_SONNET", "claude-sonnet-5-5", 0),
    ("DISABLE_PROMPT_CACHING_SONNET", "claude-opus-5-5", 3),
    ("DISABLE_PROMPT_CACHING_OPUS", "claude-opus-5-5", 0),
    ("DISABLE_PROMPT_CACHING_HAIKU", "claude-haiku-5-5", 0),
    ("DISABLE_PROMPT_CACHING_FABLE", "claude-fable-5-2", 0),
])
def test_caching_can_be_switched_off(variable: str, model: str, marks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1")
    assert count_marks(built(make(model=model))) == marks
    monkeypatch.setenv(variable, "0")
    assert count_marks(built(make(model=model))) == 3


def test_the_hour_is_asked_for_and_five_minutes_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_PROMPT_CACHING_1H", "true")
    assert built(make())["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    monkeypatch.setenv("FORCE_PROMPT_CACHING_5M", "1")
    assert built(make())["system"][0]["cache_control"] == {"type": "ephemeral"}


# -- headers and credentials -----------------------------------------------------------------------------------------------
def test_the_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", " sk-key-123 \n")
    monkeypatch.setenv("ANTHROPIC_BETAS", "c, a")
    got = target(make(betas=["a", "b"]))
    assert got.url == "https://api.anthropic.com/v1/messages" and got.secure
    assert got.headers["x-api-key"] == "sk-key-123" and "authorization" not in got.headers
    assert got.headers["anthropic-beta"] == "a,b,c"
    assert got.headers["anthropic-version"] == "2023-06-01"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["user-agent"].startswith("kernel-harness/")


def test_a_token_is_sent_as_bearer_and_may_stand_beside_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-123")
    assert "x-api-key" not in target(make()).headers
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-123456")
    headers = target(make()).headers
    assert (headers["authorization"], headers["x-api-key"]) == ("Bearer token-123", "key-123456")


def test_own_headers_win_whatever_their_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-API-KEY: mine\nno colon\n\nX-Team: a: b\nAnthropic-Version: 2026-10-21")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other-key")
    headers = target(make()).headers
    assert (headers["x-api-key"], headers["x-team"], headers["anthropic-version"]) == ("mine", "a: b", "2026-10-21")


def test_headers_of_a_request_go_along_and_never_replace_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-123456")
    headers = target(make(headers={"traceparent": "00-1-2-01", "x-api-key": "stolen", "anthropic-version": "1"})).headers
    assert headers["traceparent"] == "00-1-2-01" and headers["x-api-key"] == "key-123456"
    assert headers["anthropic-version"] == "2023-06-01"


@pytest.mark.parametrize("status", [200, 400])
def test_headers_of_the_answer_are_heard(status: int, server: Any, wire: Any) -> None:
    server.queue(wire.Answer(wire.sse({"type": "message_stop"}), status=status,
                             headers={"content-type": "text/event-stream", "request-id": "req_1"}))
    heard: list[str] = []

    async def ask() -> None:
        provider = Anthropic()
        with contextlib.suppress(ModelError):
            async for _ in provider.stream(make(heard=lambda headers: heard.append(headers["request-id"]))):
                assert heard == ["req_1"], "before the first event"
        await provider.aclose()

    anyio.run(ask)
    assert heard == ["req_1"]


def test_the_long_window_is_a_beta_and_no_part_of_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    request = make(model="claude-sonnet-4-5[1m]")
    assert built(request)["model"] == "claude-sonnet-4-5"
    assert "context-1m" in target(request).headers["anthropic-beta"]
    monkeypatch.setenv("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "1")
    assert "anthropic-beta" not in target(request).headers


def test_missing_credentials_are_said_clearly() -> None:
    with pytest.raises(ModelError) as caught:
        target(make())
    assert caught.value.kind == "authentication_error" and "ANTHROPIC_API_KEY" in caught.value.hint
    assert caught.value.status is None


def test_another_server_may_need_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://localhost:9/prefix/")
    got = target(make())
    assert got.url == "http://localhost:9/prefix/v1/messages" and not got.secure
    assert got.headers.keys().isdisjoint({"x-api-key", "authorization"})


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", "http://", "http://[::1", "http://h:99999", "https://h/?q=1"])
def test_an_address_that_cannot_be_used_names_the_variable_and_not_its_value(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    with pytest.raises(ModelError, match="ANTHROPIC_BASE_URL"):
        target(make())


@pytest.mark.parametrize("variable", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"])
@pytest.mark.parametrize("value", ["sk-se\ncret", "sk-se\x00cret".replace("\x00", "\x01"), "sk-secrét"])
def test_a_value_that_no_header_can_carry_is_named_and_never_shown(variable: str, value: str,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    value = f"X-Key: {value}".replace("\n", "\x02") if variable.endswith("HEADERS") else value
    monkeypatch.setenv(variable, value)
    with pytest.raises(ModelError, match=variable) as caught:
        target(make())
    assert "sk-se" not in str(caught.value) and "sk-se" not in repr(caught.value)


def test_the_request_arrives_as_it_was_built(server: Any, wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server.queue(wire.sse({"type": "message_stop"}))
    request = make(betas=["x-beta"])

    async def main() -> list[StreamEvent]:
        provider = Anthropic()
        events = [event async for event in provider.stream(request)]
        await provider.aclose()
        return events

    assert anyio.run(main) == [{"type": "message_stop"}]
    sent = server.requests[0]
    assert sent.path == "/v1/messages" and sent.raw == Bodies().build(request)
    assert sent.headers["anthropic-beta"] == "x-beta" and sent.headers["x-api-key"] == "sk-test-key-123456"
    assert msgspec.json.decode(sent.raw)["stream"] is True


def test_loading_the_plugin_loads_no_http_library() -> None:
    code = ("import sys; from kernel import Registry; from kernel_model_anthropic import plugin; r = Registry('models');"
            "plugin.register_models(r); assert r.get('anthropic').resolve('sonnet');"
            "print(sorted({'httpx', 'httpcore', 'ssl', 'httpx_sse', 'anthropic', 'asyncio'} & set(sys.modules)))")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
