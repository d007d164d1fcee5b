"""A server as a child process: the package's messages as lines over its pipes (MCP contract, section 2).

The package has such a transport. Ours exists for three things that it does not offer: the processes start before the
package is imported, so that both take their time at once; a line has a longest length (the package joins and splits the
whole line anew for every chunk: one of 100 MB holds the loop for a minute); and a flood of noise ends the connection.
What a message is, is still the package's business.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import anyio

from kernel import env_switch
from kernel_mcp.schemas import clean_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import Process

    from kernel_mcp.entries import Server

MAX_LINE = 32 * 1024 * 1024
"""Bytes of one message. A longer answer fails the call that waits for it."""
MAX_NOISE = 8 * 1024 * 1024
"""Bytes of lines that are no messages, in a row, before a server is given up."""
GRACE_S = 2.0
TERM_S = 1.0
STDERR_LINES = 40
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_ID = re.compile(rb'"id"\s*:\s*(\d+|"(?:[^"\\]|\\.){0,100}")')


class Child:
    """The process of one server, with its own group. ``stderr`` keeps the last lines of what it said."""

    def __init__(self, process: Process, log: Callable[[str], None]) -> None:
        self.process = process
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self.own_exit: int | None = None
        """The exit code of a server that ended before we asked it to."""
        self._log = log

    @classmethod
    async def start(cls, server: Server, cwd: str, extra: dict[str, str], log: Callable[[str], None]) -> Child:
        """Start the program; nothing is read yet.

        :raises OSError: it cannot be started.
        """
        process = await anyio.open_process([server.command, *server.args], cwd=cwd, env=environment(server, extra),
                                           start_new_session=True)
        return cls(process, log)

    async def listen(self) -> None:
        """Read stderr to its end, whatever it is: a server that floods it must not block."""
        stream = self.process.stderr
        rest = b""
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            while stream is not None:
                try:
                    rest += await stream.receive(65536)
                except anyio.EndOfStream:
                    break
                *lines, rest = rest[-65536:].split(b"\n")
                for line in lines[-STDERR_LINES:]:
                    self._say(line)
        if rest:
            self._say(rest)

    def _say(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()[:500]
        if text:
            self.stderr.append(text)
            self._log(text)

    async def stop(self) -> None:
        """Close stdin, wait, TERM, KILL, each for the whole group. Returns in bounded time."""
        with anyio.CancelScope(shield=True):
            if self.own_exit is None:
                self.own_exit = self.process.returncode
            if self.process.stdin is not None:
                with suppress(Exception):
                    await self.process.stdin.aclose()
            if not await self._gone(GRACE_S):
                self._signal(signal.SIGTERM)
                await self._gone(TERM_S)
            self._signal(_KILL)  # what the process started and left behind goes with it
            await self._gone(TERM_S)
            for stream in (self.process.stdout, self.process.stderr):
                if stream is not None:
                    with suppress(Exception):
                        await stream.aclose()
            transport = getattr(getattr(self.process, "_process", None), "_transport", None)
            if transport is not None:
                with suppress(Exception):
                    transport.close()

    def kill(self) -> None:
        """At once; for an end that cannot wait."""
        self._signal(_KILL)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, number)
            else:
                self.process.send_signal(signal.Signals(number))

    async def _gone(self, seconds: float) -> bool:
        """Whether the process ended in time. Its pipes may live on in a child, so its end of file does not count."""
        with anyio.move_on_after(seconds):
            while self.process.returncode is None:  # noqa: ASYNC110  # wait() would wait for the pipes, too
                await anyio.sleep(0.01)
        return self.process.returncode is not None


def environment(server: Server, extra: dict[str, str]) -> dict[str, str]:
    """Ours, what a session adds, and the entry's own. Telemetry settings stay here."""
    inherited = dict(os.environ)
    if env_switch("CLAUDE_CODE_MCP_ALLOWLIST_ENV"):
        inherited = {k: v for k, v in inherited.items() if k in _PLAIN_ENVIRONMENT or k.startswith("LC_")}
    inherited = {k: v for k, v in inherited.items() if not k.startswith("OTEL_")}
    return {**inherited, **extra, **server.env}


