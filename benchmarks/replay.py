"""``python -m benchmarks.replay``: generated runs are recorded and replayed; each has to be the same byte for byte.

A run has several prompts and many of: tools that run side by side, hooks that are commands and answer (context, a refusal, a
rewrite, a stop that is blocked), subagents in the foreground, side by side and in the background, commands in the background, a
typed compaction, ``/clear``, requests that fail and are tried again, an interrupt. All default plugins take part; tools, hooks
and subagents are real while it is recorded. The model is scripted, with the delays of a quick one (``--delay``: 30 to 200 ms for
each answer), so *real speed* is that of a model that answers at once, not of one that thinks.

Compared are: the messages as ``stream-json`` writes them (with what was really written then), each request, each transcript
entry, each step. The speed is recorded time to replayed time, both from the opening of the conversation to its end, in processes
that have imported the plugins before. The exit code is 1 where a run differs or the speed is below ``--bar``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import anyio
from kernel_replay.extension import record
from kernel_replay.recording import load
from kernel_replay.replay import Report, replay
from kernel_replay.setting import harness_of, surroundings

from kernel import Harness, Options, Output, Session, encode_output

HOOKS = {
    "PreToolUse": """
import json, sys
event = json.load(sys.stdin)
command = event["tool_input"].get("command", "")
out = {"hookEventName": "PreToolUse"}
if "forbidden" in command:
    out |= {"permissionDecision": "deny", "permissionDecisionReason": "not that"}
elif "rewrite" in command:
    out |= {"permissionDecision": "allow", "updatedInput": {**event["tool_input"], "command": "echo rewritten"}}
else:
    out |= {"additionalContext": "seen " + event["tool_use_id"]}
print(json.dumps({"hookSpecificOutput": out}))
""",
    "PostToolUse": """
import json, sys
event = json.load(sys.stdin)
out = {"hookEventName": "PostToolUse", "additionalContext": f"took {event['duration_ms'] >= 0}"}
print(json.dumps({"hookSpecificOutput": out}))
""",
    "Stop": """
import json, sys
event = json.load(sys.stdin)
print(json.dumps({"decision": "block", "reason": "say it again"}) if not event["stop_hook_active"]
      and "again" in (event.get("last_assistant_message") or "") else "{}")
