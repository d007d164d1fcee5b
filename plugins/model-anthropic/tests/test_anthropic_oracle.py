"""Held to the behaviour of the vendor's own client: the same requests, the same answers out of the same streams, the
same errors. Skipped without the optional extra ``oracle``."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from kernel_model_anthropic.provider import Anthropic

from kernel import AssistantMessage, History, ModelError, ModelRequest
from kernel.testing import Kit

anthropic = pytest.importorskip("anthropic", reason="pip install kernel-model-anthropic[oracle]")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

Json = dict[str, Any]


def theirs(server: Any, **options: Any) -> Any:
    return anthropic.AsyncAnthropic(base_url=server.url, api_key="sk-test-key-123456", max_retries=0, **options)


# -- requests --------------------------------------------------------------------------------------------------------------
TOOLS = [{"name": "Read", "description": "reads", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}},
                                                                   "required": ["path"], "additionalProperties": False}}]
HISTORY = History([
    ("user", [{"type": "text", "text": "Look at this: äöü 🎈"},
              {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}]),
    ("assistant", [{"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                   {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.txt", "deep": [1, {"x": None}]}},
                   {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {}}]),
    ("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"},
              {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": True,
               "content": [{"type": "text", "text": "no such file"}]},
              {"type": "text", "text": "<system-reminder>\nx\n</system-reminder>"}])])
REQUESTS: dict[str, Json] = {
    "plain": {"tools": [], "system": [], "history": History([("user", "hi")])},
    "tools and system": {},
    "thinking and effort": {"thinking": {"type": "enabled", "budget_tokens": 2000}, "effort": "high", "model": "claude-opus-4-6"},
    "adaptive": {"thinking": {"type": "adaptive"}, "model": "claude-opus-5-5"},
    "choice and betas": {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "betas": ["one-2026", "two-2026"]},
    "extra": {"extra": {"stop_sequences": ["END"], "metadata": {"user_id": "me"}, "service_tier": "auto",
                        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}},
}


@pytest.mark.parametrize("changes", REQUESTS.values(), ids=REQUESTS)
def test_the_package_sends_the_same_request(changes: Json, server: Any, wire: Any) -> None:
    """Given the fields of our body as arguments, the package sends the same path, headers and JSON."""
    request = ModelRequest(**{"model": "claude-sonnet-5-5", "max_tokens": 4000, "tools": TOOLS, "history": HISTORY,
                              "system": [{"type": "text", "text": "rules"}, {"type": "text", "text": "here"}], **changes})

    async def main() -> None:
        server.queue(wire.sse(*MESSAGES["text"]), wire.sse(*MESSAGES["text"]))
        provider = Anthropic()
        async for _ in provider.stream(request):
            pass
        await provider.aclose()
        headers = {"anthropic-beta": ",".join(request.betas)} if request.betas else {}
        async with theirs(server) as client:
            async for _ in await client.messages.create(**server.requests[0].body, extra_headers=headers):
                pass
    anyio.run(main)
    ours, package = server.requests
    assert ours.path == package.path
    assert ours.body == package.body
    for name in ("content-type", "accept", "anthropic-beta"):
        assert ours.headers.get(name) == package.headers.get(name), name
    assert ours.headers["anthropic-version"] <= package.headers["anthropic-version"]
    sent_as = (package.headers.get("x-api-key"), package.headers.get("authorization", "").removeprefix("Bearer "))
    assert ours.headers["x-api-key"] in sent_as


# -- streams ---------------------------------------------------------------------------------------------------------------
def message(*blocks: list[Json], reason: str = "end_turn", final: Json | None = None, **start: Any) -> list[Json]:
    """A stream: one list of events per block, without ``index``."""
    events: list[Json] = [{"type": "message_start", "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 12, "output_tokens": 1, "cache_creation_input_tokens": 5,
                                         "cache_read_input_tokens": 7, "service_tier": "standard"}, **start}}]
    for index, block in enumerate(blocks):
        events += [{"index": index, **event} for event in block] + [{"type": "content_block_stop", "index": index}]
    return [*events, {"type": "ping"}, {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
                                        "usage": {"output_tokens": 42, **(final or {})}}, {"type": "message_stop"}]


def block(start: Json, *deltas: Json) -> list[Json]:
    return [{"type": "content_block_start", "content_block": start},
            *({"type": "content_block_delta", "delta": delta} for delta in deltas)]


def text(*parts: str) -> list[Json]:
    return block({"type": "text", "text": ""}, *({"type": "text_delta", "text": part} for part in parts))


def call(*parts: str, kind: str = "tool_use", id: str = "toolu_1") -> list[Json]:
    return block({"type": kind, "id": id, "name": "Read", "input": {}},
                 *({"type": "input_json_delta", "partial_json": part} for part in parts))


THINKING = block({"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": "let me "},
                 {"type": "thinking_delta", "thinking": "see"}, {"type": "signature_delta", "signature": "c2lnbmVk"})
CITATION = {"type": "char_location", "cited_text": "sky", "document_index": 0, "document_title": "d", "file_id": None,
            "start_char_index": 0, "end_char_index": 3}
MESSAGES: dict[str, list[Json]] = {
    "text": message(text("Hel", "lo ", "", "wörld 🎈")),
    "a call in pieces": message(text("I look."), call('{"pa', 'th": "a', '\\u00', 'e4.txt", "n": [1, 2.5, ', 'null]}'),
                                reason="tool_use"),
    "a call without input": message(call(), reason="tool_use"),
    "two calls": message(call('{"a": 1}'), call("", '{"b": {}}', id="toolu_2"), reason="tool_use"),
    "thinking": message(THINKING, text("done")),
    "hidden thinking": message(block({"type": "redacted_thinking", "data": "eHg="}),
                               block({"type": "thinking", "thinking": "", "signature": ""},
                                     {"type": "signature_delta", "signature": "c2ln"}), text("x")),
    "citations": message(block({"type": "text", "text": "", "citations": []}, {"type": "text_delta", "text": "The sky"},
                               {"type": "citations_delta", "citation": CITATION},
                               {"type": "citations_delta", "citation": {**CITATION, "cited_text": "blue"}})),
    "server tool": message(call('{"query": "x"}', kind="server_tool_use", id="srvtoolu_1"),
                           block({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}), text("found"),
                           final={"server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0}}),
    "usage is a total": message(text("x"), final={"input_tokens": 20, "cache_read_input_tokens": 9, "output_tokens": 3}),
    "cut off": message(text("and then"), reason="max_tokens"),
}


def assembled_by_them(server: Any, wire: Any, events: list[Json]) -> Json:
    server.queue(wire.Answer(wire.sse(*events), pieces=7))

    async def main() -> Json:
        async with theirs(server) as client, client.messages.stream(
                model="claude-sonnet-4-6", max_tokens=10, messages=[{"role": "user", "content": "x"}]) as stream:
            final: Json = (await stream.get_final_message()).to_dict(mode="json")
            return final
    return anyio.run(main)


def assembled_by_us(server: Any, wire: Any, events: list[Json], cwd: Path) -> Json:
    """What the loop puts into its history and says of the tokens."""
    ends = [wire.sse(*message(text("end")))] * 8
    server.queue(wire.Answer(wire.sse(*events), pieces=7), *ends)
    kit = Kit(cwd, model=Anthropic())

    async def main() -> Any:
        session = kit.open()
        await session.submit("x")
        await session.provider.aclose()
        return session
    session = anyio.run(main)
    server.answers.clear()
    first = next((m.message for m in kit.outputs if isinstance(m, AssistantMessage)), {})
    blocks = next((blocks for role, blocks in session.history.messages if role == "assistant"), [])
    return {**first, "content": blocks, "usage": first["usage"]}


def bare(value: Any) -> Any:
    """Without the nulls that one side adds, and without what one side derives."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if v is not None and k not in ("parsed_output", "caller")}
    return [bare(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("events", MESSAGES.values(), ids=MESSAGES)
def test_a_stream_comes_to_the_same_message(events: list[Json], server: Any, wire: Any, tmp_path: Path) -> None:
    package, ours = assembled_by_them(server, wire, events), assembled_by_us(server, wire, events, tmp_path)
    assert bare(ours["content"]) == bare(package["content"])
    assert (ours["id"], ours["model"]) == (package["id"], package["model"])
    if package["content"] and len(package["content"]) == 1:
        assert ours["stop_reason"] == package["stop_reason"]
    for name in ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
        assert getattr(ours["usage"], name) == package["usage"][name], name
    if package["usage"].get("server_tool_use"):
        assert ours["usage"].server_tool_use == package["usage"]["server_tool_use"]


VALUES = st.recursive(st.none() | st.booleans() | st.integers(-2**53, 2**53) | st.text(max_size=8),
                      lambda v: st.lists(v, max_size=2) | st.dictionaries(st.text(max_size=3), v, max_size=2), max_leaves=4)
INPUTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=3)


@given(INPUTS, st.booleans(), st.lists(st.integers(0, 200), max_size=5))
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_call_s_input_survives_any_cut(server: Any, wire: Any, tmp_path: Path, value: Json, escaped: bool,
                                         cuts: list[int]) -> None:
    raw = json.dumps(value, ensure_ascii=escaped)
    ends = sorted({0, len(raw), *(c for c in cuts if c < len(raw))})
    events = message(call(*(raw[a:b] for a, b in itertools.pairwise(ends))), reason="tool_use")
    package, ours = assembled_by_them(server, wire, events), assembled_by_us(server, wire, events, tmp_path)
    assert ours["content"][0]["input"] == package["content"][0]["input"] == value


ASKED: Json = {"model": "m", "max_tokens": 1, "stream": True, "messages": [{"role": "user", "content": "x"}]}


# -- errors ----------------------------------------------------------------------------------------------------------------
def failure(kind: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": "why"}, "request_id": "req_b"}).encode()


ERRORS: list[tuple[int, bytes, dict[str, str]]] = [
    (400, failure("invalid_request_error"), {}),
    (401, failure("authentication_error"), {"request-id": "req_1"}),
    (402, failure("billing_error"), {}),
    (403, failure("permission_error"), {}),
    (404, failure("not_found_error"), {}),
    (409, failure("conflict_error"), {}),
    (413, failure("request_too_large"), {}),
    (429, failure("rate_limit_error"), {"retry-after": "12"}),
    (429, failure("rate_limit_error"), {"retry-after": "12", "retry-after-ms": "1500"}),
    (429, failure("rate_limit_error"), {"retry-after": "x"}),
    (500, failure("api_error"), {"request-id": "req_2"}),
    (502, b"<html>bad gateway</html>", {"retry-after": "1.5"}),
    (529, failure("overloaded_error"), {"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}),
]


@pytest.mark.parametrize(("status", "raw", "headers"), ERRORS, ids=lambda v: str(v)[:30])
def test_an_error_answer_is_read_alike(status: int, raw: bytes, headers: dict[str, str], server: Any, wire: Any) -> None:
    answer = wire.Answer(raw, status=status, headers={"content-type": "application/json", **headers})
    server.queue(answer, answer)
    request = ModelRequest(model="m", max_tokens=1, system=[], tools=[], history=History([("user", "x")]))

    async def main() -> tuple[Any, ModelError, float | None]:
        async with theirs(server) as client:
            with pytest.raises(anthropic.APIStatusError) as package:
                await client.messages.create(**ASKED)
            wait = client._parse_retry_after_header(package.value.response.headers)
        provider = Anthropic()
        _, ours = await drain(provider.stream(request), ModelError)
        await provider.aclose()
        return package.value, ours, wait
    package, ours, wait = anyio.run(main)
    assert ours.status == package.status_code == status
    if package.type:
        assert ours.kind == package.type and ours.message == package.api_message
    if package.request_id:
        assert ours.request_id == package.request_id
    assert ours.retry_after == (pytest.approx(wait, abs=5) if wait is not None else None)


@pytest.mark.parametrize("kind", ["overloaded_error", "api_error", "rate_limit_error", "invalid_request_error"])
def test_an_error_event_is_read_alike(kind: str, server: Any, wire: Any) -> None:
    raw = wire.sse(MESSAGES["text"][0], json.loads(failure(kind)))
    server.queue(raw, raw)
    request = ModelRequest(model="m", max_tokens=1, system=[], tools=[], history=History([("user", "x")]))

    async def main() -> tuple[Any, ModelError, int, int]:
        async with theirs(server) as client:
            package = await drain(await client.messages.create(**ASKED), anthropic.APIError)
        provider = Anthropic()
        ours = await drain(provider.stream(request), ModelError)
        await provider.aclose()
        return package[1], ours[1], package[0], ours[0]
    package, ours, theirs_seen, ours_seen = anyio.run(main)
    assert ours.kind == package.type and theirs_seen == ours_seen == 1


async def drain(stream: Any, expected: type[Exception]) -> tuple[int, Any]:
    """How many events came before the error, and the error."""
    seen = 0
    try:
        async for _ in stream:
            seen += 1
    except expected as error:
        return seen, error
    raise AssertionError("no error came")