_PLAIN_ENVIRONMENT = frozenset("HOME LOGNAME PATH SHELL TERM USER LANG TMPDIR TZ SYSTEMROOT TEMP TMP USERPROFILE APPDATA".split())


class Lines:
    """The package's transport protocol over a child: an async context manager that gives a read and a write stream."""

    def __init__(self, child: Child) -> None:
        self._child = child

    async def __aenter__(self) -> tuple[Any, Any]:
        self._incoming, read = anyio.create_memory_object_stream[Any](64)  # a storm costs no change of tasks for each message
        write, self._outgoing = anyio.create_memory_object_stream[Any](0)
        self._streams = (self._incoming, read, write, self._outgoing)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._child.listen)
        self._tasks.start_soon(self._read)
        self._tasks.start_soon(self._write)
        return read, write

    async def __aexit__(self, *error: Any) -> bool | None:
        for stream in self._streams[1:3]:
            stream.close()
        try:
            await self._child.stop()
        finally:
            self._tasks.cancel_scope.cancel()
            for stream in self._streams:
                stream.close()
        return await self._tasks.__aexit__(*error)

    async def _read(self) -> None:
        """Messages line by line, until the pipe ends, the line is too long to be true, or all is noise."""
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        assert self._child.process.stdout is not None
        noise = 0
        async with self._incoming:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                async for line, whole in _split(self._child.process.stdout):
                    if not whole:
                        await self._incoming.send(TooLong(line))
                        continue
                    try:
                        message = _message(jsonrpc_message_adapter, line)
                    except (ValueError, RecursionError):
                        if line.strip():
                            noise += len(line) + 1
                            await self._incoming.send(Noise(line))
                        if noise > MAX_NOISE:
                            break
                        continue
                    noise = 0
                    await self._incoming.send(SessionMessage(message))

    async def _write(self) -> None:
        stdin = self._child.process.stdin
        assert stdin is not None
        try:
            async with self._outgoing:
                async for item in self._outgoing:
                    line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await stdin.send(line.encode("utf-8", "replace") + b"\n")
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            await self._incoming.aclose()  # nobody reads us any more: the connection is over


def _message(adapter: Any, line: bytes) -> Any:
    """The package's message of a line. Its reader refuses half a character in a text, and deep schemas; ours takes them.

    :raises ValueError: it is none.
    """
    try:
        return adapter.validate_json(line, by_name=False)
    except ValueError:
        if not line.lstrip().startswith(b"{"):
            raise
    return adapter.validate_python(_mended(json.loads(line)), by_name=False)


def _mended(value: Any) -> Any:
    if isinstance(value, dict):
        return {clean_text(k): _mended(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_mended(v) for v in value]
    return clean_text(value) if isinstance(value, str) else value


class TooLong(Exception):
    """A line over ``MAX_LINE``; ``ids`` are what may be the ids of the answer that it was."""

    def __init__(self, ends: bytes) -> None:
        super().__init__(f"the server sent a message of more than {MAX_LINE // 2**20} MiB")
        self.ids = [found.decode("utf-8", "replace").strip('"') for found in _ID.findall(ends)]


class Noise(Exception):
    """A line on stdout that is no message."""

    def __init__(self, line: bytes) -> None:
        super().__init__(f"no message: {line[:200].decode('utf-8', 'replace')!r}")


async def _split(stream: Any) -> Any:
    """Lines with whether they are whole; of one that is too long both ends, and nothing else is kept."""
    parts: list[bytes] = []
    size = 0
    head = b""
    while True:
        try:
            chunk = await stream.receive(262144)
        except anyio.EndOfStream:
            return
        first, *more = chunk.split(b"\n")
        parts.append(first)
        size += len(first)
        if size > MAX_LINE and not head:
            head = b"".join(parts)[:4096]
        if head:
            parts = [b"".join(parts)[-4096:]]
        if not more:
            continue
        yield (head + b"\n" + parts[0], False) if head else (b"".join(parts), True)
        for line in more[:-1]:
            yield line, True
        parts, size, head = [more[-1]], len(more[-1]), b""

