"""The stream: decoding whatever way the bytes are cut, and every way in which an answer can fail."""

from __future__ import annotations

import itertools
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import given, settings, strategies as st
from kernel_model_anthropic import errors
from kernel_model_anthropic.provider import Anthropic, events
from kernel_model_anthropic.target import Target, answer_seconds, silence_seconds

from kernel import History, ModelError, ModelRequest, StreamError, StreamEvent

REQUEST = ModelRequest(model="claude-sonnet-5-5", max_tokens=100, system=[], tools=[], history=History([("user", "hi")]))
WHERE = Target(url="http://h/v1/messages", host="h", secure=False, headers={}, secrets=("sk-secret-key",))
START: StreamEvent = {"type": "message_start", "message": {"id": "msg_1", "model": "m", "usage": {"input_tokens": 1}}}
TEXT: StreamEvent = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße 🎈\u2028!"}}
STOP: StreamEvent = {"type": "message_stop"}


def ask(*, provider: Anthropic | None = None, times: int = 1) -> tuple[list[StreamEvent], ModelError | None]:
    """The events of the last of several requests by one provider, and its error."""
    async def main() -> tuple[list[StreamEvent], ModelError | None]:
        mine = provider or Anthropic()
        for _ in range(times):
            got: list[StreamEvent] = []
            error: ModelError | None = None
            try:
                async for event in mine.stream(REQUEST):
                    got.append(event)
            except ModelError as caught:
                error = caught
        await mine.aclose()
        return got, error
    return anyio.run(main)


def failed(**options: Any) -> ModelError:
    _, error = ask(**options)
    assert error is not None
    return error


# -- decoding --------------------------------------------------------------------------------------------------------------
class Pieces(httpx.AsyncByteStream):
    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


def decoded(*pieces: bytes) -> list[StreamEvent]:
    async def main() -> list[StreamEvent]:
        response = httpx.Response(200, headers={"content-type": "text/event-stream; charset=iso-8859-1"},
                                  stream=Pieces(list(pieces)))
        return [event async for event in events(response, WHERE)]
    return anyio.run(main)


WHOLE = (b": a comment\n\nevent: message_start\ndata: " + json.dumps(START).encode() + b"\n\n"
         b"event: ping\r\ndata: {\"type\": \"ping\"}\r\n\r\nid: 7\nretry: 10\nunknown: x\nevent: content_block_delta\n"
         b"data:" + json.dumps(TEXT, ensure_ascii=False).encode() + b"\n\n"
         b"event: content_block_stop\ndata: {\"type\":\ndata:  \"content_block_stop\",\ndata: \"index\": 0}\n\n"
         b"event: empty\n\ndata\n\nevent: message_stop\ndata: {}\n\ndata: [DONE]\n\n")
EXPECTED = [START, {"type": "ping"}, TEXT, {"type": "content_block_stop", "index": 0}, STOP]


def test_the_events_of_a_stream() -> None:
    """Comments, CRLF, data over several lines, unknown fields, an event whose type stands in its name only."""
    assert decoded(WHOLE) == EXPECTED


@given(st.lists(st.integers(0, len(WHOLE)), max_size=30))
@settings(deadline=None)
def test_any_cut_of_the_bytes_gives_the_same_events(cuts: list[int]) -> None:
    ends = sorted({0, len(WHOLE), *cuts})
    assert decoded(*(WHOLE[a:b] for a, b in itertools.pairwise(ends))) == EXPECTED


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_of_the_standard_is_one(end: bytes) -> None:
    raw = b"".join(b"data: " + json.dumps(e).encode() + end + end for e in (START, STOP))
    assert decoded(*(bytes([b]) for b in raw)) == [START, STOP]


JSON = st.recursive(st.none() | st.booleans() | st.integers(-2**53, 2**53) | st.text(),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=3).map(lambda d: {**d, "type": "x"}), min_size=1, max_size=4),
       st.integers(1, 40), st.booleans())
