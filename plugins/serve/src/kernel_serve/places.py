"""Where a server is found: its socket, and beside it the token (``SOCKET.token``) and the lock (``SOCKET.lock``).

Standard library only, and little of it: the client's start is what ``--attach`` is for.
"""

from __future__ import annotations

import os
from typing import Any

LONGEST = 100
"""Bytes of a socket's path; systems take 104 to 108."""


def default_socket() -> str:
    """``KERNEL_SERVE``, else in the configuration folder; where that path is too long for a socket, in the runtime folder."""
    if given := os.environ.get("KERNEL_SERVE"):
        return os.path.abspath(os.path.expanduser(given))
    config = os.path.abspath(os.environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude"))
    path = os.path.join(config, "kernel", "serve", "socket")
    if len(os.fsencode(path)) <= LONGEST:
        return path
    import hashlib

    runtime = os.environ.get("XDG_RUNTIME_DIR") or fallback()
    return os.path.join(runtime, f"kernel-{hashlib.sha256(os.fsencode(config)).hexdigest()[:16]}", "socket")


def fallback() -> str:
    """The runtime folder of a user who has none."""
    return f"/tmp/kernel-{os.getuid()}"  # noqa: S108  # made private, or refused


def token_file(socket: str) -> str:
    return f"{socket}.token"


def read_token(socket: str) -> str:
    """The token of the server at that socket.

    :raises OSError: there is none that can be read.
    """
    with open(token_file(socket), encoding="ascii") as file:
        return file.read().strip()


def peer_uid(peer: Any) -> int | None:
    """Whose process is at the other end of a unix socket; ``None`` where the system does not tell."""
    import socket
    import struct

    if not hasattr(socket, "SO_PEERCRED"):
        return None
    given = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", given)[1])
