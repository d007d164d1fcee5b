"""The process: listeners, sessions, and their ends."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import re
import secrets
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from kernel import CONTRACT, Harness, SessionError, UsageError, __version__
from kernel_serve import api, surroundings
from kernel_serve.files import claimed, clear, identity, left_behind, remove, write_token
from kernel_serve.http import Answer, Connection, Refused, Request
from kernel_serve.live import CLOSING_S, Live
from kernel_serve.places import peer_uid, token_file
from kernel_serve.wishes import Wish

MOST_CONNECTIONS = 1000
MOST_TCP = 800
"""Connections at which TCP is refused more: the other places are for the socket."""
MOST_FILES = 8192
LINGER_S = 60.0
"""A closed session's events can be read for so long."""
MOST_CLOSED = 20
ALONE = ("durable",)
"""Middleware whose engine is one for a whole process."""
LOCAL = ("127.0.0.1", "::1", "localhost")


class Limits(NamedTuple):
    """``session_idle_s``: a session that nobody listens to and that says nothing is closed after that; 0: never.
    ``exit_idle_s``: the server ends when it had no session for so long; 0: never."""

    sessions: int = 200
    session_idle_s: float = 1800.0
    exit_idle_s: float = 0.0


class Server:
    """A ``kernel_serve.http.Application``.

    :param socket: path of the unix socket. :param tcp: host and port besides."""

    def __init__(self, socket: str, *, tcp: tuple[str, int] | None = None, limits: Limits | None = None) -> None:
        self.socket = socket
        self.tcp = tcp
        self.limits = limits or Limits()
        self.sessions: dict[str, Live] = {}
        self.token = secrets.token_urlsafe(32)
        self._opening: set[Live] = set()
        self._began = time.time()
        self._busy_at = time.monotonic()
        self._stop = asyncio.Event()
        self._why = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connections: set[asyncio.Task[None]] = set()

    # -- life ----------------------------------------------------------------------------------------------------------------
    async def run(self, ready: Any) -> str:
        """Serve until told to stop; why it ended. ``ready``: called once clients are heard.

        :raises UsageError: the socket cannot be had, for example because another server has it.
        """
        self._loop = asyncio.get_running_loop()
        left_behind(self.socket)
        with claimed(self.socket), contextlib.ExitStack() as cleanup:
            clear(self.socket)
            listeners = [await self._on_socket()]
            cleanup.callback(remove, self.socket, identity(self.socket))
            write_token(token_file(self.socket), self.token)
            cleanup.callback(remove, token_file(self.socket), identity(token_file(self.socket)))
            if self.tcp is not None:
                listeners.append(await self._on_tcp(*self.tcp))
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                    self._loop.add_signal_handler(number, self.stop, f"signal {signal.Signals(number).name}")
            _more_files()
            surroundings.install()
            ready()
            reaper = asyncio.create_task(self._reap())
            await self._stop.wait()
            reaper.cancel()
            for listener in listeners:
                listener.close()
            await self._close_sessions()
            for task in self._connections:
                task.cancel()
            if self._connections:
                await asyncio.wait(self._connections, timeout=2)
        return self._why

    def stop(self, why: str) -> None:
        self._why = self._why or why
        self._stop.set()

    async def _close_sessions(self) -> None:
        """As print mode is ended by SIGTERM; a session that does not end in time is left behind."""
        live = [s for s in (*self.sessions.values(), *self._opening) if not s.ended.done()]
        if live:
            await asyncio.wait([asyncio.create_task(self._close(s)) for s in live], timeout=CLOSING_S)
            await asyncio.sleep(0.05)  # those who listen hear the end

    async def _close(self, live: Live) -> None:
        with contextlib.suppress(Exception):
            await asyncio.shield(asyncio.wrap_future(live.opened))
        live.close()
        await asyncio.shield(asyncio.wrap_future(live.ended))

    async def _reap(self) -> None:
        """Close sessions that nobody wants any more, forget those that are closed, and end where nothing is left."""
        while True:
            await asyncio.sleep(0.5)
            now = time.monotonic()
            closed = []
            for id, live in list(self.sessions.items()):
                if not live.ended.done():
                    if 0 < self.limits.session_idle_s < live.idle_s():
                        live.close()
                elif live.idle_s() > LINGER_S:
                    del self.sessions[id]
                elif not live.followers:
                    closed.append(id)
            for id in closed[:-MOST_CLOSED]:
                del self.sessions[id]
            if self._opening or any(not s.ended.done() for s in self.sessions.values()):
                self._busy_at = now
            elif 0 < self.limits.exit_idle_s < now - self._busy_at:
                self.stop("idle")

    # -- listeners -----------------------------------------------------------------------------------------------------------
    async def _on_socket(self) -> asyncio.Server:
        before = os.umask(0o177)
        try:
            return await asyncio.start_unix_server(self._connected, self.socket, backlog=256)
        except OSError as error:
            raise UsageError(f"the socket cannot be made: {error.strerror or error}", context=f"--socket {self.socket}") from None
        finally:
            os.umask(before)

    async def _on_tcp(self, host: str, port: int) -> asyncio.Server:
        try:
            server = await asyncio.start_server(self._connected, host, port, backlog=256)
        except OSError as error:
            raise UsageError(f"cannot listen: {error.strerror or error}", context=f"--host {host} --port {port}") from None
        self.tcp = (host, server.sockets[0].getsockname()[1])
        return server

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        local = writer.get_extra_info("socket").family == socket.AF_UNIX
        if len(self._connections) >= (MOST_CONNECTIONS if local else MOST_TCP):
            writer.close()
            return
        self._connections.add(task)
        try:
            await Connection(reader, writer, self, known=local).serve()
        except asyncio.CancelledError:
            pass  # the server ends
        finally:
            self._connections.discard(task)

    # -- kernel_serve.http.Application ---------------------------------------------------------------------------------------
    def admit(self, request: Request) -> None:
        """:raises Refused: it is not one of ours."""
        peer = request.peer
        if peer is not None and peer.family == socket.AF_UNIX:
            uid = peer_uid(peer)  # the folder's mode keeps others out, too
            if uid is not None and uid != os.geteuid():
                raise Refused(403, "other_user", "this server serves the user who started it")
        else:
            self._check_host(request.headers.get("host", ""))
        if "origin" in request.headers:
            raise Refused(403, "browser", "requests of web pages are not served")
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            raise Refused(401, "unauthorized", "the token is missing or wrong", headers=[("www-authenticate", "Bearer")],
                          hint=f"Authorization: Bearer and the content of {token_file(self.socket)}")

    def _check_host(self, given: str) -> None:
        """A page that has its own name lead here (DNS rebinding) is told by the name."""
        assert self.tcp is not None
        host, port = self.tcp
        found = re.fullmatch(r"(\[[0-9a-f:.]+\]|[^:\[\]]+)(?::(\d+))?", given.lower())
        name, number = (found[1].strip("[]"), found[2] or "80") if found else ("", "")
        known = {*LOCAL, host.lower()} if host not in ("0.0.0.0", "::") else None  # noqa: S104  # compared, not bound
        if (known is not None and name not in known) or number != str(port):
            raise Refused(403, "host", "the Host header names another server")

    async def answer(self, request: Request) -> Answer:
        route, id = api.find(request.method, request.path)
        if self._stop.is_set() and request.method == "POST":
            raise Refused(503, "stopping", "the server is about to end")
        try:
            return await route.handler(self, request, id)
        except Refused:
            raise
        except Exception as error:
            import traceback

            traceback.print_exc(file=sys.stderr)
            raise Refused(500, "fault", f"{type(error).__name__}: {error}") from None

    # -- sessions ------------------------------------------------------------------------------------------------------------
    def begin(self, wish: Wish, client: Any) -> Live:
        """Start to open a session.

        :raises Refused: there are too many.
        :raises UsageError: its options cannot be served here.
        """
        if sum(not s.ended.done() for s in self.sessions.values()) + len(self._opening) >= self.limits.sessions:
            raise Refused(429, "too_many", f"{self.limits.sessions} sessions are open (kernel serve --max-sessions)")
        ours = {"version": __version__, "prefix": sys.prefix}
        if client is not None and client != ours:
            raise Refused(409, "other_installation", f"this server runs kernel {__version__} of {sys.prefix}, and the client is "
                          f"another one: {str(client)[:200]}", hint="start a server of that installation: kernel serve")
        variables = os.environ if wish.variables is None else wish.variables
        if variables.get("KERNEL_HARNESS") or any(a.partition("=")[0] == "--harness" for a in wish.args):
            raise UsageError("a locked harness owns its whole process and cannot be served with others",
                             hint="kernel --harness FILE -p, without --attach")
        live = Live(wish, admit=self._admit)
        self._opening.add(live)
        live.start()
        return live

    def opened(self, live: Live) -> None:
        """:raises Refused: the same conversation is open already."""
        other = self.sessions.get(live.id)
        if other is not None and not other.ended.done():
            live.close()
            raise Refused(409, "in_use", _in_use(live.id))
        self.sessions[live.id] = live

    def settled(self, live: Live) -> None:
        """It is open, or will never be."""
        self._opening.discard(live)

    def session(self, id: str) -> Live:
        """:raises Refused: there is none."""
        live = self.sessions.get(id)
        if live is None:
            raise Refused(404, "not_found", f"there is no session {id}")
        return live

    def _admit(self, harness: Harness) -> None:
        """Called in the session's thread, before anything of the conversation is opened."""
        resume = harness.options.resume
        if resume and not harness.options.fork_session and (other := self.sessions.get(resume)) and not other.ended.done():
            raise SessionError(_in_use(resume))
        if "rewind_files" in harness.options.extra:
            raise UsageError("--rewind-files works on a conversation that is not open", hint="run it without --attach")
        if alone := [name for name in harness.middleware.names() if name in ALONE]:
            raise UsageError(f"{alone[0]} runs have a process of their own", hint="run it without --attach")
        ours = harness.plugins.get("serve")
        if ours is not None and ours.state != "ready":
            raise UsageError(f"--attach needs the plugin 'serve', which is {ours.state} in {harness.options.cwd}")
        for plugin in harness.plugins.ready:
            there = getattr(sys.modules.get(plugin.module or ""), "__file__", None)
            if plugin.path and there and not any(Path(there).is_relative_to(place) for place in plugin.path):
                raise UsageError(f"the plugin {plugin.name} is loaded here from {there}, for another session: two versions do "
                                 "not fit into one process", hint="kernel -p without --attach, or restart kernel serve")

    def status(self) -> dict[str, Any]:
        host = f"[{self.tcp[0]}]" if self.tcp and ":" in self.tcp[0] else self.tcp[0] if self.tcp else ""
        live = [s for s in self.sessions.values() if not s.ended.done()]
        return {"pid": os.getpid(), "version": __version__, "contract": CONTRACT, "prefix": sys.prefix, "socket": self.socket,
                "url": f"http://{host}:{self.tcp[1]}" if self.tcp else None, "uptime_s": round(time.time() - self._began, 1),
                "sessions": len(live), "running": sum(s.state == "running" for s in live), "max_sessions": self.limits.sessions,
                "rss_mb": _rss_mb()}


def _in_use(id: str) -> str:
    return f"the conversation {id} is open in this server: its events can be listened to, and prompts be posted there"


def _more_files() -> None:
    """A session holds about ten files: loop, transcript, connection, processes."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _rss_mb() -> float | None:
    try:
        with open("/proc/self/statm", "rb") as file:
            return round(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)
    except (OSError, ValueError):
        return None
