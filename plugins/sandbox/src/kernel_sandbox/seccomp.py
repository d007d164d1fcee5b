"""A system-call filter for what no namespace closes: Unix sockets, and the ways around a filter on them.

A socket file can be connected to on a read-only mount, so without this a command could talk to every service of the
machine that listens on one: Docker, D-Bus, an ssh agent. A filter cannot see paths, so ``socket(AF_UNIX)`` is refused
as a whole; ``socketpair`` stays, but not for datagrams, whose sockets can be connected a second time.
"""

from __future__ import annotations

import platform
from struct import pack

_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_NUMBER, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24  # offsets in struct seccomp_data; the low halves of arguments, little-endian
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000
_EPERM, _ENOSYS = 1, 38
_AF_UNIX, _AF_VSOCK = 1, 40
_SOCK_DGRAM, _SOCK_RAW = 2, 3
_X32 = 0x40000000

_MACHINES: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (0xC000003E, {"socket": 41, "socketpair": 53, "add_key": 248, "request_key": 249, "keyctl": 250,
                            "io_uring_setup": 425}),
    "aarch64": (0xC00000B7, {"socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219,
                             "io_uring_setup": 425}),
}


def program(machine: str | None = None) -> bytes | None:
    """The filter as ``struct sock_filter`` records; ``None`` for a processor that it is not written for.

    Refused: Unix and VM sockets, Unix datagram pairs, key rings (they outlast namespaces), io_uring (it makes sockets
    past any filter), and every call of another instruction set, whose numbers mean other things.
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    arch, calls = known
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH), (_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _REFUSE | _EPERM),
        (_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _REFUSE | _ENOSYS)]
    for name in ("io_uring_setup", "add_key", "request_key", "keyctl"):
        code += [(_EQUAL, 0, 1, calls[name]), (_RETURN, 0, 0, _REFUSE | (_ENOSYS if name == "io_uring_setup" else _EPERM))]
    code += [
        # socket(family, ...): over to the next check unless it is that call
        (_EQUAL, 0, 5, calls["socket"]), (_LOAD, 0, 0, _ARG0), (_EQUAL, 1, 0, _AF_UNIX), (_EQUAL, 0, 1, _AF_VSOCK),
        (_RETURN, 0, 0, _REFUSE | _EPERM), (_RETURN, 0, 0, _ALLOW),
        # socketpair(family, type, ...)
        (_EQUAL, 0, 5, calls["socketpair"]), (_LOAD, 0, 0, _ARG1), (_AND, 0, 0, 0xF), (_EQUAL, 1, 0, _SOCK_DGRAM),
        (_EQUAL, 0, 1, _SOCK_RAW), (_RETURN, 0, 0, _REFUSE | _EPERM),
        (_RETURN, 0, 0, _ALLOW)]
    return b"".join(pack("=HBBI", *step) for step in code)
