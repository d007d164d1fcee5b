"""A scripted web server for tests: MCP over HTTP and SSE, with an authorization server beside it. Loaded by path."""

from __future__ import annotations

import base64
import hashlib
import json
import queue
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class Web:
    """Start with ``with Web() as web``. Attributes are read at each request, so that a test can change them.

    ``token``: the access token that is wanted (``None``: no login). ``failing``: statuses of the next POST requests.
    ``scopes``, ``requests``, ``registered``, ``granted`` tell what came.
    """

    def __init__(self, port: int = 0) -> None:
        self.token: str | None = None
        self.failing: list[int] = []
        self.sessions: set[str] = set()
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.registered: list[dict[str, Any]] = []
        self.granted: list[dict[str, str]] = []
        self.authorized: list[dict[str, str]] = []
        self.refresh = "refresh-0"
        self.lifetime = 3600
        self.size = 0
        self.hold_s = 0.0
        self.header = ""
        self.streams: list[queue.Queue[str]] = []
        self._codes: dict[str, str] = {}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"  # a connection for each request: none outlives the server

            def log_message(self, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                owner.post(self)

            def do_GET(self) -> None:
                owner.get(self)

            def do_DELETE(self) -> None:
                answer(self, 200, {})

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.origin}/mcp"

    def __enter__(self) -> Web:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        for stream in self.streams:
            stream.put("")
        self._server.shutdown()
        self._server.server_close()

    def methods(self) -> list[str]:
        return [message.get("method", "") for _, message, _ in self.requests]

    # -- MCP -----------------------------------------------------------------------------------------------------------
    def post(self, handler: Any) -> Any:
        body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        path = urlsplit(handler.path).path
        if path == "/token":
            return self.token_endpoint(handler, {k: v[0] for k, v in parse_qs(body.decode()).items()})
        if path == "/register":
            self.registered.append(json.loads(body))
            return answer(handler, 201, {**self.registered[-1], "client_id": f"client-{len(self.registered)}"})
        message = json.loads(body)
        self.requests.append((path, message, {k.lower(): v for k, v in handler.headers.items()}))
        if self.failing:
            return answer(handler, self.failing.pop(0), {"error": "down"})
        given = handler.headers.get("Authorization")
        if (self.token is not None and given != f"Bearer {self.token}") or (
            self.header and handler.headers.get("X-Key") != self.header
        ):
            where = f'Bearer resource_metadata="{self.origin}/.well-known/oauth-protected-resource/mcp"'
            return answer(handler, 401, {}, {"WWW-Authenticate": where})
        if path == "/messages":
            reply = self.answer(message)
            if reply is not None:
                self.streams[-1].put(f"event: message\ndata: {json.dumps(reply)}\n\n")
            return answer(handler, 202, None)
        session = handler.headers.get("Mcp-Session-Id")
        if message["method"] not in ("initialize", "server/discover") and session not in self.sessions:
            return answer(handler, 404, {})
        time.sleep(self.hold_s)
        reply = self.answer(message)
        headers = {}
        if message["method"] == "initialize":
            self.sessions.add(secrets.token_hex(8))
            headers = {"Mcp-Session-Id": list(self.sessions)[-1]}
            self.sessions = {headers["Mcp-Session-Id"]}
        return answer(handler, 202 if reply is None else 200, reply, headers)

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        method = message["method"]
        if "id" not in message:
            return None
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "work", "description": "Works.", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "x" * self.size or "done"}]},
        }
        if method in results:
            return {"jsonrpc": "2.0", "id": message["id"], "result": results[method]}
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}}

    def get(self, handler: Any) -> Any:
        path, query = urlsplit(handler.path).path, urlsplit(handler.path).query
        if path == "/sse":
            return self.stream(handler)
        if path == "/.well-known/oauth-protected-resource/mcp":
            return answer(
                handler, 200, {"resource": self.url, "authorization_servers": [self.origin], "scopes_supported": ["read"]}
            )
        if path == "/.well-known/oauth-authorization-server":
            return answer(
                handler,
                200,
                {
                    "issuer": self.origin,
                    "authorization_endpoint": f"{self.origin}/authorize",
                    "token_endpoint": f"{self.origin}/token",
                    "registration_endpoint": f"{self.origin}/register",
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
                },
            )
        if path == "/authorize":
            given = {k: v[0] for k, v in parse_qs(query).items()}
            self.authorized.append(given)
            code = secrets.token_hex(8)
            self._codes[code] = given["code_challenge"]
            return answer(handler, 302, None, {"Location": f"{given['redirect_uri']}?code={code}&state={given['state']}"})
        return answer(handler, 405 if path == "/mcp" else 404, {})

    def stream(self, handler: Any) -> None:
        """The old transport: an address to post to, then messages."""
        mine: queue.Queue[str] = queue.Queue()
        self.streams.append(mine)
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.end_headers()
        text = "event: endpoint\ndata: /messages\n\n"
        while text:
            handler.wfile.write(text.encode())
            handler.wfile.flush()
            text = mine.get()
        handler.close_connection = True

    # -- logins --------------------------------------------------------------------------------------------------------
    def token_endpoint(self, handler: Any, given: dict[str, str]) -> Any:
        self.granted.append(given)
        if given["grant_type"] == "authorization_code":
            digest = base64.urlsafe_b64encode(hashlib.sha256(given["code_verifier"].encode()).digest()).decode().rstrip("=")
            if self._codes.pop(given["code"], None) != digest:
                return answer(handler, 400, {"error": "invalid_grant"})
        elif given.get("refresh_token") != self.refresh:
            return answer(handler, 400, {"error": "invalid_grant"})
        self.token = f"token-{len(self.granted)}"
        self.refresh = f"refresh-{len(self.granted)}"
        return answer(
            handler,
            200,
            {"access_token": self.token, "token_type": "Bearer", "expires_in": self.lifetime, "refresh_token": self.refresh},
        )


def answer(handler: Any, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
    data = b"" if body is None else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    try:
        handler.wfile.write(data)
    except OSError:
        handler.close_connection = True
