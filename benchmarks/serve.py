"""``python -m benchmarks.serve``: many live sessions in one process of ``kernel serve``, and what ``--attach`` saves.

Every session has the installed plugins, a tool that does nothing, a folder and a transcript of its own, and one client that
listens; the model is a server in another process (``server.py``). Measured:

- resident memory of the server behind all turns;
- our own work per turn: CPU time of the session's thread from the end of an answer to the request with the tool's result (a
  middleware's stopwatch); CPU time of the whole server process, divided among all turns; and wall time from the last byte of an
  answer to the first byte of the next request, as the model's side sees it: on a busy machine it is the machine's, not ours;
- wall time of ``kernel -p`` against ``kernel -p --attach``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.server import model_server

PLUGIN = '''
import os, threading, time
from kernel import Middleware, Tool, ToolResult, hookimpl


class Noop(Tool):
    name = "Noop"
    description = "Does nothing."
    input_schema = {"type": "object", "properties": {"value": {"type": "integer"}}, "additionalProperties": False}
    permission = "free"

    def is_read_only(self, input):
        return True

    async def call(self, input, context):
        return ToolResult(content="ok", structured={"ok": True})


class Stopwatch(Middleware):
    """CPU time of the session's thread from the end of an answer to the next request."""

    name = "stopwatch"
    ended = None

    def for_session(self, session):
        return self

    async def around_model(self, request, next):
        if self.ended is not None:
            with open(os.path.join(os.environ["STOPWATCH"], str(threading.get_ident())), "a") as file:
                file.write(f"{time.thread_time() - self.ended}\\n")
        async for event in next(request):
            if event.get("type") == "message_delta":
                calls = event["delta"]["stop_reason"] == "tool_use"
            yield event
        self.ended = time.thread_time() if calls else None


@hookimpl
def register_tools(register):
    register(Noop())


@hookimpl
def register_middleware(register):
    register(Stopwatch())
