"""Who gets at the data of a session, and who does not."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_inspector import serving
from kernel_inspector.model import SessionModel
from kernel_inspector.serving import ASSETS, MOST_CONNECTIONS, Inspection

ENTRY = {
    "type": "user",
    "uuid": "u1",
    "parentUuid": None,
    "sessionId": "s",
    "timestamp": "2026-01-02T03:04:05.678Z",
    "isSidechain": False,
    "message": {"role": "user", "content": "what is secret?"},
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Inspection]:
    path = tmp_path / "projects" / "p" / "3f0c1f7e-0000-4000-8000-000000000000.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(ENTRY) + "\n")
    model = SessionModel(path)
    model.poll()
    made = Inspection(model)
    threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True).start()
    yield made
    made.stop()


def ask(server: Inspection, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    given = {"Authorization": f"Bearer {server.token}", **{k.replace("_", "-"): v for k, v in headers.items()}}
    link.request(method, path, headers={k: v for k, v in given.items() if v})
    answer = link.getresponse()
    body = answer.read()
    link.close()
    return answer.status, dict(answer.getheaders()), body


def test_the_data_is_there_for_whoever_has_the_token(server: Inspection) -> None:
    code, headers, body = ask(server, "/api/session")
    assert code == 200 and json.loads(body)["title"] == "what is secret?"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'") and headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers and headers["Cache-Control"] == "no-store"
    assert server.server_address[0] == "127.0.0.1" and server.url.endswith(f"/#{server.token}")


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": ""},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Bearer \xe4"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "localhost:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
    ],
)
@pytest.mark.parametrize(
    "path", ["/api/session", "/api/rows?lane=&first=0", "/api/details?row=0", "/api/search?q=secret", "/api/watch"]
)
def test_nobody_else_gets_it(server: Inspection, headers: dict[str, str], path: str) -> None:
    """No token, a wrong one, a name that was pointed at this machine (DNS rebinding), another page."""
    code, _, body = ask(server, path, **headers)
    assert code in (401, 403) and b"secret" not in body


@pytest.mark.parametrize(
    "path",
    [
        "/../secret",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/etc/passwd",
        "/page/app.js",
        "/api/",
        "/api/../api/session",
        "//evil.example/",
        "/app.js/../../log.py",
        "/api/session/",
    ],
)
def test_there_are_no_other_paths(server: Inspection, path: str) -> None:
    assert ask(server, path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_only_get(server: Inspection, method: str) -> None:
    code, headers, _ = ask(server, "/api/session", method)
    assert code == 405 and headers["Allow"] == "GET"


@pytest.mark.parametrize(
    "path",
    [
        "/api/rows?lane=none",
        "/api/rows?lane=&first=x",
        "/api/details?row=1e9",
        "/api/spans?turn=&lane=",
        "/api/rows?" + "a=1&" * 50,
    ],
)
def test_nonsense_is_refused_in_words(server: Inspection, path: str) -> None:
    code, _, body = ask(server, path)
    assert code in (200, 400) and b"Traceback" not in body


@pytest.mark.parametrize("number", ["-1", "999999999999", "5"])
def test_numbers_outside_are_answered_with_nothing(server: Inspection, number: str) -> None:
    assert json.loads(ask(server, f"/api/details?row={number}")[2])["row"] is None
    assert json.loads(ask(server, f"/api/rows?first={number}&many=99999999")[2])["total"] == 1
    assert json.loads(ask(server, f"/api/spans?turn={number}")[2])["spans"] == []


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"\x00\xff\xfe\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: " + b"h" * 70_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_request_ends_its_connection_and_nothing_else(server: Inspection, raw: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as link:
        try:
            link.sendall(raw)
            answer = link.recv(1000)
        except ConnectionError:
            answer = b""
    assert b" 200 " not in answer.split(b"\r\n")[0]
    assert ask(server, "/api/session")[0] == 200


def test_static_files_need_no_token_and_hold_no_data(server: Inspection) -> None:
    for path in ASSETS:
        code, headers, body = ask(server, path, Authorization="")
        assert code == 200 and b"secret" not in body and "'unsafe" not in headers["Content-Security-Policy"]
    assert b"innerHTML" not in b"".join(ask(server, path)[2] for path in ASSETS)


def test_idle_connections_are_bounded(server: Inspection) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.server_port), timeout=10) for _ in range(MOST_CONNECTIONS + 8)]
    refused = 0
    for link in idle[-8:]:
        link.settimeout(5)
        try:
            refused += link.recv(1) == b""
        except OSError:
            refused += 1
    for link in idle:
        link.close()
    assert refused == 8
    for _ in range(100):
        try:
            assert ask(server, "/api/session")[0] == 200
            break
        except (ConnectionError, http.client.HTTPException):
            threading.Event().wait(0.05)
    else:
        pytest.fail("no place became free")


def test_an_address_that_cannot_be_read_is_answered(server: Inspection) -> None:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=10) as link:
        link.sendall(f"GET http://[::1 HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
        assert b" 400 " in link.recv(1000).split(b"\r\n")[0]


def test_who_shows_no_token_keeps_no_place(server: Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "FIRST_S", 0.5)
    kept = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)

    def status() -> int:
        kept.request("GET", "/api/session", headers={"Authorization": f"Bearer {server.token}"})
        answer = kept.getresponse()
        answer.read()
        return answer.status

    assert status() == 200
    was = kept.sock
    idle = [socket.create_connection(("127.0.0.1", server.server_port), timeout=10) for _ in range(3)]
    idle[1].sendall(b"GET / HT")
    for link in idle:
        assert link.recv(1) == b""
        link.close()
    assert status() == 200 and kept.sock is was, "who has the token stays"
    kept.close()


def test_a_fault_while_reading_is_told_and_the_watch_goes_on(server: Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    fail, poll = threading.Event(), server.model.poll

    def once() -> bool:
        if not fail.is_set():
            fail.set()
            raise RuntimeError("odd")
        return poll()

    monkeypatch.setattr(server.model, "poll", once)
    threading.Thread(target=server.watch, daemon=True).start()
    assert fail.wait(10)
    with server.model.path.open("a") as file:
        file.write(json.dumps({"type": []}) + "\n" + json.dumps({**ENTRY, "uuid": "u2", "parentUuid": "u1"}) + "\n")
    for _ in range(200):
        got = json.loads(ask(server, "/api/session")[2])
        if got["totals"]["turns"] == 2:
            break
        threading.Event().wait(0.05)
    assert (got["totals"]["turns"], got["damaged"], got["fault"]) == (2, 1, "RuntimeError: odd")


def test_the_watcher_is_told_of_a_change(server: Inspection) -> None:
    threading.Thread(target=server.watch, daemon=True).start()
    link = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    link.request("GET", "/api/watch", headers={"Authorization": f"Bearer {server.token}"})
    answer: Any = link.getresponse()
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"

    def next_event() -> str:
        while True:
            line = answer.readline().decode()
            assert line, "the stream ended"
            if line.startswith("data:"):
                return str(line)

    first = next_event()
    with server.model.path.open("a") as file:
        file.write(json.dumps({**ENTRY, "uuid": "u2", "parentUuid": "u1"}) + "\n")
    assert next_event() != first
    link.close()
    assert json.loads(ask(server, "/api/session")[2])["totals"]["turns"] == 2
