"""``python -m benchmarks.signals``: runs are ended from outside, at any point, in every way.

Real ``kernel -p`` processes (text, json, stream-json, stream-json both ways) against a scripted model server, with commands that
ignore SIGTERM, start grandchildren, leave their session, or run in the background; hooks, MCP servers, subagents; while the model
streams, while a retry is waited for, while a permission question is open. At a named moment or after a random time one thing
happens: SIGINT, SIGINT twice, SIGTERM, SIGTERM twice, SIGHUP, stdin is closed, the reader of stdout goes. What must hold:

- the exit code is one that is documented for it;
- no process of the run is left, found by a variable in its environment or by its command line;
- stdout holds whole lines of JSON (where the reader stayed), and no result of a turn that SIGTERM or SIGHUP ended;
- stderr holds no traceback; ``SessionEnd`` hooks ran where the session had begun;
- ``kernel -p --resume ID`` goes on with requests that obey the API's pairing rules, and ends well.

The exit code of this program is 1 where anything does not hold. A seed gives the same cases, not the same timing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.pairing import faults
from benchmarks.server import Piece, answering, events

PATIENCE_S = 60.0
"""How long a run may take to end after what happened to it, on a busy machine."""
GONE_S = 1.5
"""How long processes that were killed may take to be gone."""
MARK = "KERNEL_SIGNALS_RUN"
SIGNALS = {"int": [signal.SIGINT], "int int": [signal.SIGINT] * 2, "term": [signal.SIGTERM], "term term": [signal.SIGTERM] * 2,
           "hup": [signal.SIGHUP]}
ACTIONS = (*SIGNALS, "close stdin", "close stdout")
FORMATS = ("text", "json", "stream-json", "both ways")
STUBBORN = "trap '' TERM HUP INT; while :; do sleep 0.2; done"
COMMANDS = {
    "plain": "touch in-tool; sleep {long}",
    "stubborn": f"touch in-tool; {STUBBORN}",
    "grandchildren": "(sleep {long} & sh -c 'sleep {long} & sleep {long}' & wait) & touch in-tool; wait",
    "stubborn grandchild": "sh -c \"trap '' TERM HUP INT; sleep {long} & while :; do sleep 0.2; done\" & touch in-tool; wait",
    "own session": f"setsid sleep {{long}} & setsid sh -c \"{STUBBORN}\" & touch in-tool; sleep {{long}}",
    "left behind": "nohup setsid sleep {long} >/dev/null 2>&1 & touch in-tool; sleep 0.1",
}
MOMENTS = {"text": ("streaming",), "bash": ("request", "in-tool"), "background": ("in-tool", "streaming"), "hook": ("in-hook",),
           "mcp": ("in-mcp",), "stubborn mcp": ("in-mcp",), "agent": ("in-tool",), "retry": ("retry",), "question": ("question",),
           "end": ("in-end",)}
"""What the run does -> the moments that it has, beside any random one."""
SERVER = '''
import json, os, signal, subprocess, sys, time
if "stubborn" in sys.argv:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    subprocess.Popen(["sleep", "300"])
def say(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        say(asked["id"], {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"tools": {}},
                          "serverInfo": {"name": "slow", "version": "1"}})
    elif asked.get("method") == "tools/list":
        say(asked["id"], {"tools": [{"name": "wait", "description": "Waits.", "inputSchema": {"type": "object"}}]})
    elif asked.get("method") == "tools/call":
        open("in-mcp", "w").close()
        time.sleep(float(sys.argv[1]))
        say(asked["id"], {"content": [{"type": "text", "text": "waited"}]})
    elif "id" in asked:
        say(asked["id"], {})
while "stubborn" in sys.argv:
    time.sleep(1)
'''


@dataclass
class Case:
    """One run. ``moment``: a name, or seconds after the start; ``extra``: seconds behind a named moment."""

    work: str
    command: str
    format: str
    action: str
    moment: str | float
    extra: float

    @property
    def signals(self) -> list[signal.Signals]:
        return SIGNALS.get(self.action, [])

    @property
    def long(self) -> str:
        """Seconds that things last: a run that nobody ends must end by itself."""
        return "300" if self.signals else "1"

    def __str__(self) -> str:
        when = self.moment if isinstance(self.moment, str) else f"{self.moment:.2f} s"
        command = f" ({self.command})" if self.work in ("bash", "background", "agent", "question") else ""
        return f"{self.action} at {when}{f' + {self.extra:.2f} s' if self.extra else ''}: {self.work}{command}, {self.format}"


def cases(number: int, seed: int) -> list[Case]:
    """So many cases; actions and kinds of work take turns, the rest is chance."""
    chance = random.Random(seed)
    works = list(MOMENTS)
    found = []
    while len(found) < number:
        action = ACTIONS[len(found) % len(ACTIONS)]
        work = works[(len(found) // len(ACTIONS) + len(found)) % len(works)]
        command = chance.choice(list(COMMANDS))
        if action not in SIGNALS and command in ("stubborn", "stubborn grandchild", "own session"):
            command = chance.choice(["plain", "grandchildren", "left behind"])
        way = "both ways" if work == "question" or action == "close stdin" else chance.choice(FORMATS)
        moment: str | float = chance.choice(MOMENTS[work]) if chance.random() < 0.7 else chance.uniform(0.0, 2.5)
        extra = chance.choice([0.0, chance.uniform(0.0, 0.05), chance.uniform(0.0, 0.5)]) if isinstance(moment, str) else 0.0
        found.append(Case(work, command, way, action, moment, extra))
    return found


# -- the model ------------------------------------------------------------------------------------------------------------------
class Model:
    """Plays one case; ``seen`` are the moments that it knows of."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.seen: set[str] = set()
        self.resumed = False
        self.illegal: list[str] = []
        self._failed = False
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> Iterator[Piece]:
        messages = body["messages"]
        with self._lock:
            self.illegal += faults(messages)
        if self.resumed:
            yield from events({"type": "text", "text": "resumed"})
            return
        self.seen.add("request")
        work, last = self.case.work, json.dumps(messages[-1])
        if work == "retry" and not self._failed:
            self._failed = True
            self.seen.add("retry")
            yield 529
            yield json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}).encode()
            return
        if "tool_result" in last or work in ("text", "retry", "end"):
            self.seen.add("streaming")
            yield from events({"type": "text", "text": "some words of an answer that takes its time " * 2}, pause=0.05)
            return
        name, input = self._call("sub-task" in json.dumps(messages[0]))
        yield from events({"type": "text", "text": "I begin."},
                          {"type": "tool_use", "id": f"toolu_{time.monotonic_ns()}", "name": name, "input": input}, pause=0.01)

    def _call(self, in_agent: bool) -> tuple[str, dict[str, Any]]:
        work = self.case.work
        if work == "agent" and not in_agent:
            return "Agent", {"description": "work", "prompt": "Do the sub-task.", "subagent_type": "general-purpose",
                             "run_in_background": False}
        if "mcp" in work:
            return "mcp__slow__wait", {}
        command = COMMANDS[self.case.command].replace("{long}", self.case.long)
        return "Bash", {"command": command, "description": "works",
                        **({"run_in_background": True} if work == "background" else {})}