'''


def site(folder: Path) -> Path:
    """A folder for the import path with a plugin that brings the tool ``Noop``."""
    package = folder / "site" / "noop"
    (package / ".claude-plugin").mkdir(parents=True)
    (package / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": "noop", "version": "1", "metadata": {"kernel": {
        "requires": ">=0.1,<1", "implements": ["register_middleware", "register_tools"],
        "provides": {"middleware": ["stopwatch"], "tools": ["Noop"]}}}}))
    (package / "__init__.py").write_text("")
    (package / "plugin.py").write_text(PLUGIN)
    info = folder / "site" / "noop-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noop\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[kernel.plugins]\nnoop = noop.plugin\n")
    return folder / "site"


class Bench:
    """A server of ours in a folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.socket = str(folder / "s")
        self.env = {"HOME": str(folder), "PATH": os.environ["PATH"], "PYTHONPATH": f"{site(folder)}{os.pathsep}{Path.cwd()}",
                    "KERNEL_SERVE": self.socket, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k",
                    "STOPWATCH": str(folder / "stopwatch")}
        (folder / "stopwatch").mkdir()
        self.process = subprocess.Popen([sys.executable, "-m", "kernel", "serve", "--json", "--max-sessions", "1000"],
                                        env=self.env, stdout=subprocess.PIPE, text=True, cwd=folder)
        assert self.process.stdout is not None
        self.started = json.loads(self.process.stdout.readline())

    def client(self) -> Any:
        from kernel_serve.client import Client

        return Client(self.socket)

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = self.client().request("GET", "/v1/status")
        return status

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cpu_of_turns(self) -> list[float]:
        """Milliseconds, one entry per turn."""
        return [float(line) * 1000 for file in (self.folder / "stopwatch").iterdir() for line in file.read_text().split()]

    def open(self, _: object = None) -> str:
        folder = self.folder / f"p{time.monotonic_ns()}"
        folder.mkdir()
        row = self.client().request("POST", "/v1/sessions", {"cwd": str(folder), "options": {"model": "m"}})
        return str(row["id"])

    def ask(self, id: str) -> tuple[int, float]:
        """One prompt to its result: turns with the model, wall seconds. The events are read as they come."""
        client = self.client()
        after = int(client.request("GET", f"/v1/sessions/{id}")["last_event_id"])
        began = time.monotonic()
        client.request("POST", f"/v1/sessions/{id}/messages", {"prompt": "go"})
        for _, _, data in client.events(id, after):
            message = json.loads(data)
            if message.get("type") == "result":
                if message["is_error"]:
                    raise RuntimeError(message)
                client.close()
                return int(message["num_turns"]), time.monotonic() - began
        raise RuntimeError("the session ended")

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def beside(work: Any, items: list[Any], at_once: int) -> list[Any]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(work, items))


def sessions(count: int, turns: int, delay: float) -> list[dict[str, Any]]:
    """All at once: every session asks one prompt of that many turns, three times."""
    with tempfile.TemporaryDirectory(prefix="kernel-serve-") as place, model_server(turns, each=True, delay=delay) as model:
        bench = Bench(Path(place), model.url)
        try:
            ids = [bench.open()]
            cpu = bench.cpu_s()
            ids += [bench.open() for _ in range(count - 1)]
            opening = (bench.cpu_s() - cpu) * 1000 / max(count - 1, 1)
            opened = bench.status()["rss_mb"]
            cpu, began = bench.cpu_s(), time.monotonic()
            done = [n for _ in range(3) for n, _ in beside(bench.ask, ids, count)]
            cpu, wall = bench.cpu_s() - cpu, time.monotonic() - began
            threads = sum(bench.client().request("GET", f"/v1/sessions/{id}")["cpu_s"] for id in ids)
            status = bench.status()
        finally:
            bench.end()
        gaps, own = [s * 1000 for s in model.times().between], bench.cpu_of_turns()
    assert status["sessions"] == count
    return [
        row(f"memory, {count} sessions opened", opened, "MB"),
        row(f"memory, {count} sessions behind {3 * turns + 3} turns each", status["rss_mb"], "MB", 500),
        row("memory of one more session", (status["rss_mb"] - bench.started["rss_mb"]) / count, "MB"),
        row(f"CPU to open one more session, mean of {count - 1}", opening, "ms"),
        row(f"CPU of our own work per turn, median of {len(own)}", median(own), "ms"),
        row(f"CPU of our own work per turn, p95 of {len(own)}", percentile(own, .95), "ms", 20),
        row(f"CPU of the process per turn, all in all, mean of {sum(done)}", cpu * 1000 / sum(done), "ms"),
        row("  of it in the sessions' threads, streams included", threads * 1000 / sum(done), "ms"),
        row("share of a core in use meanwhile", cpu / wall * 100, "%"),
        row(f"answer to next request, model of {delay:g} s, median of {len(gaps)}", median(gaps), "ms"),
        row(f"answer to next request, model of {delay:g} s, p95 of {len(gaps)}", percentile(gaps, .95), "ms")]


def alone(count: int, turns: int) -> list[dict[str, Any]]:
    """One session talks to a model that answers at once, while the others are open."""
    with tempfile.TemporaryDirectory(prefix="kernel-serve-") as place, model_server(turns, each=True) as model:
        bench = Bench(Path(place), model.url)
        try:
            ids = beside(bench.open, [None] * count, 4)
            for id in ids[:5]:
                bench.ask(id)
        finally:
            bench.end()
        gaps = [s * 1000 for s in model.times().between]
    return [row(f"answer to next request, {count - 1} idle beside, median of {len(gaps)}", median(gaps), "ms"),
            row(f"answer to next request, {count - 1} idle beside, p95 of {len(gaps)}", percentile(gaps, .95), "ms")]


def attach(runs: int) -> list[dict[str, Any]]:
    """``kernel -p`` and ``kernel -p --attach``, one after the other, with the scripted model and with the model server."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="kernel-serve-") as place, model_server(0, each=True) as model:
        bench = Bench(Path(place), model.url)
        (Path(place) / "s.yaml").write_text("name: s\nturns:\n- text: hello\n")

        def run(*args: str) -> tuple[float, float]:
            """Milliseconds on the clock, and of CPU: the command's and the server's together."""
            before, began = bench.cpu_s() + _of_children(), time.monotonic()
            subprocess.run([sys.executable, "-m", "kernel", "-p", "hi", *args], env=bench.env, cwd=place, check=True,
                           stdin=subprocess.DEVNULL, capture_output=True)
            return (time.monotonic() - began) * 1000, (bench.cpu_s() + _of_children() - before) * 1000

        try:
            for what, flags in (("scripted model", ("--model", "script:s.yaml")), ("model server", ("--model", "m"))):
                run("--attach", *flags)
                pairs = [(run(*flags), run("--attach", *flags)) for _ in range(runs)]
                for unit, n in (("ms", 0), ("ms CPU", 1)):
                    fresh, there = (median(pair[way][n] for pair in pairs) for way in (0, 1))
                    rows += [row(f"kernel -p, {what}, median of {runs}", fresh, unit),
                             row(f"kernel -p --attach, {what}, median of {runs}", there, unit),
                             row("  ratio", fresh / there, "x")]
        finally:
            bench.end()
    return rows


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row(what: str, value: float, unit: str, bound: float | None = None) -> dict[str, Any]:
    return {"what": what, "value": round(value, 2), "unit": unit, "bound": bound}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100, help="0: only what --attach saves")
    parser.add_argument("--turns", type=int, default=10, help="turns with a tool call in each prompt")
    parser.add_argument("--delay", type=float, default=1.0, help="seconds that the model takes for an answer")
    parser.add_argument("--runs", type=int, default=11, help="runs of kernel -p, each way")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = sessions(options.sessions, options.turns, options.delay) if options.sessions else []
    rows += alone(options.sessions, options.turns) if options.sessions else []
    rows += attach(options.runs)
    if options.json:
        print(json.dumps(rows, indent=1))
        return 0
    for r in rows:
        bound = "" if r["bound"] is None else f"at most {r['bound']:g}: {'ok' if r['value'] <= r['bound'] else 'OVER'}"
        print(f"{r['what']:<62} {r['value']:>9.2f} {r['unit']:<6} {bound}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
