"""The network of confined commands: none, or the proxy; with real servers and real programs."""

from __future__ import annotations

import http.server
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kernel.testing import until

pytestmark = [pytest.mark.anyio, pytest.mark.real_sandbox]
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(f"{self.path} {self.headers.get('Proxy-Authorization')} {self.headers.get('Connection')}")
        body = b"x" * 3_000_000 if self.path == "/big" else f"hello {self.path}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(str(len(data)))))
        self.end_headers()
        self.wfile.write(str(len(data)).encode())

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[http.server.ThreadingHTTPServer]:
    """A server on this machine's loopback, outside of every sandbox."""
    handler = type("One", (Handler,), {"seen": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


@needs_curl
async def test_without_allowed_domains_there_is_no_network(box: Any, server: Any) -> None:
    made = await box()
    text = await made.text(f"curl -sS http://127.0.0.1:{server.server_port}/; curl -sS http://example.com/; "
                           "cat /proc/net/dev | tail -n +3 | cut -d: -f1")
    assert "hello" not in text and text.count("curl: ") == 2
    assert [line.strip() for line in text.splitlines() if line.startswith(" ") or line.strip() == "lo"] == ["lo"]
    assert "[sandbox] Commands cannot use the network" in text and "sandbox.network.allowedDomains" in text
    assert server.RequestHandlerClass.seen == []


@needs_curl
async def test_an_allowed_host_is_reached_and_others_are_refused_by_name(box: Any, server: Any) -> None:
    made = await box({"network": {"allowedDomains": [f"localhost:{server.server_port}"]}})
    url = f"http://localhost:{server.server_port}"
    assert await made.text(f"curl -sS {url}/a?b=c") == "hello /a?b=c"
    assert await made.text(f"curl -sSp {url}/tunnel") == "hello /tunnel"
    assert await made.text(f"curl -sS {url}/big | wc -c") == "3000000"
    assert await made.text(f"head -c 2000000 /dev/zero > f; curl -sS --data-binary @f {url}/post") == "2000000"
    program = f"import urllib.request as u; print(u.urlopen('{url}/py').read().decode())"
    assert await made.text(f'python3 -c "{program}"') == "hello /py"
    refused = await made.text("curl -sS https://elsewhere.test/; curl -sS http://localhost:1/")
    assert "[sandbox] Refused: elsewhere.test:443, localhost:1." in refused and "hello" not in refused
    direct = await made.text(f"curl -sS --noproxy '*' http://127.0.0.1:{server.server_port}/direct")
    assert "hello" not in direct
    assert "None close" in server.RequestHandlerClass.seen[0]


@needs_curl
async def test_many_connections_at_once(box: Any, server: Any) -> None:
    made = await box({"network": {"allowedDomains": ["localhost"]}})
    text = await made.text(f"for i in $(seq 40); do curl -sS http://localhost:{server.server_port}/$i & done; wait")
    assert text.count("hello /") == 40


@needs_curl
async def test_denied_domains_win(box: Any, server: Any) -> None:
    made = await box({"network": {"allowedDomains": ["*"], "deniedDomains": ["localhost"]}})
    assert "[sandbox] Refused: localhost" in await made.text(f"curl -sS http://localhost:{server.server_port}/")


@needs_curl
async def test_a_wildcard_does_not_open_this_machine(box: Any, server: Any) -> None:
    """Whoever owns a name chooses its addresses, and this machine's own services trust who is on it."""
    made = await box({"network": {"allowedDomains": ["*"]}})
    text = await made.text("; ".join(f"curl -sS http://{host}:{server.server_port}/" for host in (
        "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "2130706433", "169.254.169.254")))
    assert "hello" not in text and server.RequestHandlerClass.seen == []


@needs_curl
async def test_a_server_inside_is_reached_by_its_own_command(box: Any) -> None:
    for hosts in ([], ["example.com"]):
        made = await box({"network": {"allowedDomains": hosts}})
        text = await made.text("echo served > f; python3 -m http.server 8123 --bind 127.0.0.1 > log 2>&1 & "
                               "for i in $(seq 100); do curl -s http://127.0.0.1:8123/f && break; sleep 0.05; done")
        assert text == "served"


@needs_curl
async def test_the_proxy_of_this_machine_is_used_where_there_is_one(box: Any, server: Any,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []
    listener = socket.create_server(("127.0.0.1", 0))

    def upstream() -> None:
        client, _ = listener.accept()
        asked.append(client.recv(65536))
        there = socket.create_connection(("127.0.0.1", server.server_port))
        client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        there.sendall(client.recv(65536))
        while data := there.recv(65536):
            client.sendall(data)
        client.close()

    threading.Thread(target=upstream, daemon=True).start()
    monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{listener.getsockname()[1]}")
    made = await box({"network": {"allowedDomains": ["far.test"]}})
    assert await made.text("curl -sS http://far.test/x") == "hello /x"
    assert asked[0].startswith(b"CONNECT far.test:80 HTTP/1.1\r\n") and b"Basic bWU6c2VjcmV0" in asked[0]
    listener.close()


async def test_nonsense_is_answered_and_harms_nobody(box: Any, server: Any) -> None:
    made = await box({"network": {"allowedDomains": ["localhost"]}})
    (made.work / "talk.py").write_text("""
import os, socket
for sent in (b"GARBAGE\\r\\n\\r\\n", b"GET / HTTP/1.1\\r\\n\\r\\n", b"CONNECT nowhere HTTP/1.1\\r\\n\\r\\n",
             b"CONNECT a:99999 HTTP/1.1\\r\\n\\r\\n",
             b"GET ftp://localhost/ HTTP/1.1\\r\\n\\r\\n", b"\\xff" * 100 + b"\\r\\n\\r\\n", b"A" * 200000, b"",
             b"GET http://[::1/ HTTP/1.1\\r\\n\\r\\n", b"CONNECT \\xc3\\xa4" + b"x" * 300 + b":80 HTTP/1.1\\r\\n\\r\\n"):
    with socket.create_connection(("127.0.0.1", 61080)) as s:
        try:
            s.sendall(sent); s.shutdown(socket.SHUT_WR); print(s.recv(100).split(b"\\r")[0])
        except OSError as error:
            print("closed")
""")
    lines = (await made.text("python3 talk.py")).splitlines()
    assert len(lines) == 10 and not any(" 200 " in line for line in lines)
    if shutil.which("curl"):
        assert await made.text(f"curl -sS http://localhost:{server.server_port}/still") == "hello /still"


async def test_the_proxy_lets_go_of_a_command_that_is_over(box: Any) -> None:
    made = await box({"network": {"allowedDomains": ["localhost"]}})
    await made.text("true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await made.text("true")
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before)


async def test_what_closes_unix_sockets_is_no_program_that_a_command_could_have_replaced(
        box: Any, work: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from kernel import ToolError

    (work / "python").symlink_to(sys.executable)
    made = await box({"network": {"allowedDomains": ["localhost"]}})
    command = made.session.sandbox.wrap(["true"], cwd=str(work), purpose="tool", input={"command": "true"})
    inside = command[command.index("--") + 1:]
    assert inside[0] == os.path.realpath(sys.executable), "not the link, beside which a pyvenv.cfg could stand"
    shutil.copyfile(os.path.realpath(sys.executable), work / "own")
    (work / "own").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(work / "own"))
    if os.access("/usr/bin/python3", os.X_OK):
        command = made.session.sandbox.wrap(["true"], cwd=str(work), purpose="tool", input={"command": "true"})
        assert command[command.index("--") + 1] == os.path.realpath("/usr/bin/python3")
    made = await box({"network": {"allowedDomains": ["localhost"]}, "filesystem": {"denyRead": ["/usr/bin/python3"]}})
    with pytest.raises(ToolError, match="can read and not write"):
        made.session.sandbox.wrap(["true"], cwd=str(work), purpose="tool", input={"command": "true"})


async def test_the_proxy_ends_with_the_session(box: Any) -> None:
    made = await box({"network": {"allowedDomains": ["localhost"]}})
    await made.text("true")
    assert any(t.name == "sandbox proxy" for t in threading.enumerate())
    await made.session.close()
    assert not any(t.name == "sandbox proxy" for t in threading.enumerate())