""",
}


class Plan:
    """One generated run: its script, its settings, what is asked of the session. ``kinds``: what it has in it."""

    def __init__(self, seed: int, folder: Path, delays: tuple[float, float]) -> None:
        self.folder = folder
        self.random = random.Random(seed)  # a plan, no secret
        self.delays = delays
        self.kinds: Counter[str] = Counter()
        self.turns: list[dict[str, Any]] = []
        self.asked: list[tuple[str, Any]] = []
        self._calls = 0
        self._agents = 0
        for _ in range(self.random.randint(2, 4)):
            self._prompt()
        self._write(self.random.random() < 0.7)

    def _turn(self, **fields: Any) -> None:
        self.turns.append({"delay": round(self.random.uniform(*self.delays), 3), **fields})

    def _prompt(self) -> None:
        draw = self.random
        number = len(self.asked)
        self.asked.append(("submit", f"prompt {number}: {'word ' * draw.randint(1, 20)}"))
        for _ in range(draw.randint(1, 3)):
            if draw.random() < 0.2:
                self.kinds["retries"] += 1
                self._turn(fail={"status": draw.choice([429, 500, 529]), "retry_after": 0.05})
            calls = [self._call() for _ in range(draw.choice([1, 2, 3, 5]))]
            self.kinds["parallel"] += len(calls) > 1
            self._turn(text=f"Step of {number}.", calls=calls)
        again = draw.random() < 0.15
        self._turn(text="I say it again." if again else f"Done with {number}.", thinking="Hm." if draw.random() < 0.3 else None)
        if again:
            self._turn(text="Said.")
        if draw.random() < 0.25:
            self.kinds["compactions"] += 1
            self.asked.append(("submit", "/compact keep the numbers"))
            self._turn(text="<summary>What happened so far.</summary>")
        elif draw.random() < 0.1:
            self.kinds["clears"] += 1
            self.asked.append(("clear", None))
        elif draw.random() < 0.12:
            self.kinds["interrupts"] += 1
            self.asked.append(("interrupt", "prompt that is interrupted"))
            self._turn(text="I begin.", calls=[{"tool": "Bash", "input": {"command": "sleep 5"}}])

    def _call(self) -> dict[str, Any]:
        draw = self.random
        self._calls += 1
        name = f"file{draw.randint(0, 3)}.txt"
        kind = draw.choices(["read", "bash", "glob", "write", "deny", "rewrite", "agent", "background", "missing", "agent-bg"],
                            [5, 5, 2, 2, 1, 1, 3, 0.5, 1, 1])[0]
        self.kinds[kind] += 1
        if kind == "read":
            return {"tool": "Read", "input": {"file_path": name}}
        if kind == "glob":
            return {"tool": "Glob", "input": {"pattern": "*.txt"}}
        if kind == "write":
            return {"tool": "Write", "input": {"file_path": f"new{self._calls}.txt", "content": f"{self._calls}\n"}}
        if kind == "missing":
            return {"tool": "Read", "input": {"file_path": "not-there.txt"}}
        if kind in ("agent", "agent-bg"):
            return self._agent(background=kind == "agent-bg")
        command = {"deny": "echo forbidden", "rewrite": "echo rewrite me", "background": "sleep 0.1; echo behind"}.get(
            kind, f"sleep 0.0{draw.randint(1, 9)}; echo {self._calls} $RANDOM; date +%N")
        return {"tool": "Bash", "input": {"command": command, **({"run_in_background": True} if kind == "background" else {})}}

    def _agent(self, background: bool) -> dict[str, Any]:
        self._agents += 1
        task = f"agent task {self._agents} of this run"
        when = {"first_contains": task}
        for _ in range(self.random.randint(0, 2)):
            self._turn(when=when, text="I look.", calls=[{"tool": "Read", "input": {"file_path": "file0.txt"}}] + (
                [{"tool": "Bash", "input": {"command": "echo $$"}}] if self.random.random() < 0.5 else []))
        self._turn(when=when, text=f"Report {self._agents}.")
        return {"tool": "Agent", "input": {"description": "a task", "prompt": task, "subagent_type": "general-purpose",
                                           **({"run_in_background": True} if background else {})}}

    def _write(self, hooks: bool) -> None:
        self.folder.mkdir(parents=True)
        for n in range(4):
            (self.folder / f"file{n}.txt").write_text(f"line {n}\n" * (n + 1))
        (self.folder / "CLAUDE.md").write_text("Be brief.\n")
        plain = [{k: v for k, v in turn.items() if v is not None} for turn in self.turns]
        (self.folder / "talk.yaml").write_text(json.dumps({"name": "talk", "turns": plain}))
        if hooks:
            self.kinds["hooks"] += 1
            settings = {"hooks": {}}  # type: dict[str, Any]
            for event, source in HOOKS.items():
                (self.folder / f"{event}.py").write_text(source)
                settings["hooks"][event] = [{"matcher": "Bash|Read" if event != "Stop" else "", "hooks": [
                    {"type": "command", "command": f"{sys.executable} -S {self.folder / event}.py"}]}]
            (self.folder / ".claude").mkdir()
            (self.folder / ".claude" / "settings.json").write_text(json.dumps(settings))


async def recorded(plan: Plan, path: Path) -> list[bytes]:
    """Play the plan for real; the messages as a program would have got them."""
    lines: list[bytes] = []

    def take(message: Output) -> None:
        lines.append(encode_output(message))

    (Path(os.environ["CLAUDE_CONFIG_DIR"])).mkdir(parents=True, exist_ok=True)
    harness = Harness(Options(cwd=plan.folder, model=f"script:{plan.folder}/talk.yaml", permission_mode="bypassPermissions",
                              input_format="stream-json", output_format="stream-json", verbose=True))
    record(harness, path)
    session = harness.open(take)
    for what, given in plan.asked:
        if what == "clear":
            await session.clear()
        elif what == "interrupt":
            async with anyio.create_task_group() as group:
                group.start_soon(session.submit, given)
                await anyio.sleep(plan.delays[1] + 0.2)
                session.interrupt()
        else:
            await session.submit(given)
        await _deliver(session)
    await session.close()
    return lines


async def _deliver(session: Session) -> None:
    while len(session.inbox) or session.inbox.awaited:
        if len(session.inbox):
            await session.submit(None, origin=session.inbox.origin)
        elif not await session.inbox.wait(20):
            return


async def again(path: Path, live: tuple[str, ...] = ()) -> Report:
    """Replay it in this process."""
    recording = load(path)
    with surroundings(recording) as stand_ins:
        return await replay(recording, harness_of(recording), stand_ins=stand_ins, live=live, patience=10)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=None, help="of the first run; the others count on")
    parser.add_argument("--delay", type=float, nargs=2, default=(0.03, 0.2), metavar="S",
                        help="seconds of an answer, from and to")
    parser.add_argument("--bar", type=float, default=20, help="times real speed that all runs together must reach")
    parser.add_argument("--keep", type=Path, help="keep folders and recordings here")
    parser.add_argument("--beside", type=int, default=4, help="runs that are recorded at the same time")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 30)
    root = given.keep or Path(tempfile.mkdtemp(prefix="kernel-replays-"))
    root.mkdir(parents=True, exist_ok=True)
    before = dict(os.environ)
    os.environ.update(IS_SANDBOX="1", CLAUDE_CONFIG_DIR=str(root / "home"))
    try:
        found = anyio.run(measured, root, seed, given.runs, tuple(given.delay), given.beside,
                          (lambda text: print(text, end="", file=sys.stderr, flush=True)))
    finally:
        os.environ.clear()
        os.environ.update(before)
        if given.keep is None:
            shutil.rmtree(root, ignore_errors=True)
    found["bar"] = given.bar
    print(json.dumps(found, indent=1) if given.json else "\n".join(f"{k:<12} {v}" for k, v in found.items()))
    return 0 if found["identical"] == given.runs and found["speed"] >= given.bar else 1


async def measured(root: Path, seed: int, runs: int, delays: tuple[float, float], beside: int,
                   say: Callable[[str], None]) -> dict[str, Any]:
    """Record and replay so many runs; what came of it."""
    plans = [Plan(seed + n, root / f"run{n}", delays) for n in range(runs)]
    written: dict[int, list[bytes]] = {}
    limit = anyio.Semaphore(beside)

    async def one(number: int) -> None:
        async with limit:
            written[number] = await recorded(plans[number], root / f"run{number}.jsonl")
            say(".")

    began = time.monotonic()
    async with anyio.create_task_group() as group:
        for number in range(runs):
            group.start_soon(one, number)
    say(f" recorded in {time.monotonic() - began:.0f} s\n")
    kinds: Counter[str] = Counter()
    failures: dict[int, list[str]] = {}
    speeds, real, took, steps = [], 0.0, 0.0, 0
    for number, plan in enumerate(plans):
        kinds.update(plan.kinds)
        report = await again(root / f"run{number}.jsonl")
        if report.difference is not None:
            failures[seed + number] = report.difference.lines()
        elif report.lines != written[number]:
            failures[seed + number] = ["the outputs are not those that were written"]
        say("." if seed + number not in failures else "F")
        speeds.append(report.speed)
        real, took, steps = real + report.recorded, took + report.took, steps + report.of
    say("\n")
    return {"runs": runs, "identical": runs - len(failures), "seed": seed, "failures": failures,
            "kinds": dict(sorted(kinds.items())), "events": steps, "recorded": round(real, 1), "replayed": round(took, 1),
            "speed": round(real / took, 1), "median": round(median(speeds), 1), "slowest": round(min(speeds), 1)}


if __name__ == "__main__":
    sys.exit(main())
