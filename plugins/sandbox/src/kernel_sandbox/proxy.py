"""The way out: an HTTP proxy in the harness that connects to permitted hosts, one for all commands of a session.

It has no port on this machine. A confined command hands its own listener in through a socket file (``inner.py``); the
proxy accepts from there. HTTP by absolute URL and everything else by ``CONNECT``. What runs inside TLS it cannot see:
a permitted host that serves others too (a CDN) may lead further than its name says.

It has a thread and an event loop of its own, so that it works whatever the session waits for.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from kernel_sandbox.domains import ascii_host, refusal, split_port

if TYPE_CHECKING:
    from kernel_sandbox.domains import Domains

SOCKET = "proxy.sock"
HEAD_BYTES = 64 * 1024
HEAD_S = 30.0
CONNECT_S = 30.0
MAX_CONNECTIONS = 512
_CHUNK = 1 << 16


class _Refused(Exception):
    """A request that is answered with a status; the text is for who asked."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Proxy:
    """Started by its constructor, ended by ``close``.

    :param folder: where its socket file is made; nobody else may write there.
    :param domains: what is permitted; may be replaced at any time, and counts for the next connection.
    :raises OSError: the socket cannot be made.
    """

    def __init__(self, folder: Path, domains: Domains) -> None:
        self.domains = domains
        self.refused: deque[str] = deque(maxlen=100)
        """Hosts with ports that were refused, newest last."""
        self.refusals = 0
        self._open = 0
        door = socket.socket(socket.AF_UNIX)
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            door.bind(f"/proc/self/fd/{place}/{SOCKET}")  # a path of a socket may have 107 characters only
        finally:
            os.close(place)
        door.listen(64)
        door.setblocking(False)
        self._door = door
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="sandbox proxy", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End it and every connection. May be called twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)
        self._door.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.create_task(self._admit())
        try:
            self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            self._loop.close()

    # -- listeners of commands -----------------------------------------------------------------------------------------
    async def _admit(self) -> None:
        commands: set[asyncio.Task[None]] = set()
        while True:
            control, _ = await self._loop.sock_accept(self._door)
            control.setblocking(False)
            task = self._loop.create_task(self._serve(control))
            commands.add(task)
            task.add_done_callback(commands.discard)

    async def _serve(self, control: socket.socket) -> None:
        """Take one command's listener and accept from it until the command is over: until nobody holds ``control``."""
        with control:
            listener = await self._listener(control)
            if listener is None:
                return
            server = await asyncio.start_server(self._client, sock=listener, limit=HEAD_BYTES)
            try:
                while await self._loop.sock_recv(control, 64):
                    pass  # nothing is expected; descriptors that come along are dropped
            except OSError:
                pass
            finally:
                server.close()

    async def _listener(self, control: socket.socket) -> socket.socket | None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(control, _settle, ready)
        try:
            await asyncio.wait_for(ready, HEAD_S)
            _, fds, _, _ = socket.recv_fds(control, 1, 1, socket.MSG_CMSG_CLOEXEC)
        except (OSError, TimeoutError):
            return None
        finally:
            self._loop.remove_reader(control)
        if not fds:
            return None
        listener = socket.socket(fileno=fds[0])
        if listener.family != socket.AF_INET or not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            listener.close()
            return None
        listener.setblocking(False)
        return listener

    # -- one connection ------------------------------------------------------------------------------------------------
    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            await self._answer(reader, writer)
        except _Refused as refused:
            text = f"sandbox: {refused}\n"
            writer.write(f"HTTP/1.1 {refused.status}\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
                         f"Content-Length: {len(text.encode())}\r\n\r\n{text}".encode())
            await _flushed(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # one of the two sides went away or does not speak HTTP
        finally:
            self._open -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open > MAX_CONNECTIONS:
            raise _Refused("503 Service Unavailable", f"more than {MAX_CONNECTIONS} connections at once")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_S)
        line, _, rest = head.partition(b"\r\n")
        words = line.decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            raise _Refused("400 Bad Request", "this is a proxy for HTTP; it did not understand the request")
        method, target, version = words
        host, port, path = _target(method, target)
        there, there_writer = await self._connect(host, port)
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                there_writer.write(f"{method} {path} {version}\r\n".encode("latin-1") + _one_request(rest))
            await _splice(reader, writer, there, there_writer)
        finally:
            there_writer.close()

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        pattern = self.domains.permits(host, port)
        if pattern is None:
            self.refused.append(f"{host}:{port}")
            self.refusals += 1
            raise _Refused("403 Forbidden", f"{host}:{port} is not among the hosts that commands may reach "
                                            "(sandbox.network.allowedDomains)")
        upstream = _upstream(host, port)
        if upstream is not None:
            return await asyncio.wait_for(_through(upstream, host, port), CONNECT_S)
        try:
            found = await asyncio.wait_for(self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM), CONNECT_S)
        except (OSError, TimeoutError) as error:
            raise _Refused("502 Bad Gateway", f"{host} cannot be resolved: {error}") from None
        reason = "it has no address"
        for address in dict.fromkeys(str(entry[4][0]) for entry in found):
            why = refusal(address, pattern)
            if why is not None:
                self.refused.append(f"{host}:{port}")
                self.refusals += 1
                raise _Refused("403 Forbidden", f"{host} is at {address}: {why}")
            try:
                return await asyncio.wait_for(asyncio.open_connection(address, port), CONNECT_S)
            except (OSError, TimeoutError) as error:
                reason = f"{address}: {getattr(error, 'strerror', None) or 'it does not answer'}"
        raise _Refused("502 Bad Gateway", f"{host} cannot be reached: {reason}")


