"""``python -m benchmarks.context``: what compaction keeps, what the prompt cache keeps, and what long runs cost.

- **long runs** (``--runs``): a person asks three things, pins two texts and types a third; the model makes 60 to 120 calls in a
  window that overflows several times. Its summaries say nothing at all. What must hold: every pin stands byte for byte in each
  request behind a compaction; of the facts that were planted in prompts and results at least 95 % can be reached from the last
  request (they stand in it, or in a file or folder that it names by its path); in at least 99 % of the requests without a
  compaction before them the whole prefix is as it was, byte for byte.
- **own work**: compaction of 2,000 messages without the model: at most 200 ms, and as a ratio to encoding them once.
- **many turns** (``--turns``): memory behind turn 1,000 grows by at most 20 MB, and the last tenth takes at most 1.2 times the
  second one (CPU time).
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import anyio
from kernel_compactor.state import state
from msgspec import Struct, field

from benchmarks.answering import Answering, Found
from kernel import History, text_block
from kernel.testing import Kit, call, text

FACTS = 200
LENGTHS = (500,) * 6 + (3_000,) * 6 + (9_000,) * 6 + (70_000,)
"""Characters of results; the longest are cut and kept in a file when they are made."""
_FOLDER = re.compile(r"are whole in (/[^\n]+?/tool-results),")
_PATH = re.compile(r"(/[^\s\"'\\\]):]+\.(?:txt|jsonl))")


# -- long runs -------------------------------------------------------------------------------------------------------------
class Seen(Struct):
    """What was seen over all long runs."""

    compactions: int = 0
    calls: int = 0
    pins: int = 0
    pins_lost: int = 0
    facts: int = 0
    in_request: int = 0
    in_files: int = 0
    """In a file that the last request names."""
    in_folders: int = 0
    """In a folder that it names, and not in such a file."""
    worst: float = 1.0
    plain: int = 0
    """Requests before which nothing was compacted or cleared, the first of a run left out."""
    stable: int = 0
    least: int = 10**9
    """Compactions of the run that had fewest."""
    broken: list[str] = field(default_factory=list)


class Watched(Answering):
    """Calls on until its results are used up, and compares each request with the one before."""

    def __init__(self, draw: random.Random, calls: int, seen: Seen, pins: list[str]) -> None:
        super().__init__()
        self.draw, self.left, self.seen, self.pins = draw, calls, seen, pins
        self.at = 0
        self.stops = {calls // 3, 2 * calls // 3}
        self.session: Any = None
        self.before: tuple[int, bytes, Any, Any] | None = None

    def size(self, request: Any) -> int:
        return len(request.history.encode()) // 4

    def next_turn(self) -> list[dict[str, Any]]:
        if not self.left or self.at in self.stops:
            self.stops.discard(self.at)
            return [text("so far")]
        most = min((s - self.at for s in self.stops if s > self.at), default=self.left)
        count = min(self.draw.choice((1, 1, 1, 2, 3)), self.left, most)
        self.left -= count
        self.at += count
        said = text(_noise(self.draw, self.draw.choice((500, 2_000, 8_000))))
        return [said, *(call("Found", n=self.at - count + k) for k in range(count))]

    def looks_at(self, request: Any) -> None:
        raw = request.history.encode()
        done = len(state(self.session).receipts)
        if self.before is not None and self.before[0] == done:
            self.seen.plain += 1
            same = raw.startswith(self.before[1][:-3]) and self.before[2:] == (request.tools, request.system)
            self.seen.stable += same
        self.before = (done, raw, request.tools, request.system)
        self.last = request
        if any(r["stage"] == "compact" for r in state(self.session).receipts):
            self._hold_pins(request)

    def _hold_pins(self, request: Any) -> None:
        whole = "\n".join(b["text"] for role, blocks in request.history.messages if role == "user"
                          for b in blocks if b["type"] == "text")
        for pin in self.pins:
            self.seen.pins += 1
            self.seen.pins_lost += f"<pin>{pin}</pin>" not in whole


async def long_run(seed: str, place: Path, seen: Seen) -> None:
    draw = random.Random(seed)
    calls = draw.randint(60, 120)
    facts = [f"FACT-{seed}-{n} is {draw.getrandbits(40):x}" for n in range(FACTS)]
    told = [_noise(draw, length).split() for length in [400] * 3 + draw.choices(LENGTHS, k=calls)]
    for number, fact in enumerate(facts):
        words = told[number % 3 if number < 10 else draw.randrange(3, len(told))]
        words.insert(draw.randrange(len(words)), fact)
    prompts, texts = [" ".join(words) for words in told[:3]], [" ".join(words) for words in told[3:]]
    pins = [f"{draw.choice(ODD)}{draw.getrandbits(30)}{draw.choice(ODD)}" for _ in range(2)]
    model = Watched(draw, calls, seen, [])
    plugins = ["compactor", "sessions", "evidence", "tools-tasks"]
    made = Kit(place, model=model, tools=[Found(texts)], installed=plugins, persist=True)
    made.harness.listeners.clear()
    session = model.session = made.harness.open(lambda message: None)
    for number, prompt in enumerate(prompts):
        if number == 1:
            await session.submit("/pin the port is 8443; ask nobody")
            model.pins.append("the port is 8443; ask nobody")
        if number < 2:
            model.pins.append(pins[number])
        result = await session.submit(prompt + (f" <pin>{pins[number]}</pin>" if number < 2 else ""))
        if result.is_error:
            seen.broken.append(f"{seed}: {result.terminal_reason} {result.errors}")
    seen.calls += calls
    compactions = sum(r["stage"] == "compact" for r in state(session).receipts)
    seen.compactions += compactions
    seen.least = min(seen.least, compactions)
    _reach(model.last, facts, seen)
    await session.close()


ODD = ("", "  ", "\t\n", "«", "🙂 ", "</request>", "<pin>", "\\n", "[", '"', "Pinned by the person, word for word:\n", "é\u0301")


def _noise(draw: random.Random, length: int) -> str:
    return " ".join(f"w{draw.getrandbits(24):x}" for _ in range(length // 7))


def _reach(request: Any, facts: list[str], seen: Seen) -> None:
    """Facts that stand in the last request, or in a file that it names."""
    whole = "\n".join(_texts(request.history.messages))
    files = [Path(p).read_text("utf-8", "replace") for p in dict.fromkeys(_PATH.findall(whole)) if Path(p).is_file()]
    here = [fact for fact in facts if fact in whole]
    there = [fact for fact in facts if fact not in whole and any(fact in file for file in files)]
    folders = {p for p in map(Path, _FOLDER.findall(whole)) if p.is_dir()}
    lying = [file.read_text("utf-8", "replace") for folder in folders for file in folder.iterdir()]
    beside = [fact for fact in {*facts} - {*here} - {*there} if any(fact in file for file in lying)]
    seen.facts += len(facts)
    seen.in_request += len(here)
    seen.in_files += len(there)
    seen.in_folders += len(beside)
    seen.worst = min(seen.worst, (len(here) + len(there) + len(beside)) / len(facts))


def _texts(messages: Any) -> list[str]:
    found = []
    for _, blocks in messages:
        for block in blocks:
            found.append(str(block.get("text") or ""))
            content = block.get("content")
            found += [content] if isinstance(content, str) else [str(b.get("text", "")) for b in content or ()]
    return found


@contextmanager
def _home() -> Iterator[Path]:
    """A folder to work in, with a configuration of its own."""
    before = os.environ.get("CLAUDE_CONFIG_DIR")
    with tempfile.TemporaryDirectory(prefix="kernel-context-") as place:
        os.environ["CLAUDE_CONFIG_DIR"] = str(Path(place) / "config")
        try:
            yield Path(place)
        finally:
            if before is None:
                del os.environ["CLAUDE_CONFIG_DIR"]
            else:
                os.environ["CLAUDE_CONFIG_DIR"] = before


def long_runs(runs: int, seed: int) -> Seen:
    seen = Seen()
    for number in range(runs):
        with _home() as place:
            anyio.run(long_run, f"{seed}-{number}", place, seen)
        print(".", end="", file=sys.stderr, flush=True)
    return seen


# -- compaction's own work ---------------------------------------------------------------------------------------------------
def conversation(messages: int, chars: int = 800) -> list[Any]:
    draw = random.Random(1)
    found: list[Any] = [("user", [text_block(_noise(draw, chars) + " <pin>keep me</pin>")])]
    while len(found) < messages - 1:
        id = f"t{len(found)}"
        found.append(("assistant", [{"type": "tool_use", "id": id, "name": "Found", "input": {"n": len(found)}}]))
        found.append(("user", [{"type": "tool_result", "tool_use_id": id, "content": _noise(draw, chars)}]))
    return [*found, ("assistant", [text_block("so far")])]


def own_work(messages: int, times: int) -> dict[str, float]:
    """Milliseconds of one compaction, of clearing, and of encoding the same history once."""
    found = conversation(messages)

    async def go(place: Path) -> dict[str, float]:
        spent: dict[str, list[float]] = {"encode": [], "compact": [], "clear": []}
        for _ in range(times):
            began = time.perf_counter()
            History(found).encode()
            spent["encode"].append(time.perf_counter() - began)
            for what in ("compact", "clear"):
                made = Kit(place, model=Answering(), tools=[Found([])], installed=["compactor"])
                session = made.open()
                await session.submit("hello")
                session.rewrite(found)
                await session.start()
                spent[what].append(await (_compacted if what == "compact" else _cleared)(session))
                await session.close()
        return {what: median(seconds) * 1000 for what, seconds in spent.items()}

    with _home() as place:
        return anyio.run(go, place)


async def _compacted(session: Any) -> float:
    began = time.perf_counter()
    await session.harness.compactor.compact(session, "manual")
    took = time.perf_counter() - began
    assert len(session.history.messages) == 1
    return took


async def _cleared(session: Any) -> float:
    from kernel_compactor import counting
    from kernel_compactor.clearing import clear

    began = time.perf_counter()
    counting.used(session)
    done = clear(session, 50_000)
    assert done is None or done.saved >= 50_000
    if done is not None:
        session.rewrite(done.messages)
    return time.perf_counter() - began


# -- many turns --------------------------------------------------------------------------------------------------------------
class Steady(Answering):
    """One call a turn until there were enough; notes CPU time and memory."""

    def __init__(self, turns: int, window: int) -> None:
        super().__init__(window)
        self.turns, self.at = turns, 0
        self.times: list[float] = []
        self.memory: dict[int, int] = {}
        self.chars = 0

    def looks_at(self, request: Any) -> None:
        self.times.append(time.process_time())
        if self.at in (self.turns // 10, self.turns) and tracemalloc.is_tracing():
            self.memory[self.at] = tracemalloc.get_traced_memory()[0]

    def size(self, request: Any) -> int:
        new = request.history.messages[-2:]
        self.chars = (self.chars if len(request.history) > 2 else 0) + sum(len(str(blocks)) for _, blocks in new)
        return self.chars // 4

    def next_turn(self) -> list[dict[str, Any]]:
        self.at += 1
        return [call("Found", n=self.at)] if self.at <= self.turns else [text("done")]


def many_turns(turns: int, *, window: int = 200_000, memory: bool = False) -> dict[str, float]:
    """``growth_mb`` behind a tenth of the turns (where memory is traced), ``ratio`` of the last tenth to the second one."""
    model = Steady(turns, window)

    async def go(place: Path) -> None:
        made = Kit(place, model=model, tools=[Found([])], installed=["compactor", "guards", "evidence", "sessions"], persist=True)
        session = made.harness.open(lambda message: None)
        result = await session.submit("go")
        assert result.result == "done", (result.terminal_reason, result.errors)
        await session.close()

    with _home() as place:
        if memory:
            tracemalloc.start()
        try:
            anyio.run(go, place)
        finally:
            tracemalloc.stop()
    tenth = turns // 10
    second = model.times[2 * tenth] - model.times[tenth]
    last = model.times[turns] - model.times[turns - tenth]
    found = {"ratio": last / second, "ms_per_turn": last / tenth * 1000, "compactions": float(model.summaries)}
    if memory:
        found["growth_mb"] = (model.memory[turns] - model.memory[tenth]) / 2**20
    return found


def rows(runs: int, turns: int, seed: int) -> list[tuple[str, str, str, bool]]:
    """What was measured, as text; the bound; whether it holds."""
    seen = long_runs(runs, seed)
    reached = (seen.in_request + seen.in_files) / seen.facts
    stable = seen.stable / seen.plain
    work = own_work(2_000, 9)
    time_ = many_turns(turns)
    memory = many_turns(turns, memory=True)
    ended = f"{runs - len(seen.broken)} of {runs}, {seen.calls} calls, {seen.compactions} compactions, {seen.least} at least"
    return [
        ("long runs that ended well", ended, "all", not seen.broken),
        ("pins byte for byte", f"{seen.pins - seen.pins_lost} of {seen.pins} looks", "all", not seen.pins_lost and seen.pins > 0),
        ("facts in the request or a file it names", f"{reached:.2%} of {seen.facts:,} ({seen.in_request / seen.facts:.2%} in "
         "the request)", "at least 95 %", reached >= 0.95),
        ("the same in the worst run, with named folders", f"{seen.worst:.2%}", "at least 95 %", seen.worst >= 0.95),
        ("prefix byte for byte", f"{stable:.2%} of {seen.plain} requests", "at least 99 %", stable >= 0.99),
        *((f"{what} in 2,000 messages", f"{work[what]:.0f} ms, {work[what] / work['encode']:.2f} x encoding them once (n=9)",
           "at most 200 ms", work[what] <= 200) for what in ("compact", "clear")),
        (f"last tenth of {turns:,} turns", f"{time_['ratio']:.2f} x the second, {time_['ms_per_turn']:.2f} ms a turn, "
         f"{time_['compactions']:.0f} compactions", "at most 1.2 x", time_["ratio"] <= 1.2),
        (f"memory behind a tenth of {turns:,}", f"{memory['growth_mb']:+.1f} MB", "at most 20 MB", memory["growth_mb"] <= 20),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.context", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    found = rows(options.runs, options.turns, options.seed)
    print(f"\nseed {options.seed}")
    for what, measured, bound, within in found:
        print(f"{what:<42} {measured:<70} {bound:<15} {'ok' if within else 'OVER'}")
    return 0 if all(within for *_, within in found) else 1


if __name__ == "__main__":
    sys.exit(main())
