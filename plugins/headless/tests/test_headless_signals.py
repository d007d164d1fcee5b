"""A run is ended from outside: a sample of ``benchmarks/signals.py``, and what signals must not do."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.testing import installed

ROOT = Path(__file__).parents[3]
NEEDS = ("command-hooks", "control", "mcp", "model-anthropic", "permissions", "sessions", "subagents", "tools-shell")
PROMPT = json.dumps({"type": "user", "message": {"role": "user", "content": "go"}}).encode() + b"\n"
BOTH_WAYS = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")


@pytest.mark.skipif(not all(map(installed, NEEDS)), reason=f"needs the plugins {', '.join(NEEDS)}")
def test_whatever_ends_a_run_its_exit_code_is_documented_and_nothing_is_left() -> None:
    seed = 7 if "KERNEL_SAME_EXAMPLES" in os.environ else random.SystemRandom().randrange(1 << 31)
    done = subprocess.run([sys.executable, "-m", "benchmarks.signals", "--n", "8", "--seed", str(seed), "--json"], cwd=ROOT,
                          capture_output=True, text=True, check=False, timeout=500)
    assert done.stdout.startswith("{"), done.stderr[-3000:]
    assert json.loads(done.stdout)["failures"] == {}, f"seed {seed}"


def started(folder: Path, *flags: str, before: str = "", delay: float = 30) -> subprocess.Popen[bytes]:
    (folder / "script.yaml").write_text(f"turns:\n  - {{text: finished, delay: {delay}}}\n")
    command = [sys.executable, "-m", "kernel", "-p", *flags]
    return subprocess.Popen(["bash", "-c", f'{before} exec "$@"', "_", *command], cwd=folder, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env={"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "KERNEL_PROVIDER": "script",
                                 "KERNEL_SCRIPT": str(folder / "script.yaml")})


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_program_that_keeps_stdin_open_does_not_keep_the_process(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    with started(tmp_path, *BOTH_WAYS) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(PROMPT)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["subtype"] == "init"
        process.send_signal(sent)
        assert process.wait(30) == code
        assert not [line for line in process.stdout if json.loads(line)["type"] == "result"]


@pytest.mark.parametrize("sent", [signal.SIGHUP, signal.SIGINT])
def test_what_is_ignored_from_the_start_stays_ignored(sent: signal.Signals, tmp_path: Path) -> None:
    """``nohup kernel -p``; ``kernel -p &`` in a script."""
    with started(tmp_path, *BOTH_WAYS, before=f"trap '' {sent.name[3:]};", delay=0.5) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(PROMPT)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["subtype"] == "init"
        process.send_signal(sent)
        process.stdin.close()
        results = [m for m in map(json.loads, process.stdout) if m["type"] == "result"]
        assert process.wait(30) == 0 and results[0]["result"] == "finished"
