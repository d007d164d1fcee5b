"""Run git, npm, pip and uv: without a shell, without questions, with a time limit, and ended when we are."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from kernel_manager.errors import ManagerError
from kernel_manager.sources import without_secrets

GIT_TIMEOUT = 120.0
QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", "GCM_INTERACTIVE": "never", "GIT_LFS_SKIP_SMUDGE": "1",
         "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "NO_COLOR": "1", "NO_UPDATE_NOTIFIER": "1"}


def run(args: list[str], *, cwd: Path, timeout: float, type: str, what: str, env: Mapping[str, str] | None = None,
        stderr: bool = False) -> str:
    """Run a program and return its standard output, or its standard error where that is what is wanted.

    :param type: the error's type where it fails; ``what`` names the work in the message.
    :raises ManagerError: it is not there, failed, or took too long.
    """
    with _ended_with_us() as signals:
        try:
            process = subprocess.Popen(  # noqa: S603  # no shell; arguments are checked where sources are read
                args, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env={**os.environ, **QUIET, **(env or {})}, start_new_session=True)
        except FileNotFoundError:
            raise ManagerError("missing-program", f"the program {args[0]!r} is not installed", context=what) from None
        try:
            signals.release()
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            raise ManagerError(type, f"took longer than {timeout:g} s", context=what) from None
        except BaseException:
            _end(process)
            raise
    if process.returncode:
        raise ManagerError(type, _last_words(err or out) or f"ended with code {process.returncode}", context=what)
    return (err if stderr else out).decode("utf-8", "replace")


@contextmanager
def piped(args: list[str], *, cwd: Path) -> Iterator[IO[bytes]]:
    """The standard output of a program that waits for nobody, to be read as it comes; it ends with the block."""
    process = subprocess.Popen(  # noqa: S603  # as in run
        args, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, **QUIET}, start_new_session=True)
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.stdout.close()
        process.kill()
        process.wait()


class _Signals:
    """Held back until the program is known: one that comes while it is being started would leave it without an owner."""

    held, came = True, False

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if not self.held:
            raise KeyboardInterrupt

    def release(self) -> None:
        self.held = False
        if self.came:
            raise KeyboardInterrupt


@contextmanager
def _ended_with_us() -> Iterator[_Signals]:
    """Signals that would end us without a word raise instead, so that the program can be ended, too."""
    import threading

    signals = _Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    before = {number: signal.signal(number, signals.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        process.kill()
    process.communicate()


def _last_words(raw: bytes) -> str:
    """The end of what a program said, as one printable line without credentials."""
    lines = [line.strip() for line in raw.decode("utf-8", "replace").splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("npm error A complete log", "WARNING:", "[notice]"))]
    text = " | ".join(without_secrets(word) for word in lines[-4:])
    return "".join(c for c in text if c.isprintable())[:600]


def git_timeout() -> float:
    given = os.environ.get("CLAUDE_CODE_PLUGIN_GIT_TIMEOUT_MS", "")
    return int(given) / 1000 if given.isdigit() and int(given) > 0 else GIT_TIMEOUT
