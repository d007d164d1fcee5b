"""The local server: static files for everybody, the session's data for whoever has the token.

Loopback only, GET only. The token travels behind the ``#`` of the address, which browsers send to nobody; the page puts it into
a header. So no other page, no other port of this machine and no name that was pointed at it gets at the data.
"""

from __future__ import annotations

import hmac
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kernel_inspector import views
from kernel_inspector.details import details
from kernel_inspector.model import SessionModel, encoded
from kernel_inspector.search import search

ASSETS = {"/": ("index.html", "text/html"), "/style.css": ("style.css", "text/css"), "/icon.svg": ("icon.svg", "image/svg+xml"),
          **{f"/{name}.js": (f"{name}.js", "text/javascript") for name in ("app", "data", "dom", "list", "detail", "charts")}}
CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
       "form-action 'none'; frame-ancestors 'none'")
HEADERS = {"Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
           "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
           "Cross-Origin-Opener-Policy": "same-origin"}
POLL_S = 0.3
BEAT_S = 15.0
MOST_WATCHERS = 32
MOST_CONNECTIONS = 64
FIRST_S = 8.0
"""A connection must have shown the token within this time."""
LONGEST_QUERY = 1_000
Query = Callable[..., Any]


class Inspection(ThreadingHTTPServer):
    """Serves one session. ``url``: the address with the token."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, model: SessionModel, port: int = 0) -> None:
        self.model = model
        self.token = secrets.token_urlsafe(24)
        self.lock = threading.Lock()
        self.changed = threading.Condition()
        self.closing = False
        self.watchers = 0
        self._places = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(("127.0.0.1", port), Handler)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/#{self.token}"

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error of ours; anything else is said in one line."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"kernel inspect: a request failed: {type(error).__name__}: {error}", file=sys.stderr)

    def watch(self) -> None:
        """Read what the session writes until ``stop``."""
        while not self.closing:
            with self.lock:
                try:
                    changed = self.model.poll()
                except Exception as error:
                    text = f"{type(error).__name__}: {error}"[:500]
                    changed, self.model.fault = text != self.model.fault, text
                    self.model.version += changed
            if changed:
                with self.changed:
                    self.changed.notify_all()
            threading.Event().wait(POLL_S)

    def stop(self) -> None:
        self.closing = True
        with self.changed:
            self.changed.notify_all()
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: Inspection
    protocol_version = "HTTP/1.1"
    server_version = "kernel-inspect"
    sys_version = ""
    timeout = 30

    def setup(self) -> None:
        super().setup()
        self._patience = threading.Timer(FIRST_S, self._hang_up)
        self._patience.daemon = True
        self._patience.start()

    def finish(self) -> None:
        self._patience.cancel()
        super().finish()

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.headers.get("Host") not in self.server.hosts:
            return self._send(403, b"not under this name\n", "text/plain")
        try:
            address = urlsplit(self.path)
        except ValueError:
            return self._send(400, b"the address cannot be read\n", "text/plain")
        if address.path in ASSETS:  # also by a link from elsewhere: they hold no data
            name, kind = ASSETS[address.path]
            return self._send(200, asset(name), f"{kind}; charset=utf-8")
        if self.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
            return self._send(403, b"not for other pages\n", "text/plain")
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        if not hmac.compare_digest(given, f"Bearer {self.server.token}".encode()):
            return self._send(401, b"the address that kernel inspect printed has a token behind the #\n", "text/plain")
        self._patience.cancel()
        if address.path == "/api/watch":
            return self._watch()
        answer = ANSWERS.get(address.path)
        if answer is None:
            return self._send(404, b"there is no such page\n", "text/plain")
        try:
            query = {k: v[-1][:LONGEST_QUERY] for k, v in parse_qs(address.query, max_num_fields=20).items()}
            with self.server.lock:
                found = answer(self.server.model, query)
        except (ValueError, KeyError) as error:
            return self._send(400, f"{type(error).__name__}: {error}\n".encode(), "text/plain")
        return self._send(200, encoded(found), "application/json")

    def _only_get(self) -> None:
        self.close_connection = True
        self._send(405, b"GET only\n", "text/plain", Allow="GET")

    do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = _only_get

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the base class answers to requests that it cannot read: without its page."""
        self.close_connection = True
        self._send(code, f"{code}\n".encode(), "text/plain")

    def _send(self, code: int, body: bytes, kind: str, **more: str) -> None:
        self.send_response(code)
        for name, value in {**HEADERS, **more, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _watch(self) -> None:
        """Server-sent events: the session's version, each time it is another one."""
        server = self.server
        if server.watchers >= MOST_WATCHERS:
            return self._send(503, b"too many pages are open\n", "text/plain")
        server.watchers += 1
        self.close_connection = True
        try:
            self.send_response(200)
            for name, value in {**HEADERS, "Content-Type": "text/event-stream", "Connection": "close"}.items():
                self.send_header(name, value)
            self.end_headers()
            last: tuple[Any, ...] = ()
            while not server.closing:
                now = (server.model.version, server.model.running, server.model.gone)
                if now != last:
                    self.wfile.write(b"data: %d\n\n" % now[0])
                else:
                    self.wfile.write(b":\n\n")
                self.wfile.flush()
                last = now
                with server.changed:
                    server.changed.wait(BEAT_S if now[1] is False else 2.0)
        finally:
            server.watchers -= 1
        return None


def asset(name: str) -> bytes:
    return (files("kernel_inspector") / "page" / name).read_bytes()


def _lane(model: SessionModel, query: dict[str, str]) -> Any:
    return model.lanes[query.get("lane", "")]


ANSWERS: dict[str, Query] = {
    "/api/session": lambda model, query: views.summary(model),
    "/api/rows": lambda model, query: views.rows(_lane(model, query), int(query.get("first", 0)), int(query.get("many", 200))),
    "/api/turns": lambda model, query: views.turns(_lane(model, query)),
    "/api/requests": lambda model, query: views.requests(_lane(model, query), int(query.get("columns", views.MOST_COLUMNS))),
    "/api/spans": lambda model, query: views.spans(model, _lane(model, query), int(query.get("turn", 0))),
    "/api/details": lambda model, query: details(model, _lane(model, query), int(query.get("row", 0)), full="full" in query),
    "/api/search": lambda model, query: search(model, query.get("q", "")),
}


def serve(model: SessionModel, port: int, *, open_browser: bool) -> int:
    """Until Ctrl-C or SIGTERM. The address is printed on stdout."""
    try:
        server = Inspection(model, port)
    except (OSError, OverflowError) as error:
        print(f"kernel inspect: port {port} cannot be used: {error}; --port 0 takes a free one", file=sys.stderr)
        return 1
    threading.Thread(target=server.watch, daemon=True).start()
    threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True).start()
    print(server.url, flush=True)
    title = "".join(c if c.isprintable() else "?" for c in model.title[:80])
    print(f"The session {title or model.id} is shown at this address until Ctrl-C.", file=sys.stderr)
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    opened = _open(server.url) if open_browser else None
    try:
        over.wait()
    finally:
        server.stop()
        if opened is not None:
            opened()
    return 0


def _open(url: str) -> Callable[[], None] | None:
    """Show the address in the person's browser, where there is a desktop. What is returned cleans up."""
    import os
    import webbrowser

    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin"):
        return None
    page = leading_page(url)
    webbrowser.open(page.as_uri())
    return lambda: page.unlink(missing_ok=True)


def leading_page(url: str) -> Path:
    """A private file that leads to the address: other people of the machine see the arguments of a browser's process."""
    import os
    import tempfile

    handle, name = tempfile.mkstemp(prefix="kernel-inspect-", suffix=".html")
    with os.fdopen(handle, "w") as page:
        page.write('<!doctype html><meta name="referrer" content="no-referrer">'
                   f'<meta http-equiv="refresh" content="0; url={url}">')
    return Path(name)