@settings(deadline=None)
def test_what_was_sent_is_what_comes_out(sent: list[StreamEvent], size: int, escaped: bool) -> None:
    """Any JSON object, with or without escapes, lone halves of characters included."""
    raw = b"".join(b"data: " + json.dumps(e, ensure_ascii=escaped).encode("utf-8", "replace") + b"\n\n" for e in sent)
    expected = [json.loads(json.dumps(e, ensure_ascii=escaped).encode("utf-8", "replace")) for e in sent]
    assert decoded(*(raw[n:n + size] for n in range(0, len(raw), size))) == expected


def test_half_a_character_does_not_stop_the_stream() -> None:
    [event] = decoded(b'data: {"type": "x", "text": "a\\ud83d"}\n\n')
    assert event["text"] == "a\ud83d"


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    [event] = decoded(b'data: {"type": "x", "text": "a\xff"}\n\n')
    assert event["text"] == "a\ufffd"


def test_an_event_that_the_end_cut_off_does_not_count() -> None:
    assert decoded(b"data: " + json.dumps(START).encode() + b"\n\ndata: {\"type\": \"mess") == [START]


@pytest.mark.parametrize("data", [b"not json", b"[1, 2]", b'"text"', b"12", b"[" * 20_000])
def test_an_event_that_is_no_object_is_reported_with_its_text(data: bytes) -> None:
    with pytest.raises(StreamError) as caught:
        decoded(b"data: " + json.dumps(START).encode() + b"\n\n", b"data: " + data + b"\n\n")
    assert caught.value.kind == "not_a_model_response" and caught.value.should_retry is False
    assert data.decode()[:200] in str(caught.value) and len(str(caught.value)) < 600


# -- a real server -----------------------------------------------------------------------------------------------------------
def test_events_come_in_their_order_pings_included(server: Any, wire: Any) -> None:
    server.queue(wire.Answer(wire.sse(START, {"type": "ping"}, TEXT, STOP), pieces=40))
    assert ask() == ([START, {"type": "ping"}, TEXT, STOP], None)


def test_connections_are_used_again(server: Any, wire: Any) -> None:
    server.queue(*[wire.sse(START, STOP)] * 3)
    ask(times=3)
    assert len({sent.peer for sent in server.requests}) == 1


def test_a_provider_may_be_used_in_one_event_loop_after_another(server: Any, wire: Any) -> None:
    server.queue(*[wire.sse(START, STOP)] * 2)
    provider = Anthropic()
    for _ in range(2):
        async def main() -> list[StreamEvent]:
            return [event async for event in provider.stream(REQUEST)]
        assert anyio.run(main) == [START, STOP]


def test_requests_side_by_side(server: Any, wire: Any) -> None:
    server.queue(*[wire.sse(START, TEXT, STOP)] * 8)

    async def main() -> list[list[StreamEvent]]:
        provider, found = Anthropic(), []

        async def one() -> None:
            found.append([event async for event in provider.stream(REQUEST)])
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(one)
        await provider.aclose()
        return found
    assert anyio.run(main) == [[START, TEXT, STOP]] * 8


# -- failures before the first event -----------------------------------------------------------------------------------------
def body(kind: str, message: str = "why", **more: Any) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message, **more}, "request_id": "req_body"}).encode()


