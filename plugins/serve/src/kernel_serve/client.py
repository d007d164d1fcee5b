"""Requests to a server over its socket. Small and of the standard library: a client's start is what is saved."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

from kernel_serve.places import peer_uid, read_token

PATIENCE_S = 60.0
"""A server that says nothing for so long is given up; while there are no events, it says so every 15 s."""


class NoServer(Exception):
    """Nobody answers at that socket; the text says why and what to do."""


class Rejected(Exception):
    """The server answered with an error. ``status``: of HTTP; ``error``: the object that says what is wrong."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        message, hint = str(error.get("message") or f"HTTP status {status}"), error.get("hint")
        super().__init__(f"{message} ({hint})" if hint else message)
        self.status = status
        self.error = error


class Client:
    """One connection, for requests one after the other.

    :raises NoServer: nobody is there.
    """

    def __init__(self, path: str, token: str | None = None) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(PATIENCE_S)
        try:
            self._socket.connect(path)
            if peer_uid(self._socket) not in (None, os.geteuid()):  # it would get the token and all variables
                raise PermissionError(0, "it belongs to another user")
            self.token = token or read_token(path)
        except OSError as error:
            self._socket.close()
            raise NoServer(f"no server answers at {path} ({error.strerror or error}); start one with: kernel serve") from None
        self._file = self._socket.makefile("rb")

    def request(self, method: str, target: str, body: dict[str, Any] | None = None) -> Any:
        """The decoded answer.

        :raises Rejected: it is an error.
        :raises NoServer: the connection broke off.
        """
        status, headers = self._begin(method, target, body)
        try:
            length = int(headers.get("content-length", "0"))
            value = json.loads(self._file.read(length) or b"null")
        except (OSError, ValueError) as error:
            raise NoServer(f"the server at {self.path} does not answer any more ({error})") from None
        if status >= 400:
            raise Rejected(status, value.get("error", {}) if isinstance(value, dict) else {})
        return value

    def _begin(self, method: str, target: str, body: dict[str, Any] | None, more: str = "") -> tuple[int, dict[str, str]]:
        data = b"" if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        kind = "" if body is None else f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        head = f"{method} {target} HTTP/1.1\r\nHost: kernel\r\nAuthorization: Bearer {self.token}\r\n{kind}{more}\r\n"
        try:
            self._socket.sendall(head.encode("ascii") + data)
            status = int((self._file.readline().split() or [b"x", b"0"])[1])
            headers: dict[str, str] = {}
            while (line := self._file.readline().strip()):
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.lower()] = value.strip()
        except (OSError, ValueError) as error:
            raise NoServer(f"the server at {self.path} does not answer any more ({error})") from None
        if not status:
            raise NoServer(f"the server at {self.path} does not answer any more")
        return status, headers

    def events(self, id: str, after: int = 0) -> Iterator[tuple[int, str, bytes]]:
        """Number, name (empty for a message of the session) and data of each event, until the server ends the stream.

        Ends without a word where the connection breaks off; the last event of a session is named ``end``.

        :raises Rejected: there is no such session.
        """
        status, headers = self._begin("GET", f"/v1/sessions/{id}/events", None, f"Last-Event-ID: {after}\r\n")
        if status != 200:
            value = json.loads(self._file.read(int(headers.get("content-length", "0"))) or b"{}")
            raise Rejected(status, value.get("error", {}))
        number, name, rest = 0, "", b""
        for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n") if rest else chunk.split(b"\n")
            for line in lines:
                if line.startswith(b"data: "):
                    yield number, name, line[6:]
                    number, name = 0, ""
                elif line.startswith(b"id: "):
                    number = int(line[4:])
                elif line.startswith(b"event: "):
                    name = line[7:].decode()

    def _chunks(self) -> Iterator[bytes]:
        try:
            while size := int(self._file.readline() or b"0", 16):
                yield self._file.read(size)
                self._file.readline()
        except (OSError, ValueError):
            return

    def close(self) -> None:
        self._file.close()
        self._socket.close()
