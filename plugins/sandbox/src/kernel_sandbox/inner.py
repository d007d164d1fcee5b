"""Runs inside, before the command, where hosts are allowed: hands a listening port out to the proxy.

The network namespace has nothing but its own loopback. A socket belongs to the namespace that it was made in, whoever
holds it: so this process makes the listener, passes it to the proxy in the harness, and becomes the command. Nothing
else has to run inside.

A program of its own (``python -I -S inner.py FOLDER FILTER -- COMMAND...``) that imports little, since every command
waits for it. FILTER is a file for seccomp, or ``-``; it comes last, because it forbids what this program needs.
"""

from __future__ import annotations

import _socket
import os
import sys

PORT = 61080
"""Of the proxy, on the loopback of every confined command; each has a loopback of its own."""
FAILED = 126


def main(arguments: list[str]) -> int:
    folder, filter_file, mark, *command = arguments
    if mark != "--" or not command:
        return _fail("it was started with the wrong arguments")
    try:
        _offer_port(folder)
        if filter_file != "-":
            _confine(filter_file)
    except OSError as error:
        return _fail(f"the proxy cannot be reached: {error.strerror}")
    # Python ignores two signals and may set a locale; the command is to start as if it had not been here.
    import signal

    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    with open("/proc/self/environ", "rb") as file:
        pairs = [entry.partition(b"=") for entry in file.read().split(b"\0") if b"=" in entry]
    try:
        os.execvpe(command[0], command, {name: value for name, _, value in pairs})  # noqa: S606  (the command it is there for)
    except OSError as error:
        return _fail(f"{command[0]}: {error.strerror}")


def _offer_port(folder: str) -> None:
    """Give the listener away. The connection stays open in the command: its end tells the proxy that all is over."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", PORT))
    listener.listen(128)
    control = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    here = os.open(".", os.O_RDONLY)
    os.chdir(folder)  # a path of a socket may have 107 characters only
    control.connect("proxy.sock")
    os.fchdir(here)
    os.close(here)
    number = listener.fileno().to_bytes(4, sys.byteorder)
    control.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
    os.set_inheritable(control.detach(), True)
    listener.close()


def _confine(filter_file: str) -> None:
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    with open(filter_file, "rb") as file:
        code = file.read()
    libc = ctypes.CDLL(None, use_errno=True)
    given = Program(len(code) // 8, code)
    if libc.prctl(22, ctypes.c_ulong(2), ctypes.byref(given), 0, 0):  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _fail(reason: str) -> int:
    print(f"sandbox set-up: {reason}", file=sys.stderr)
    return FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