# -- one run --------------------------------------------------------------------------------------------------------------------
@dataclass
class Run:
    """The process of a case, and what came out of it."""

    case: Case
    folder: Path
    model: Model
    process: subprocess.Popen[bytes]
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    threads: list[threading.Thread] = field(default_factory=list)
    hit: bool = False
    """What was to happen happened while the process ran."""
    reached: bool = False
    """... and at its named moment."""

    def read(self) -> None:
        for stream, kept in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            thread = threading.Thread(target=self._read, args=(stream, kept), daemon=True)
            thread.start()
            self.threads.append(thread)

    def _read(self, stream: Any, kept: bytearray) -> None:
        try:
            while chunk := os.read(stream.fileno(), 65536):
                kept += chunk
        except (OSError, ValueError):
            pass

    def lines(self) -> list[bytes]:
        return bytes(self.out).split(b"\n")[:-1]

    def at(self, moment: str) -> bool:
        if moment == "question":
            return b'"can_use_tool"' in self.out
        return moment in self.model.seen or (self.folder / moment).exists()

    @property
    def results(self) -> list[dict[str, Any]]:
        found = []
        for line in self.lines():
            if b'"result"' in line:
                try:
                    value = json.loads(line)
                except ValueError:
                    continue
                found += [value] if isinstance(value, dict) and value.get("type") == "result" else []
        return found