# -- requests ----------------------------------------------------------------------------------------------------------
def _target(method: str, target: str) -> tuple[str, int, str]:
    """Host, port and what the server is asked for.

    :raises _Refused: it is neither ``host:port`` behind CONNECT nor an absolute http URL.
    """
    try:
        if method == "CONNECT":
            host, port = split_port(target)
            if port is None:
                raise ValueError("the port is missing")
            return ascii_host(host), port, ""
        url = urlsplit(target)
        if url.scheme != "http" or not url.hostname:
            raise ValueError("a proxy is asked with an absolute http URL or with CONNECT")
        return ascii_host(url.hostname), url.port or 80, (url.path or "/") + (f"?{url.query}" if url.query else "")
    except ValueError as error:
        raise _Refused("400 Bad Request", f"{target[:200]!r}: {error}") from None


def _one_request(headers: bytes) -> bytes:
    """The headers without those for proxies; the connection ends with its request, as the next may be for another host."""
    lines = [line for line in headers.split(b"\r\n") if line.partition(b":")[0].strip().lower() not in (
        b"proxy-connection", b"proxy-authorization", b"connection", b"keep-alive")]
    return b"Connection: close\r\n" + b"\r\n".join(lines)


def _upstream(host: str, port: int) -> tuple[str, int, str] | None:
    """The proxy that this machine itself has to use for that host, as the usual variables say: host, port, credentials."""
    from urllib.request import getproxies, proxy_bypass

    found = getproxies().get("https" if port != 80 else "http")
    if not found or proxy_bypass(host):
        return None
    url = urlsplit(found if "://" in found else f"http://{found}")
    if url.scheme != "http" or not url.hostname:
        return None
    user = f"{unquote(url.username)}:{unquote(url.password or '')}" if url.username else ""
    return url.hostname, url.port or 80, user


async def _through(upstream: tuple[str, int, str], host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection through another proxy, which resolves the name by itself.

    :raises _Refused: that proxy does not connect.
    """
    import base64

    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    credentials = f"Proxy-Authorization: Basic {base64.b64encode(upstream[2].encode()).decode()}\r\n" if upstream[2] else ""
    try:
        reader, writer = await asyncio.open_connection(upstream[0], upstream[1], limit=HEAD_BYTES)
        writer.write(f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{credentials}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise _Refused("502 Bad Gateway", f"the proxy of this machine cannot be used: {error}") from None
    if head.split(b" ", 2)[1:2] != [b"200"]:
        writer.close()
        status = head.partition(b"\r\n")[0].decode("latin-1")[:200]
        raise _Refused("502 Bad Gateway", f"the proxy of this machine refused {place}: {status}")
    return reader, writer


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


# -- bytes -------------------------------------------------------------------------------------------------------------
async def _splice(one: asyncio.StreamReader, to_one: asyncio.StreamWriter,
                  other: asyncio.StreamReader, to_other: asyncio.StreamWriter) -> None:
    """Both directions until both have ended."""
    await asyncio.gather(_pour(one, to_other), _pour(other, to_one))


async def _pour(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(_CHUNK):
            target.write(data)
            await target.drain()
        if target.can_write_eof():
            target.write_eof()
    except OSError:
        target.close()


async def _flushed(writer: asyncio.StreamWriter) -> None:
    try:
        await writer.drain()
    except OSError:
        pass
