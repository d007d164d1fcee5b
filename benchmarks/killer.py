"""``python -m benchmarks.killer``: a run is killed at every write of its transcript, and resumed.

The run has parallel tools, hooks that add context, a compaction that the full window forces and one that is typed. Each write is
a boundary three times: SIGKILL before it, in its middle, and behind it. After each kill another process resumes. What must hold:

- what the program was told of (every message on its stream) is in the conversation that is resumed;
- the first request obeys the pairing rules of the API;
- the effect ledger, which the tool writes by itself, holds no call id twice and no call with a recorded result once more;
- the run comes to its end, and every effect is there.

``--kills N`` takes N of the boundaries, spread evenly; the exit code is 1 where anything does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from kernel_sessions.chain import Graph
from kernel_sessions.reader import read

from benchmarks.pairing import faults
from kernel import Tool, ToolContext, ToolResult, encode_output
from kernel.testing import Kit, ScriptedModel, Turn, call, module, text

STEPS = 9
BESIDE = 4
"""Calls of one step, side by side."""
MODES = ("before", "middle", "behind")
WINDOW = 200_000


class Effect(Tool):
    name = "Effect"
    description = "Has an effect."
    input_schema = {"type": "object", "properties": {"key": {"type": "string"}}}
    permission = "free"

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        self._note("begun", input["key"], context.call_id)
        await anyio.lowlevel.checkpoint()
        self._note("done", input["key"], context.call_id)
        return ToolResult(content=f"effect {input['key']} done " + "x" * 200)

    def _note(self, what: str, key: str, call_id: str) -> None:
        fd = os.open(self._ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(fd, f"{what} {key} {call_id}\n".encode())
        os.close(fd)


class Worker(ScriptedModel):
    """Does what is left to do: looks into the conversation for what is done, as a model would."""

    def __init__(self, process: str, full_at: int | None) -> None:
        super().__init__([])
        self._process, self._full_at, self._count = process, full_at, 0
        self.invalid: list[str] = []

    async def stream(self, request: Any) -> Any:
        messages = request.history.wire()
        if not self.invalid and (found := faults(messages)):
            self.invalid = [f"request {self._count + 1}: {fault}" for fault in found]
        self.turns.append(self._turn(messages))
        async for event in super().stream(request):
            yield event

    def _turn(self, messages: list[dict[str, Any]]) -> Any:
        said = json.dumps(messages)
        done = finished(messages)
        if "Sum up this conversation" in json.dumps(messages[-1]):
            return text(f"<summary>DONE[{' '.join(sorted(done))}]</summary>")
        self._count += 1
        goal = max([int(word) for word in said.replace('"', " ").split() if word.isdigit() and len(word) == 1] or [STEPS])
        for step in range(goal):
            left = [key for n in range(BESIDE) if (key := f"s{step}e{n}") not in done]
            if left:
                usage = {"input_tokens": WINDOW - 5_000 if self._count == self._full_at else 10, "output_tokens": 1}
                calls = [call("Effect", f"{self._process}_{self._count}_{key}", key=key) for key in left]
                return Turn(blocks=[text("I go on."), *calls], usage=usage)
        return text("All is done.")


def finished(messages: list[dict[str, Any]]) -> set[str]:
    """Keys of the effects whose results the conversation holds, itself or in a summary."""
    keys: dict[str, str] = {}
    done: set[str] = set()
    for message in messages:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "tool_use":
                keys[block["id"]] = block["input"]["key"]
            elif block["type"] == "tool_result" and not block.get("is_error"):
                done.add(keys[block["tool_use_id"]])
            elif block["type"] == "text" and "DONE[" in block["text"]:
                done.update(block["text"].partition("DONE[")[2].partition("]")[0].split())
    return done


def hooks() -> Any:
    from kernel import PostToolUseResult, SessionStartResult, StopResult, UserPromptSubmitResult

    return module(session_start=lambda event: SessionStartResult(additional_context="the session began"),
                  user_prompt_submit=lambda event: UserPromptSubmitResult(additional_context="a prompt came"),
                  post_tool_use=lambda event: PostToolUseResult(additional_context=f"seen {event.tool_use_id}"),
                  pre_tool_use=lambda event: None, stop=lambda event: StopResult())


def kit(root: Path, process: str, full_at: int | None, **options: Any) -> tuple[Kit, Worker]:
    model = Worker(process, full_at)
    made = Kit(root / "work", model=model, tools=[Effect(root / "ledger")], installed=["sessions", "compactor"],
               hooks={"ears": hooks()}, persist=True, **options)
    return made, model


def play(root: Path, process: str, prompts: list[str], tell: int, full_at: int | None, **options: Any) -> dict[str, Any]:
    """Run the prompts; every message goes to ``tell`` when the program hears of it."""
    made, model = kit(root, process, full_at, **options)

    async def go() -> dict[str, Any]:
        session = made.harness.open(lambda message: _send(tell, encode_output(message)))
        result: Any = None
        for prompt in prompts:
            result = await session.submit(prompt)
        await session.close()
        return {"session": session.id, "subtype": result.subtype, "text": result.result, "invalid": model.invalid,
                "announced": made.harness.announced}

    return anyio.run(go)


def _send(fd: int, data: bytes) -> None:
    data += b"\n"
    while data:
        data = data[os.write(fd, data):]


def in_fork(work: Any) -> tuple[int, list[dict[str, Any]]]:
    """Run in a process of its own: its exit status, and the JSON lines that it sent."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(ours)
            _send(theirs, json.dumps({"end": work(theirs)}).encode())
            code = 0
        except BaseException as error:
            _send(theirs, json.dumps({"failed": repr(error)}).encode())
        finally:
            os._exit(code)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        raw = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status, [json.loads(line) for line in raw.split(b"\n") if line.endswith(b"}")]


