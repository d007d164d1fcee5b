"""A web server in this process, and sessions that may talk to it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kernel_tools_web import plugin
from kernel_tools_web.client import Client
from kernel_tools_web.fetch_tool import WebFetch

from kernel.testing import Kit, Run, call, module, text

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def own_home(kernel_home: Path) -> Path:
    """An empty home, and no proxy; the fixture puts all variables back."""
    for name in [n for n in os.environ if n.lower() in PROXIES]:
        del os.environ[name]
    return kernel_home


class Site:
    """Routes by path. A route is a body, a status with headers and body, or a function of the request handler."""

    def __init__(self) -> None:
        self.routes: dict[str, Any] = {}
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.released = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
                try:
                    site.answer(self)
                except OSError:  # the client has seen enough
                    self.close_connection = True

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda request, address: None  # type: ignore[method-assign]  # clients may leave
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def answer(self, handler: Any) -> None:
        route = self.routes.get(handler.path, (404, {"content-type": "text/plain"}, b"nothing here"))
        if callable(route):
            route(handler)
            handler.close_connection = True
            return
        status, headers, body = route if isinstance(route, tuple) else (200, {"content-type": "text/html"}, route)
        body = body.encode() if isinstance(body, str) else body
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.close()


@pytest.fixture
def kit(tmp_path: Path) -> Callable[..., Kit]:
    """(turns..., web={}, client=None) -> a kit whose settings let the local server be fetched."""
    def make(*turns: Any, web: dict[str, Any] | None = None, client: Client | None = None, hooks: dict[str, Any] | None = None,
             **more: Any) -> Kit:
        given = {"allowPrivate": ["127.0.0.1"]} if web is None else web
        tools = plugin if client is None else module(register_tools=lambda register: register(WebFetch(client)))
        return Kit(tmp_path, turns, hooks={"tools-web": tools, **(hooks or {})}, settings={"kernel": {"web": given}, "x": 1},
                   **more)

    return make


@pytest.fixture
def fetch(kit: Callable[..., Kit]) -> Callable[..., Any]:
    """(url, answer of the reading model) -> the run; ``fetched`` looks into it."""
    async def run(url: str, answer: Any = None, **more: Any) -> Run:
        reading = [text(answer)] if isinstance(answer, str) else [answer] if answer else []
        return await kit(call("WebFetch", url=url, prompt="what is it?"), *reading, text("done"), **more).run("go")

    return run


@pytest.fixture
def fetched() -> Callable[[Run], Any]:
    """The structured result of the first call, or its error text."""
    def of(run: Run) -> Any:
        results = [getattr(m, "tool_use_result", None) for m in run.outputs]
        return next(r for r in results if r is not None)

    return of
