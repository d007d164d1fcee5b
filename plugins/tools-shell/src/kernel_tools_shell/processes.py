"""Find and end everything that a command started, also what left its process group.

A command is the leader of its own session and process group. Three things lead to its members: the session id, which
only ``setsid`` leaves; a variable in the environment, which survives ``setsid`` and the death of every parent; and the
group itself where there is no ``/proc``.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_tools_shell.command import Command

MARK = "KERNEL_SHELL_TASK"
"""The variable that marks a command's processes: ``<session's token>.<number>``."""
TERM_S = 1.0
"""Seconds between TERM and KILL. Together with what KILL takes it stays under the 5 s after which a tool is abandoned."""
KILL_S = 1.0
_KERNEL_THREAD = 0x200000
HAS_PROC = os.path.isdir("/proc/self")


def members(mark: str, session: int | None = None) -> Iterator[int]:
    """Living processes with that mark (or one that begins with it, where it ends in a dot), or of that process session."""
    wanted = f"{MARK}={mark}".encode()
    wanted = wanted if mark.endswith(".") else wanted + b"\0"
    for name in os.listdir("/proc") if HAS_PROC else ():
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
            state, _parent, _group, its_session, _tty, _foreground, flags = stat[stat.rindex(b")") + 2:].split(None, 7)[:7]
            if state in b"ZX" or int(flags) & _KERNEL_THREAD:
                continue
            if int(its_session) == session or _is_marked(name, wanted):
                yield int(name)
        except (OSError, ValueError):  # it ended meanwhile, or belongs to somebody else
            continue


def _is_marked(pid: str, wanted: bytes) -> bool:
    for _ in range(5):
        with open(f"/proc/{pid}/environ", "rb") as file:
            environ = file.read()
        if environ:
            return (b"\0" + environ).find(b"\0" + wanted) >= 0
        time.sleep(0.001)  # it is being replaced by exec: its new environment is not there yet
    return False


def send(pids: Iterator[int], number: int) -> int:
    """Signal each and return how many there were."""
    count = 0
    for pid in pids:
        count += 1
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass
    return count


def end(commands: Sequence[Command], mark: str | None = None) -> bool:
    """TERM, a short grace, KILL. Blocks for at most ``TERM_S + KILL_S``; run it in a thread. Whether all is gone.

    :param mark: end whatever carries it as well, for example what ended commands left behind.
    """
    def strike(number: int) -> int:
        alive = sum(command.signal(number) for command in commands)
        return alive + (send(members(mark), number) if mark else 0)

    if not strike(signal.SIGTERM) or _wait(lambda: strike(0), TERM_S):
        return True
    return _wait(lambda: strike(signal.SIGKILL), KILL_S)


def _wait(alive: Callable[[], int], seconds: float) -> bool:
    """Ask again until nothing is alive; a process that was forked between two looks is met by the next."""
    until, pause = time.monotonic() + seconds, 0.005
    while alive():
        if time.monotonic() > until:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.1)
    return True
