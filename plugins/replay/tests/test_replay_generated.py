"""A sample of the generated runs of ``python -m benchmarks.replay``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.testing import installed

ROOT = Path(__file__).parents[3]
NEEDED = ("model-script", "sessions", "tools-files", "tools-shell", "permissions", "subagents", "command-hooks", "compactor")


@pytest.mark.skipif(not all(map(installed, NEEDED)) or not (ROOT / "benchmarks" / "replay.py").exists(),
                    reason=f"needs the repository and the plugins {', '.join(NEEDED)}")
def test_generated_runs_are_the_same_again() -> None:
    """``KERNEL_REPLAYS=300`` takes as many as the benchmark. No bar for the speed here: tests are not timed."""
    runs = os.environ.get("KERNEL_REPLAYS", "6")
    command = [sys.executable, "-m", "benchmarks.replay", "--runs", runs, "--bar", "0", "--delay", "0.005", "0.03", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.startswith("{"), done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["failures"] == {} and found["identical"] == found["runs"], f"seed {found['seed']}: {found['failures']}"
