"""Streams and surroundings that are not as they should be: one line of error, a documented exit code, no traceback."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest


def shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """Run a shell line in which ``$KERNEL`` is a scripted run."""
    script = folder / "script.yaml"
    script.write_text("turns:\n  - text: hello\n")
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "KERNEL_PROVIDER": "script",
           "KERNEL_SCRIPT": str(script), "KERNEL": f"{shlex.quote(sys.executable)} -m kernel -p go"}
    return subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("line", "code", "said"), [
    ("$KERNEL >&-", 1, "stdout is closed"),
    ("$KERNEL > /dev/full", 1, "stdout cannot be written: No space left on device"),
    ("$KERNEL --output-format stream-json --verbose > /dev/full", 1, "stdout cannot be written"),
    ("mkdir gone && cd gone && rmdir ../gone && $KERNEL", 1, "working directory"),
    ("$KERNEL <&-", 0, ""),
    ("$KERNEL 2>&-", 0, ""),
])
def test_a_stream_or_folder_that_is_gone(line: str, code: int, said: str, tmp_path: Path) -> None:
    done = shell(tmp_path, line)
    assert done.returncode == code, done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 1


def test_a_reader_that_leaves_ends_the_run_quietly(tmp_path: Path) -> None:
    done = shell(tmp_path, "$KERNEL --output-format stream-json --verbose | head -c 1 >/dev/null; echo ${PIPESTATUS[0]}")
    assert done.stdout.strip() in ("0", "1") and done.stderr == ""


def test_an_interrupt_before_anybody_listens_leaves_no_traceback(tmp_path: Path) -> None:
    program = ("import os, signal, threading\nfrom kernel import cli\n"
               "cli._command = lambda args: os.kill(os.getpid(), signal.SIGINT) or 0\nraise SystemExit(cli.main(['-p', 'go']))")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -2 and done.stderr == ""


def test_the_debug_log_is_private(tmp_path: Path) -> None:
    shell(tmp_path, "$KERNEL --debug-file log.txt")
    assert (tmp_path / "log.txt").stat().st_mode & 0o777 == 0o600