@pytest.mark.parametrize(("status", "raw", "kind"), [
    (400, body("invalid_request_error"), "invalid_request_error"),
    (401, body("authentication_error"), "authentication_error"),
    (402, body("billing_error"), "billing_error"),
    (403, body("permission_error"), "permission_error"),
    (404, body("not_found_error"), "not_found_error"),
    (408, b"", "timeout_error"),
    (409, b"", "conflict_error"),
    (413, body("request_too_large"), "request_too_large"),
    (429, body("rate_limit_error"), "rate_limit_error"),
    (429, b"slow down", "rate_limit_error"),
    (500, body("api_error"), "api_error"),
    (502, b"<html><h1>Bad Gateway</h1></html>", "api_error"),
    (504, b"", "timeout_error"),
    (529, body("overloaded_error"), "overloaded_error"),
    (529, b'{"error": "busy"}', "overloaded_error"),
    (400, body("<nil>"), "invalid_request_error"),
    (418, b'{"message": "teapot"}', "invalid_request_error"),
    (500, b'{"error": {"type": 5, "message": ["x"]}}', "api_error"),
    (500, b"[" * 50_000, "api_error"),
    (400, body("some_new_error"), "some_new_error"),
])
def test_a_status_and_an_error_type(status: int, raw: bytes, kind: str, server: Any, wire: Any) -> None:
    server.queue(wire.Answer(raw, status=status, headers={"content-type": "application/json"}))
    error = failed()
    assert type(error) is ModelError
    assert (error.status, error.kind, error.should_retry) == (status, kind, None)
    assert error.message


def test_message_and_request_id_are_kept(server: Any, wire: Any) -> None:
    server.queue(wire.Answer(body("api_error", "out of order"), status=500, headers={"request-id": "req_head"}),
                 wire.Answer(body("api_error", "out of order"), status=500, headers={}))
    assert (failed().message, len(server.requests)) == ("out of order", 1)
    assert failed().request_id == "req_body"


@pytest.mark.parametrize(("headers", "wait"), [
    ({}, None),
    ({"retry-after": "7"}, 7.0),
    ({"retry-after": "0.5"}, 0.5),
    ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
    ({"retry-after": "7", "retry-after-ms": "soon"}, 7.0),
    ({"retry-after": "-1"}, None),
    ({"retry-after": "inf"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "tomorrow"}, None),
    ({"retry-after": "Mon, 99 Foo 2026 99:99:99 GMT"}, None),
    ({"retry-after": "Fri, 01 Jan 1999 00:00:00 GMT"}, 0.0),
])
def test_how_long_the_server_asks_to_wait(headers: dict[str, str], wait: float | None) -> None:
    assert errors.retry_after(headers) == wait


def test_a_date_to_wait_for_becomes_seconds() -> None:
    import time

    wait = errors.retry_after({"retry-after": formatdate(time.time() + 30, usegmt=True)})
    assert wait is not None and 25 < wait <= 30


@pytest.mark.parametrize(("said", "should"), [("true", True), ("false", False), ("", None), ("maybe", None)])
def test_the_server_s_word_on_retrying(said: str, should: bool | None, server: Any, wire: Any) -> None:
    server.queue(wire.Answer(body("api_error"), status=500, headers={"x-should-retry": said}))
    assert failed().should_retry is should


def test_a_spent_limit_is_not_worth_waiting_for(server: Any, wire: Any) -> None:
    spent = body("rate_limit_error", details={"error_code": "contract_spend_limit_reached"})
    server.queue(wire.Answer(spent, status=429, headers={}))
    assert failed().should_retry is False


@pytest.mark.parametrize(("answer", "shown"), [
    ({"body": b"<html>Please log in to the hotel's network</html>", "headers": {"content-type": "text/html"}}, "hotel"),
    ({"body": b'{"ok": true}', "headers": {"content-type": "application/json; charset=utf-8"}}, "application/json"),
    ({"body": b"", "headers": {"content-type": "application/json"}}, "an empty body"),
    ({"body": b"hello", "headers": {}}, "content without a type"),
    ({"body": b"", "status": 204, "headers": {}}, "an empty body"),
    ({"body": b"", "headers": {"content-type": "text/event-stream"}}, "a stream without an event"),
    ({"body": b": only a comment\n\n", "headers": {"content-type": "text/event-stream"}}, "a stream without an event"),
])
def test_an_answer_that_is_none_of_a_model_says_what_came(answer: dict[str, Any], shown: str, server: Any, wire: Any) -> None:
    server.queue(wire.Answer(**answer))
    error = failed()
    assert error.kind == "not_a_model_response" and error.should_retry is False and shown in error.message


