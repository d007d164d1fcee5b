"""The process of one run: files for its output, then ``python -m kernel -p``."""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Any, NoReturn

import msgspec

GRACE_S = 5.0


class Run(msgspec.Struct, kw_only=True):
    """The arguments of ``kernel``, and where it runs. ``resumes``: it goes on with a session in its own workspace."""

    args: list[str]
    env: dict[str, str] = msgspec.field(default_factory=dict)
    resumes: bool = False
    cwd: str = ""
    stdout: str = ""
    stderr: str = ""


class Child:
    """:param life: a pipe that ends when the worker does. :param report: takes the names of the modules that were imported.
    :param alone: a lock that is held as long as this process lives; programs that it starts do not inherit it.
    """

    def __init__(self, run: Run, life: int, report: int, alone: int) -> None:
        self.run, self.life, self.report, self.alone = run, life, report, alone

    def become(self) -> int:
        """Run, and return the exit code."""
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for number, path, how in ((0, os.devnull, os.O_RDONLY), (1, self.run.stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
                                  (2, self.run.stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
            opened = os.open(path, how, 0o600)
            os.dup2(opened, number)
            os.close(opened)
        threading.Thread(target=_until_alone, args=(self.life,), daemon=True).start()
        os.chdir(self.run.cwd)
        os.environ.update(self.run.env)
        before = set(sys.modules)
        sys.argv = ["kernel", *self.run.args]
        code: Any = 0
        try:
            runpy.run_module("kernel", run_name="__main__", alter_sys=True)
        except SystemExit as leaving:
            code = leaving.code
        with suppress(OSError):
            os.write(self.report, json.dumps([name for name in sys.modules if name not in before]).encode())
        return code if isinstance(code, int) else int(code is not None)

    def leave(self, code: int) -> NoReturn:
        """End a forked process as ``multiprocessing`` does: threads, exit handlers and buffers, and no tearing down of all that
        the worker had imported."""
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _until_alone(life: int) -> None:
    """The worker is gone, so nobody waits for this run: end as at SIGTERM, then with all that is left of the group."""
    with suppress(OSError):
        os.read(life, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_S)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    for inherited in map(int, sys.argv[1:]):
        os.set_inheritable(inherited, False)
    sys.exit(Child(msgspec.json.decode(sys.stdin.buffer.read(), type=Run), *map(int, sys.argv[1:4])).become())
