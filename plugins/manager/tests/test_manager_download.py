"""Archives over https, from a server with a certificate of its own: pins, redirects, credentials, addresses."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import shutil
import socket
import ssl
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_manager import downloads
from kernel_manager.errors import ManagerError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate with")
HOST = "plugins.test"


def archive(name: str, version: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(f"{name}/.claude-plugin/plugin.json", json.dumps({"name": name, "version": version}))
    return out.getvalue()


class Server:
    def __init__(self, folder: Path) -> None:
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.seen: list[tuple[str, dict[str, str]]] = []
        key, cert = folder / "key.pem", folder / "cert.pem"
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(cert),
                   "-days", "2", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST},DNS:other.test"]
        subprocess.run(command, check=True, capture_output=True)
        self.cert, outer = cert, self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.seen.append((self.path, dict(self.headers)))
                code, headers, body = outer.answers.get(self.path, (404, {}, b""))
                self.send_response(code)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://{HOST}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server under two names of its own; only for those this machine's address counts as far away."""
    made = Server(tmp_path)
    real, near = socket.getaddrinfo, downloads.is_near
    ours = (HOST, "other.test")
    asked: list[str] = []

    def resolve(host: Any, *args: Any, **more: Any) -> Any:
        asked.append(host)
        return real("127.0.0.1" if host in ours else host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(downloads, "is_near", lambda address: near(address) and bool(asked) and asked[-1] not in ours)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.cert))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_an_archive_of_a_marketplace(world: Any, server: Server) -> None:
    good = archive("fmt", "1.0.0")
    server.answers["/fmt.zip"] = (200, {}, good)
    entry = {"source": {"source": "archive", "url": f"{server.url}/fmt.zip", "sha256": hashlib.sha256(good).hexdigest()}}
    market = {"fmt": {"entry": entry}}
    world.ok("marketplace", "add", world.market("acme", market))
    world.ok("install", "fmt@acme")
    assert world.versions() == {"fmt@acme": "1.0.0"}
    server.answers["/fmt.zip"] = (200, {}, archive("fmt", "6.6.6"))
    world.refused("pin-mismatch", "update", "fmt")
    world.refused("pin-mismatch", "install", f"{server.url}/fmt.zip#sha256={'0' * 64}")


def test_a_catalogue_of_which_there_is_only_the_file(world: Any, server: Server) -> None:
    data = {"name": "acme", "owner": {"name": "o"}, "plugins": [{"name": "near", "source": "./near"},
                                                                {"name": "far", "source": {"source": "archive",
                                                                                           "url": f"{server.url}/far.zip"}}]}
    server.answers |= {"/m.json": (200, {}, json.dumps(data).encode()), "/far.zip": (200, {}, archive("far", "2.0.0"))}
    world.ok("marketplace", "add", f"{server.url}/m.json")
    world.ok("install", "far@acme")
    assert world.versions() == {"far@acme": "2.0.0"}
    world.refused("not-found", "install", "near@acme")
    server.answers["/m.json"] = (500, {}, b"")
    assert world.run("marketplace", "update").code == 1
    assert len(json.loads(world.ok("search", "", "--json").out)) == 2, "the last catalogue counts"


@pytest.mark.parametrize(("to", "type"), [
    ("https://127.0.0.1/x.zip", "unsafe-url"), ("https://169.254.169.254/x", "unsafe-url"), ("https://localhost/x", "unsafe-url"),
    ("http://plugins.test/x.zip", "unsafe-url"), ("https://[::1]/x", "unsafe-url"),
    ("file:///etc/passwd", "fetch-failed or unsafe-url")])
def test_a_redirect_to_where_nothing_is_fetched_from(world: Any, server: Server, to: str, type: str) -> None:
    server.answers["/x.zip"] = (302, {"Location": to}, b"")
    world.refused(type, "install", f"{server.url}/x.zip")
    assert [path for path, _ in server.seen] == ["/x.zip"]


def test_credentials_stay_with_their_host(server: Server, tmp_path: Path) -> None:
    other = server.url.replace(HOST, "other.test")
    server.answers |= {"/a": (302, {"Location": "/b"}, b""), "/b": (302, {"Location": f"{other}/c"}, b""), "/c": (200, {}, b"x")}
    downloads.download(f"{server.url}/a", tmp_path / "x", headers={"Authorization": "Bearer hunter2", "X-Token": "hunter2"})
    told = {path: "hunter2" in str(headers) for path, headers in server.seen}
    assert told == {"/a": True, "/b": True, "/c": False}


def test_limits_and_certificates(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers["/x"] = (200, {}, b"x" * 2000)
    with pytest.raises(ManagerError) as error:
        downloads.download(f"{server.url}/x", tmp_path / "x", limit=1000)
    assert error.value.type == "unsafe-archive"
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(ManagerError) as error:
        downloads.download(f"{server.url}/x", tmp_path / "x")
    assert error.value.type == "fetch-failed"


def test_a_name_that_answers_differently_the_second_time(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["93.184.216.34", "127.0.0.1", "127.0.0.1"])
    real = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *a,
                        **k: real(next(answers) if host == "rebind.test" else host, *a, **k))
    with pytest.raises(ManagerError) as error:
        downloads.download(f"https://rebind.test:{server.server.server_port}/x", tmp_path / "x")
    assert error.value.type == "unsafe-url" and server.seen == []