def test_a_redirect_is_not_followed_with_the_key(server: Any, wire: Any) -> None:
    server.queue(wire.Answer(b"", status=307, headers={"location": f"{server.url}/elsewhere"}))
    error = failed()
    assert (error.status, error.kind, error.should_retry) == (307, "not_a_model_response", False)
    assert len(server.requests) == 1


def test_a_key_that_the_answer_echoes_is_blacked_out(server: Any, wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Team: team-secret")
    echo = "sk-test-key-123456 team-secret"
    server.queue(wire.Answer(body("authentication_error", f"bad key {echo}"), status=401, headers={}),
                 wire.Answer(echo.encode(), headers={"content-type": "text/plain"}),
                 wire.Answer(echo.encode(), status=500, headers={}),
                 wire.sse({"type": "error", "error": {"type": "api_error", "message": echo}}),
                 wire.sse(echo))
    for _ in range(5):
        error = failed()
        assert "[redacted]" in error.message
        assert "123456" not in str(error) and "team-secret" not in str(error)


def test_a_huge_error_body_is_read_in_part(server: Any, wire: Any) -> None:
    server.queue(wire.Answer(b"x" * 5_000_000, status=500, headers={}))
    assert len(failed().message) <= 2000


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{closed.server_address[1]}")
    error = failed()
    assert type(error) is ModelError
    assert (error.kind, error.status, error.should_retry) == ("connection_error", None, None)
    assert "cannot connect to 127.0.0.1" in error.message


def test_a_server_that_never_answers_is_given_up(server: Any, wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TIMEOUT_MS", "100")
    server.queue(wire.Answer(silent_head=True))
    error = failed()
    assert type(error) is ModelError and (error.kind, error.should_retry) == ("timeout_error", None)


# -- failures after the first event --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("kind", "status"), [("overloaded_error", 529), ("api_error", 500), ("rate_limit_error", 429),
                                              ("invalid_request_error", 400), ("unheard_of_error", None)])
def test_an_error_event_is_a_failed_request_of_its_type(kind: str, status: int | None, server: Any, wire: Any) -> None:
    event = {"type": "error", "error": {"type": kind, "message": "why"}, "request_id": "req_9"}
    server.queue(wire.sse(START, event, STOP), wire.sse(event))
    got, error = ask()
    assert got == [START] and type(error) is StreamError
    assert (error.kind, error.status, error.message, error.request_id) == (kind, status, "why", "req_9")
    got, error = ask()
    assert got == [] and type(error) is ModelError and error.kind == kind


@pytest.mark.parametrize("data", ["overloaded", '{"error": "overloaded"}', '{"message": "overloaded"}'])
def test_an_error_event_of_another_shape_is_one_all_the_same(data: str, server: Any, wire: Any) -> None:
    server.queue(wire.sse(START) + f"event: error\ndata: {data}\n\n".encode())
    error = failed()
    assert type(error) is StreamError and error.kind == "api_error" and error.message == "overloaded"


def test_a_broken_connection_is_a_stream_error_and_the_next_request_gets_a_new_one(server: Any, wire: Any) -> None:
    server.queue(wire.sse(START, STOP), wire.Answer(wire.sse(START, TEXT), ending="reset"), wire.sse(START, STOP))
    provider = Anthropic()

    async def main() -> ModelError:
        assert [e async for e in provider.stream(REQUEST)] == [START, STOP]
        with pytest.raises(StreamError) as caught:
            async for _ in provider.stream(REQUEST):
                pass
        assert [e async for e in provider.stream(REQUEST)] == [START, STOP]
        await provider.aclose()
        return caught.value
    error = anyio.run(main)
    assert (error.kind, error.status, error.should_retry) == ("connection_error", None, None)
    first, second, third = (sent.peer for sent in server.requests)
    assert first == second != third