def start(case: Case, folder: Path, model: Model, url: str) -> Run:
    (folder / ".claude").mkdir()
    hooks: dict[str, Any] = {"SessionEnd": [{"hooks": [{"type": "command", "command": "touch in-end; sleep 0.2; touch ended"}]}],
                             "SessionStart": [{"hooks": [{"type": "command", "command": "touch began"}]}]}
    if case.work == "hook":
        hooks["PreToolUse"] = [{"hooks": [{"type": "command", "command": f"touch in-hook; sleep {case.long}"}]}]
    (folder / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    args = ["go", "--output-format", case.format] if case.format != "both ways" else [
        "--output-format", "stream-json", "--input-format", "stream-json"]
    args += ["--verbose"] if case.format in ("stream-json", "both ways") else []
    if case.work == "question":
        args += ["--permission-prompt-tool", "stdio"]
    else:
        args += ["--allowedTools", "Bash", "Agent", "mcp__slow__wait"]
    if "mcp" in case.work:
        (folder / "server.py").write_text(SERVER)
        words = [str(folder / "server.py"), case.long, *(["stubborn"] if "stubborn" in case.work else [])]
        args += ["--mcp-config", json.dumps({"mcpServers": {"slow": {"command": sys.executable, "args": words}}})]
    stdin = subprocess.PIPE if case.format == "both ways" else subprocess.DEVNULL
    process = subprocess.Popen([sys.executable, "-m", "kernel", "-p", *args], cwd=folder, env=environment(folder, url),
                               stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    if process.stdin is not None:
        process.stdin.write(json.dumps({"type": "user", "message": {"role": "user", "content": "go"}}).encode() + b"\n")
        process.stdin.flush()
    return Run(case, folder, model, process)


def environment(folder: Path, url: str) -> dict[str, str]:
    return {"HOME": str(folder / ".home"), "CLAUDE_CONFIG_DIR": str(folder / ".config"), "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8", "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k", "ENABLE_TOOL_SEARCH": "false",
            MARK: folder.name, "CLAUDE_CODE_TMPDIR": str(folder)}


def wait(run: Run, condition: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if run.process.poll() is not None or time.monotonic() > until:
            return False
        time.sleep(0.003)
    return True


def happen(run: Run, chance: random.Random) -> None:
    """Wait for the moment, then do it."""
    case, process = run.case, run.process
    if isinstance(case.moment, str):
        moment = case.moment
        if moment == "in-end" and process.stdin is not None:  # the session ends with its input
            wait(run, lambda: bool(run.results), PATIENCE_S)
            process.stdin.close()
        run.reached = wait(run, lambda: run.at(moment), PATIENCE_S)
        time.sleep(case.extra)
    else:
        time.sleep(case.moment)
    run.hit = process.poll() is None
    if case.signals:
        for number, sent in enumerate(case.signals):
            time.sleep(chance.uniform(0.0, 0.2) if number else 0.0)
            process.send_signal(sent)
    elif case.action == "close stdin" and process.stdin is not None and not process.stdin.closed:
        process.stdin.close()
    elif case.action == "close stdout":
        assert process.stdout is not None
        process.stdout.close()
    if process.stdin is not None and not process.stdin.closed and case.action in ("int", "int int", "close stdout"):
        wait(run, lambda: bool(run.results), 15.0)  # a program ends its input when it has what it wants; of two signals that
        # come at once the system may deliver one
        process.stdin.close()


def in_the_middle(run: Run) -> bool:
    """The turn was on, and would have gone on for long."""
    return run.reached and run.case.moment not in ("streaming", "in-end", "request") and run.case.work != "background" and (
        run.case.work == "question" or run.case.command != "left behind" or run.case.moment != "in-tool")


def allowed(run: Run) -> set[int]:
    """Exit codes that are documented for what happened; a signal that nobody hears yet ends the process as the shell shows it."""
    case = run.case
    done = {1 if run.results[-1]["is_error"] else 0} if run.results else {0, 1}
    if not run.hit:
        return {0, 1}
    middle = in_the_middle(run)
    late = set() if middle else {0, 1}  # it may have come behind the end
    if case.action == "int":
        return ({1} if middle else {0, 1, 130}) if not run.results else done | ({130} if not run.reached else set())
    if case.action == "int int":
        return {130} | ({1} if run.results or not middle else set()) | late
    if case.signals:
        return {128 + case.signals[0]} | late
    return done if case.action == "close stdin" else {0, 1}


def left(folder: Path) -> list[str]:
    """Processes of the run that are alive: its variable in their environment, or its folder in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
            if state not in "ZX" and (f"{MARK}={folder.name}\0".encode() in (entry / "environ").read_bytes() + b"\0"
                                      or f"{folder}/".encode() in words):
                found.append(f"{entry.name} {words.decode(errors='replace').strip()[:80]}")
        except OSError:
            continue
    return found


def one(case: Case, root: Path, seed: int) -> list[str]:
    """What does not hold; empty where all does."""
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=root))
    model = Model(case)
    with answering(model) as url:
        run = start(case, folder, model, url)
        run.read()
        happen(run, random.Random(seed))
        try:
            code = run.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            alive = left(folder)
            kill(folder)
            run.process.wait()
            return [f"it did not end within {PATIENCE_S:g} s; there were: {alive}"]
        code = 128 - code if code < 0 else code
        wrong = [] if code in allowed(run) else [f"exit code {code}, expected one of {sorted(allowed(run))}"]
        until = time.monotonic() + GONE_S
        while (alive := left(folder)) and time.monotonic() < until:
            time.sleep(0.02)
        if alive:
            wrong.append(f"left: {alive}")
            kill(folder)
        for thread in run.threads:
            thread.join(5)
        wrong += output(run, code)
        wrong += resume(run, url)
        return wrong


def kill(folder: Path) -> None:
    for line in left(folder):
        try:
            os.kill(int(line.split()[0]), signal.SIGKILL)
        except OSError:
            pass


def output(run: Run, code: int) -> list[str]:
    case, wrong = run.case, []
    if case.format != "text" and case.action != "close stdout":
        if run.out and not run.out.endswith(b"\n"):
            wrong.append(f"stdout ends in the middle of a line: {bytes(run.out[-60:])!r}")
        for line in run.lines():
            try:
                json.loads(line)
            except ValueError:
                wrong.append(f"stdout holds what is no JSON: {line[:80]!r}")
    if code in (128 + signal.SIGTERM, 128 + signal.SIGHUP) and in_the_middle(run) and run.results:
        wrong.append("a result was written, although the turn was ended")
    said = run.err.decode(errors="replace")
    if "Traceback" in said or "kernel-crash" in said or "unexpected fault" in said:
        wrong.append(f"stderr: {said[-1500:]}")
    if run.reached and (run.folder / "began").exists() and not (run.folder / "ended").exists():
        wrong.append("SessionEnd hooks did not run")
    return wrong


def resume(run: Run, url: str) -> list[str]:
    """Go on with the conversation, where there is one."""
    paths = [path for path in (run.folder / ".config").glob("projects/*/*.jsonl") if b'"type":"user"' in path.read_bytes()]
    wrong = [f"a request is not legal: {fault}" for fault in run.model.illegal]
    if not paths:
        return [*wrong, "there is no conversation to resume"] if run.reached else wrong
    run.model.resumed, run.model.illegal = True, []
    (run.folder / ".claude" / "settings.json").unlink()
    command = [sys.executable, "-m", "kernel", "-p", "go on", "--resume", paths[0].stem, "--output-format", "json"]
    done = subprocess.run(command, cwd=run.folder, env=environment(run.folder, url), stdin=subprocess.DEVNULL,
                          capture_output=True, check=False, timeout=PATIENCE_S)
    if done.returncode or json.loads(done.stdout).get("result", "").strip() != "resumed":
        wrong.append(f"resume: exit code {done.returncode}, {done.stdout[-300:]!r} {done.stderr[-600:]!r}")
    return [*wrong, *(f"the resumed request is not legal: {fault}" for fault in run.model.illegal)]


# -- all of them -------------------------------------------------------------------------------------------------------------
def measure(number: int, seed: int, beside: int, only: int | None = None) -> dict[str, Any]:
    began = time.monotonic()
    chosen = list(enumerate(cases(number, seed)))
    chosen = chosen if only is None else [chosen[only]]
    failures: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="kernel-signals-", ignore_cleanup_errors=True) as place:
        def go(item: tuple[int, Case]) -> None:
            index, case = item
            try:
                wrong = one(case, Path(place), seed + index)
            except Exception as error:
                wrong = [f"{type(error).__name__}: {error}"]
            if wrong:
                failures[f"case {index}: {case}"] = wrong
                print(f"\n  case {index}: {case}\n    " + "\n    ".join(wrong), file=sys.stderr, flush=True)
            print("F" if wrong else ".", end="", file=sys.stderr, flush=True)

        with ThreadPoolExecutor(beside) as pool:
            list(pool.map(go, chosen))
    print(file=sys.stderr)
    return {"seed": seed, "cases": len(chosen), "by action": Counter(case.action for _, case in chosen),
            "by work": Counter(case.work for _, case in chosen), "failures": failures,
            "seconds": round(time.monotonic() - began, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signals", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=200, help="so many runs (default 200)")
    parser.add_argument("--seed", type=int, default=None, help="which cases; chosen and printed without it")
    parser.add_argument("--case", type=int, default=None, help="this one of them alone")
    parser.add_argument("--beside", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 31) if options.seed is None else options.seed
    print(f"seed {seed}", file=sys.stderr)
    found = measure(options.n, seed, options.beside, options.case)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{found['cases']} runs in {found['seconds']} s, seed {seed}: in {len(found['failures'])} something does not hold")
        again = f"python -m benchmarks.signals --n {options.n} --seed {seed} --case"
        print("".join(f"  {shlex.quote(name)}: {'; '.join(wrong)[:300]}\n" for name, wrong in found["failures"].items())
              + (f"{again} N\n" if found["failures"] else ""), end="")
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
