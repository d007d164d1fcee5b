"""``python -m benchmarks``: start-up, work per turn, hook dispatch, streaming and memory, as ratios within one run.

Machines are noisy, so nothing here is a test. Medians over ``--runs`` runs; the yardstick (``bare_loop.py``: the same
scripted turns with httpx alone) runs in the same minute on the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import hooks
from benchmarks.inside import delta_cost_us, dispatch_p99_us, empty_fire_us
from benchmarks.server import Times, model_server

HERE = Path(__file__).parent


def environment(url: str, home: str) -> dict[str, str]:
    return {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k",
            "PYTHONPATH": os.environ.get("PYTHONPATH", "")}


def conversation(program: list[str], turns: int, calls: int = 1) -> tuple[Times, float, dict[str, Any]]:
    """Run a program against a fresh server in a fresh folder: times, seconds to its first request, what it printed."""
    with tempfile.TemporaryDirectory() as home, model_server(turns, calls) as server:
        command = [sys.executable, *[server.url if a == "URL" else a for a in program]]
        began = time.monotonic()
        done = subprocess.run(command, cwd=home, env=environment(server.url, home), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(program)} failed ({done.returncode}):\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        times = server.times()
        lines = done.stdout.strip().splitlines()
        said = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        return times, (times.first_byte[0] - began) * 1000, said


BARE = [str(HERE / "bare_loop.py"), "URL", "go"]
KERNEL = [str(HERE / "kernel_loop.py"), "go"]
KERNEL_CLI = ["-m", "kernel", "-p", "go"]


def command_ms(args: list[str], runs: int) -> float:
    times = []
    for _ in range(runs):
        began = time.monotonic()
        subprocess.run([sys.executable, *args], capture_output=True, check=True)
        times.append((time.monotonic() - began) * 1000)
    return median(times)


def around(gaps: list[float], turn: int) -> float:
    """The median of the nine gaps around a turn, in milliseconds."""
    return median(gaps[max(0, turn - 5):turn + 4])


def measure(runs: int, long: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []

    def row(what: str, ours: float, bare: float | None, unit: str, bound: str, within: bool) -> None:
        rows.append({"what": what, "ours": round(ours, 3), "bare": None if bare is None else round(bare, 3), "unit": unit,
                     "ratio": None if not bare else round(ours / bare, 2), "bound": bound, "within": within})
        print(".", end="", file=sys.stderr, flush=True)

    version = command_ms(["-m", "kernel", "--version"], runs)
    row("kernel --version", version, command_ms(["-c", "pass"], runs), "ms", "at most 80 ms", version <= 80)
    usage = command_ms(["-m", "kernel", "--help"], runs)
    row("kernel --help", usage, None, "ms", "at most 80 ms", usage <= 80)

    pairs = [(conversation(BARE, 0)[1], conversation(KERNEL_CLI, 0)[1]) for _ in range(runs)]
    bare, ours = median(p[0] for p in pairs), median(p[1] for p in pairs)
    row("start to the first request", ours, bare, "ms", "at most 2 x", ours <= 2 * bare)

    bare_runs = [conversation(BARE, long) for _ in range(runs)]
    our_runs = [conversation(KERNEL, long) for _ in range(runs)]
    for turn, factor in ((10, 3.0), (long - 10, 1.0)):
        bare = median(around(r[0].gaps(), turn) for r in bare_runs)
        ours = median(around(r[0].gaps(), turn) for r in our_runs)
        row(f"work per turn, at turn {turn} of {long}", ours, bare, "ms", f"at most {factor:g} x", ours <= factor * bare)
    peak = max(r[2]["peak_mb"] for r in our_runs)
    row(f"peak memory of {long} turns", peak, max(r[2]["peak_mb"] for r in bare_runs), "MB", "at most 100 MB", peak <= 100)

    bare = median(median(conversation(BARE, 30, calls=8)[0].gaps()[5:]) for _ in range(runs))
    ours = median(median(conversation(KERNEL, 30, calls=8)[0].gaps()[5:]) for _ in range(runs))
    row("work per turn with 8 parallel tools", ours, bare, "ms", "at most 4 x", ours <= 4 * bare)

    sync, asynchronous = dispatch_p99_us(asynchronous=False), dispatch_p99_us(asynchronous=True)
    row("dispatch.fire, 10 handlers, sync, p99", sync, None, "us", "at most 50 us", sync <= 50)
    row("dispatch.fire, 10 handlers, async, p99", asynchronous, None, "us", "at most 300 us", asynchronous <= 300)
    empty = empty_fire_us()
    row("dispatch.fire, no handler", empty, None, "us", "at most 2 us", empty <= 2)
    hooks.rows(row, runs)
    delta = delta_cost_us()
    row("one streamed text delta", delta, None, "us", "at most 20 us", delta <= 20)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--turns", type=int, default=500, help="length of the long conversation")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(options.runs, options.turns)
    print(file=sys.stderr)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for r in rows:
        bare = "" if r["bare"] is None else f"{r['bare']:>9.2f}"
        ratio = "" if r["ratio"] is None else f"{r['ratio']:>5.2f} x"
        print(f"{r['what']:<40} {r['ours']:>9.2f} {r['unit']:<2}  bare {bare:>9}  {ratio:>8}   "
              f"{r['bound']:<15} {'ok' if r['within'] else 'OVER'}")


if __name__ == "__main__":
    main()