def test_other_requests_survive_when_one_connection_breaks(server: Any, wire: Any) -> None:
    """The client is replaced for new requests only."""
    server.queue(wire.Answer(wire.sse(START), ending="hang"), wire.Answer(wire.sse(START), ending="reset"),
                 wire.sse(START, STOP))

    async def main() -> list[StreamEvent]:
        provider = Anthropic()
        waiting = provider.stream(REQUEST)
        first = [await anext(waiting)]
        with pytest.raises(StreamError):
            async for _ in provider.stream(REQUEST):
                pass
        assert [e async for e in provider.stream(REQUEST)] == [START, STOP]
        assert not server.gone.is_set()
        await waiting.aclose()
        await provider.aclose()
        return first
    assert anyio.run(main) == [START]


def test_silence_ends_a_stream(server: Any, wire: Any) -> None:
    server.queue(wire.Answer(wire.sse(START), ending="hang"))
    got, error = ask(provider=Anthropic(silence_s=0.1))
    assert got == [START] and type(error) is StreamError and error.kind == "timeout_error"


def test_a_cancelled_request_closes_its_connection(server: Any, wire: Any) -> None:
    server.queue(wire.Answer(wire.sse(START), ending="hang"))

    async def main() -> None:
        provider = Anthropic()
        with anyio.CancelScope() as scope:
            async for _ in provider.stream(REQUEST):
                scope.cancel()
        await provider.aclose()
    anyio.run(main)
    assert server.gone.wait(10)


@pytest.mark.parametrize(("variable", "value", "seconds"), [
    ("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "", 300), ("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "1000", 300),
    ("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "600000", 600), ("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "99999999", 1800),
    ("CLAUDE_STREAM_IDLE_TIMEOUT_MS", "nonsense", 300), ("API_TIMEOUT_MS", "", 600), ("API_TIMEOUT_MS", "1500", 1.5),
    ("API_TIMEOUT_MS", "0", 600),
])
def test_time_limits(variable: str, value: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    assert (silence_seconds if "IDLE" in variable else answer_seconds)() == seconds


# -- proxies and TLS -----------------------------------------------------------------------------------------------------------
def test_a_proxy_of_the_environment_is_used(server: Any, wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://models.invalid")
    server.queue(wire.sse(START, STOP))
    assert ask() == ([START, STOP], None)
    assert server.requests[0].path == "http://models.invalid/v1/messages"


def test_no_proxy_is_used_where_the_environment_says_so(server: Any, wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server.queue(wire.sse(START, STOP))
    assert ask() == ([START, STOP], None)


def test_a_proxy_that_cannot_be_used_is_said_without_its_password(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://me:proxy-password@proxy")
    error = failed()
    assert error.should_retry is False and "HTTP_PROXY" in error.hint and "proxy-password" not in str(error)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that no authority has signed, with its key."""
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificate")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(path), "-out", f"{path}.crt",
                    "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
                   check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


@pytest.fixture
def tls_server(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b'data: {"type": "message_stop"}\n\n')

        def log_message(self, *args: Any) -> None:
            pass

    class Quiet(HTTPServer):
        def handle_error(self, *args: Any) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Quiet(("127.0.0.1", 0), Handler) as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"https://localhost:{running.server_address[1]}")
        yield running
        running.shutdown()


def test_a_certificate_that_nobody_vouches_for_is_refused_and_not_retried(tls_server: Any) -> None:
    error = failed()
    assert (error.kind, error.should_retry) == ("connection_error", False)
    assert "no secure connection to localhost" in error.message and "SSL_CERT_FILE" in error.hint


def test_a_certificate_that_the_person_trusts_is_accepted(tls_server: Any, certificate: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    assert ask() == ([STOP], None)


def test_tls_to_a_plain_port_is_no_secure_connection(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url.replace("http:", "https:"))
    error = failed()
    assert error.kind == "connection_error" and error.status is None


def test_the_context_of_plain_addresses_trusts_nobody() -> None:
    from kernel_model_anthropic.connection import _trust_nobody

    context = _trust_nobody()
    assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname and not context.get_ca_certs()
