"""A real HTTP server that answers what a test queued, and remembers what it was sent."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class Answer:
    """``ending``: ``clean``, ``reset`` (the connection is broken) or ``hang`` (nothing more comes, until the test ends)."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    ending: str = "clean"
    pieces: int = 0
    silent_head: bool = False


@dataclass
class Sent:
    path: str
    headers: dict[str, str]
    raw: bytes
    peer: int

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


def sse(*events: dict[str, Any] | str, end: str = "\n") -> bytes:
    """Events on the wire, named as the API names them."""
    out = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        name = event.get("type", "x") if isinstance(event, dict) else "x"
        out.append(f"event: {name}{end}data: {data}{end}{end}")
    return "".join(out).encode()


class Server:
    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[Sent] = []
        self.gone = threading.Event()
        """Set when a client closed a connection that was still being answered."""
        self.stop = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                outer._post(self)

            def log_message(self, *args: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *args: Any) -> None:
                """Broken connections are part of the tests."""

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}"

    def queue(self, *answers: Answer | bytes) -> None:
        self.answers += [Answer(a) if isinstance(a, bytes) else a for a in answers]

    def _post(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        self.requests.append(Sent(handler.path, {k.lower(): v for k, v in handler.headers.items()}, raw,
                                  handler.client_address[1]))
        answer = self.answers.pop(0)
        if answer.silent_head:
            return self._hang(handler)
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            handler.send_header(name, value)
        if answer.ending == "clean":
            handler.send_header("content-length", str(len(answer.body)))
        handler.end_headers()
        size = -(-len(answer.body) // answer.pieces) if answer.pieces else len(answer.body) or 1
        for start in range(0, len(answer.body), size):
            handler.wfile.write(answer.body[start:start + size])
        if answer.ending == "reset":
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
            handler.close_connection = True
        elif answer.ending == "hang":
            self._hang(handler)
        return None

    def _hang(self, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        handler.connection.settimeout(0.02)
        while not self.stop.is_set():
            try:
                if not handler.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.gone.set()


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith(("ANTHROPIC_", "CLAUDE_", "DISABLE_PROMPT", "API_TIMEOUT", "ENABLE_PROMPT", "FORCE_PROMPT")) \
                or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The server, with the environment pointing at it."""
    running = Server()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", running.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test-key-123456")
    yield running
    running.stop.set()
    running.http.shutdown()
    running.http.server_close()


@pytest.fixture
def wire() -> Any:
    """``Answer`` and ``sse``, for tests that queue answers."""
    class Wire:
        Answer = Answer
        sse = staticmethod(sse)
    return Wire