class Killer:
    """Stands in for ``os.write`` and kills the process at one write to a transcript."""

    def __init__(self, number: int | None, mode: str) -> None:
        self.count = 0
        self._number, self._mode = number, mode
        self._write = os.write
        os.write = self  # type: ignore[assignment]

    def __call__(self, fd: int, data: bytes) -> int:
        if not os.readlink(f"/proc/self/fd/{fd}").endswith(".jsonl"):
            return self._write(fd, data)
        self.count += 1
        if self.count == self._number:
            if self._mode != "before":
                self._write(fd, data if self._mode == "behind" else data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return self._write(fd, data)


PROMPTS = ["go to 6", "/compact", f"go to {STEPS}"]
FULL_AT = 3


def first_run(root: Path, number: int | None, mode: str) -> tuple[int, list[dict[str, Any]], int]:
    """The run that is killed at that write (``None``: it is not); and how many writes it made."""
    os.environ["CLAUDE_CONFIG_DIR"] = str(root / "config")
    (root / "work").mkdir(exist_ok=True)

    def work(fd: int) -> dict[str, Any]:
        killer = Killer(number, mode)
        return {**play(root, "a", PROMPTS, fd, FULL_AT), "writes": killer.count}

    status, told = in_fork(work)
    end = next((m["end"] for m in told if "end" in m), {})
    return status, [m for m in told if "uuid" in m], int(end.get("writes", 0))


def one_kill(root: Path, number: int, mode: str) -> list[str]:
    """What does not hold after that kill; empty where all does."""
    status, told, _ = first_run(root, number, mode)
    if status != -signal.SIGKILL:
        return [f"the process was not killed: {status}"]
    wrong: list[str] = []
    paths = list((root / "config").glob("projects/*/*.jsonl"))
    heard = [m["uuid"] for m in told if m["type"] in ("assistant", "user") and not m.get("isSynthetic")]
    if not paths:
        return ["what was told is nowhere"] if heard else []
    (path,) = paths
    before = ledger(root)
    recorded = answered(path)
    kept = conversation(path)
    wrong += [f"message {uuid} was told and is lost" for uuid in heard if uuid not in kept]
    if not recorded and not kept:  # killed before anything was said: there is nothing to resume
        return wrong
    status, said = in_fork(lambda fd: play(root, "b", [f"go to {STEPS}"], fd, None, resume=path.stem))
    end = next((m["end"] for m in said if "end" in m), None)
    if end is None:
        return [*wrong, f"resume failed ({status}): {next((m['failed'] for m in said if 'failed' in m), '?')}"]
    wrong += end["invalid"]
    if end["subtype"] != "success" or end["text"] != "All is done.":
        wrong.append(f"the resumed run ended with {end['subtype']}: {end['text']!r}")
    torn = [t for t in end["announced"] if "incomplete" in t]
    if mode != "middle" and end["announced"]:
        wrong.append(f"announced: {end['announced']}")
    if mode == "middle" and len(torn) != len(end["announced"]):
        wrong.append(f"announced: {end['announced']}")
    after = ledger(root)
    ids = Counter(call_id for what, _, call_id in after if what == "begun")
    wrong += [f"the call {call_id} ran {count} times" for call_id, count in ids.items() if count > 1]
    done = Counter(key for what, key, _ in after if what == "done")
    wrong += [f"the effect {key} was recorded as done and ran again" for key in recorded if done[key] != 1]
    wrong += [f"the effect s{s}e{n} is missing" for s in range(STEPS) for n in range(BESIDE) if not done[f"s{s}e{n}"]]
    if after[: len(before)] != before:
        wrong.append("the ledger was rewritten")
    return wrong


def ledger(root: Path) -> list[tuple[str, str, str]]:
    path = root / "ledger"
    return [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() else []  # type: ignore[misc]


def conversation(path: Path) -> set[str]:
    """Uuids of the active conversation, what compactions closed included."""
    graph = Graph(read(path))
    chain = graph.active()
    return {line.uuid for lines in (*graph.before_compaction(chain), chain.lines) for line in lines}


def answered(path: Path) -> set[str]:
    """Keys of the effects whose results are in the file."""
    keys: dict[str, str] = {}
    done: set[str] = set()
    for line in read(path).lines:
        content = (line.entry.get("message") or {}).get("content")
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_use":
                keys[block["id"]] = block["input"]["key"]
            elif block["type"] == "tool_result" and not block.get("is_error"):
                done.add(keys[block["tool_use_id"]])
    return done


def measure(kills: int | None) -> dict[str, Any]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kernel-kill-") as place:
        root = Path(place)
        (root / "whole").mkdir()
        status, told, writes = first_run(root / "whole", None, "")
        compactions = sum(1 for m in told if m.get("subtype") == "compact_boundary")
        if status or not writes:
            sys.exit(f"the run without a kill failed: {status}")
        every = [(number, mode) for number in range(1, writes + 1) for mode in MODES]
        wanted = len(every) if kills is None else min(kills, len(every))
        chosen = [every[round(n * (len(every) - 1) / max(wanted - 1, 1))] for n in range(wanted)]
        failures: dict[str, list[str]] = {}
        for number, mode in chosen:
            folder = root / f"{number}-{mode}"
            folder.mkdir()
            if wrong := one_kill(folder, number, mode):
                failures[f"{mode} write {number}"] = wrong
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {"writes": writes, "boundaries": len(every), "kills": len(chosen), "compactions": compactions, "failures": failures,
            "seconds": round(time.monotonic() - began, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.killer", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=None, help="so many boundaries instead of all")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.kills)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{found['kills']} kills at {found['writes']} writes of a run with {found['compactions']} compactions, "
              f"{found['seconds']} s: {len(found['failures'])} where something does not hold")
        for where, wrong in found["failures"].items():
            print(f"  {where}: {'; '.join(wrong[:3])}")
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
