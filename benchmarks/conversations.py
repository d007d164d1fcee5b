"""``python -m benchmarks.conversations``: generated conversations, played by the real loop, cut anywhere and resumed.

Each has prompts with rounds of parallel calls: tools that work, fail, do not exist or get bad input; calls that are denied;
interrupts in the stream and in a tool; broken streams; compactions that a full window forces or a person types. Then its
transcript is cut behind any line or in the middle of one, or forked, and the conversation goes on. Every request that is made
must obey the pairing rules (``pairing.py``).

``--seed`` and ``--only`` repeat: conversation N of a seed is the same each time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from benchmarks.pairing import faults
from kernel import Clock, ModelError, Session, SessionError, Tool, ToolContext, ToolError, ToolResult
from kernel.testing import Kit, ScriptedModel, Turn, call, module, text

FULL = 196_000


class FastClock(Clock):
    async def sleep(self, seconds: float) -> None:
        await anyio.lowlevel.checkpoint()


class Step(Tool):
    """Does what its input says; beside its neighbours or alone, by its name."""

    description = "A step."
    input_schema = {"type": "object", "properties": {"how": {"type": "string"}}, "required": ["how"]}
    permission = "ask"

    def __init__(self, name: str, world: World) -> None:
        self.name = name  # type: ignore[misc]
        self._world = world

    def is_concurrency_safe(self, input: dict[str, Any]) -> bool:
        return self.name == "Beside"

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        await anyio.lowlevel.checkpoint()
        how = input["how"]
        if how == "interrupt":
            self._world.kinds["interrupted"] += 1
            context.session.interrupt()
            await anyio.lowlevel.checkpoint()
        if how == "fail":
            raise ToolError("failed", "it did not work")
        if how == "crash":
            raise RuntimeError("crash")
        return ToolResult(content="" if how == "empty" else f"did {how}")


class World(ScriptedModel):
    """The model of one conversation: draws its answers, and looks at what it is asked."""

    def __init__(self) -> None:
        super().__init__([])
        self.kinds: Counter[str] = Counter()
        self.begin(0)

    def begin(self, seed: int | str) -> None:
        self.draw = random.Random(seed)
        self.rounds = 0
        self.wrong: list[str] = []
        self.session: Session | None = None

    async def stream(self, request: Any) -> Any:
        messages = request.history.wire()
        self.wrong += faults(messages)
        self.turns = [self._turn(messages)]
        interrupt = self.draw.random() < 0.06
        async for event in super().stream(request):
            yield event
            if interrupt and self.draw.random() < 0.3 and self.session is not None:
                interrupt = False
                self.kinds["interrupted"] += 1
                self.session.interrupt()
                await anyio.lowlevel.checkpoint()
        self.requests.clear()

    def _turn(self, messages: list[dict[str, Any]]) -> Any:
        draw = self.draw
        if "Sum up this conversation" in json.dumps(messages[-1]):
            self.kinds["compacted"] += 1
            return text("<summary>what was done</summary>")
        self.rounds += 1
        chance = draw.random()
        if chance < 0.03:
            return Turn(fail=ModelError("no", kind="invalid_request_error", status=400))
        usage = {"input_tokens": FULL if draw.random() < 0.12 else 10, "output_tokens": 1}
        if self.rounds > 4 or chance < 0.35:
            return Turn(blocks=[text("done")] if chance > 0.05 else [], usage=usage)
        count = draw.choice((1, 1, 2, 3, 5))
        if count > 1:
            self.kinds["parallel"] += 1
        blocks = [text("I go on.")] if draw.random() < 0.5 else []
        blocks += [self._call() for _ in range(count)]
        cut = draw.randrange(3, 12) if draw.random() < 0.05 else None
        reason = draw.choice(("tool_use", "tool_use", "tool_use", "max_tokens"))
        return Turn(blocks=blocks, usage=usage, cut=cut, stop_reason=reason)

    def _call(self) -> Any:
        draw = self.draw
        name = draw.choice(("Beside", "Beside", "Beside", "Alone", "Nobody"))
        last = "interrupt" if draw.random() < 0.3 else "well"
        how = draw.choice(("well", "well", "well", "well", "fail", "crash", "empty", last))
        made = call(name, f"t{draw.randrange(30)}" if draw.random() < 0.3 else None, how=how)
        if draw.random() < 0.06:
            made["raw_input"] = draw.choice(('{"how": ', "[]", "{}", '{"how": 5}', ""))
        return made

    def decide(self, tool: str, input: dict[str, Any]) -> str:
        denied = self.draw.random() < 0.15
        self.kinds["denied"] += denied
        return "deny" if denied else "allow"


class Player:
    """One harness for many conversations."""

    def __init__(self, root: Path) -> None:
        from kernel import PostToolUseResult, UserPromptSubmitResult

        os.environ["CLAUDE_CONFIG_DIR"] = str(root / "config")
        self.world = world = World()
        seen = module(post_tool_use=lambda event: PostToolUseResult(
                          additional_context="seen") if world.draw.random() < 0.2 else None,
                      user_prompt_submit=lambda event: UserPromptSubmitResult(additional_context="a prompt"))
        (root / "work").mkdir()
        self.kit = Kit(root / "work", model=world, tools=[Step("Beside", world), Step("Alone", world)], policy=world.decide,
                       hooks={"ears": seen}, installed=["sessions", "compactor"], persist=True, clock=FastClock())
        self._fresh = self.kit.harness.options

    async def play(self, seed: str) -> list[str]:
        """What was wrong with the conversation of that seed."""
        world = self.world
        world.begin(seed)
        path = await self._talk(world.draw.randint(1, 3))
        for _ in range(world.draw.randint(1, 2)):
            if path is None:
                break
            self._cut(path)
            path = await self._talk(world.draw.randint(1, 2), resume=path.stem, fork_session=world.draw.random() < 0.2)
        return world.wrong

    async def _talk(self, prompts: int, **options: Any) -> Path | None:
        world, harness = self.world, self.kit.harness
        harness.options = msgspec.structs.replace(self._fresh, **options)
        try:
            session = harness.open()
        except SessionError:
            return None  # cut before anything was said
        world.kinds["resumed"] += bool(options)
        world.session = session
        for _ in range(prompts):
            world.rounds = 0
            if world.draw.random() < 0.15:
                await session.submit("/compact")
            result = await session.submit("go on")
            if "Internal failure" in str(result.errors):
                world.wrong.append(str(result.errors))
        path = Path(session.transcript.path)
        if world.draw.random() < 0.5:
            await session.close()
        else:
            session.transcript.close()
        return path if path.exists() else None

    def _cut(self, path: Path) -> None:
        """Leave the beginning of the file, as a kill would."""
        data, draw = path.read_bytes(), self.world.draw
        if draw.random() < 0.25:
            return
        self.world.kinds["cut"] += 1
        end = draw.randrange(len(data)) + 1
        if draw.random() < 0.7:
            end = data.rfind(b"\n", 0, end) + 1
        path.write_bytes(data[:end])


def measure(count: int, seed: int, only: int | None = None) -> dict[str, Any]:
    began = time.monotonic()
    failures: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="kernel-talk-") as place:
        player = Player(Path(place))

        async def go() -> None:
            for number in range(count) if only is None else [only]:
                try:
                    wrong = await player.play(f"{seed}-{number}")
                except Exception as error:
                    wrong = [f"{type(error).__name__}: {error}"]
                    if only is not None:
                        raise
                if wrong:
                    failures[str(number)] = wrong[:3]
                    print(f"\n{number}: {wrong[0]}", file=sys.stderr, flush=True)
                player.kit.outputs.clear()
                if number % 200 == 199:
                    print(".", end="", file=sys.stderr, flush=True)

        anyio.run(go)
    print(file=sys.stderr)
    return {"conversations": count if only is None else 1, "seed": seed, "kinds": dict(player.world.kinds), "failures": failures,
            "seconds": round(time.monotonic() - began, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conversations", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--only", type=int, default=None, help="that conversation alone")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.count, options.seed, options.only)
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        print(f"{found['conversations']} conversations, seed {found['seed']}, {found['seconds']} s: "
              f"{len(found['failures'])} broke a rule")
        print(", ".join(f"{kind} {n}" for kind, n in sorted(found["kinds"].items())))
        for number, wrong in list(found["failures"].items())[:10]:
            print(f"  {number}: {'; '.join(wrong)}")
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
