"""Whatever happens to a tree of agents, in whatever order: every task ends, every call is answered, nothing is left over."""

from __future__ import annotations

import random
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from kernel import ModelError, normalise
from kernel.testing import call, text
from kernel.testing.scripted import Turn

from .agent_world import SCOUT, Gate, World, agent

pytestmark = pytest.mark.anyio


class Plan:
    """Random scripts for a tree of agents; each has a word of its own."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.count = 0
        self.routes: dict[str, list[Any]] = {}

    def launch(self, depth: int) -> dict[str, Any]:
        self.count += 1
        word = f"Task {self.count}."
        self.routes[word] = []
        self.routes[word] += self.script(depth + 1)
        return agent(word, f"t{self.count}", background=self.chance.random() < 0.5)

    def script(self, depth: int) -> list[Any]:
        chance, turns = self.chance, []
        for _ in range(chance.randrange(3)):
            kind = chance.random()
            if kind < 0.4 and depth < 3 and self.count < 12:
                turns.append([self.launch(depth) for _ in range(chance.randrange(1, 4))])
            elif kind < 0.6:
                turns.append(call("Gate"))
            elif kind < 0.7:
                turns.append(Turn(fail=ModelError("gone", status=400, kind="invalid_request_error")))
            else:
                turns.append([text("So far."), call("Glob", pattern="*.none")])
        return [*turns, text("report"), text("more")]


@pytest.mark.parametrize("number", range(30))
async def test_every_tree_ends_whole(number: int, world: World) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    chance = random.Random(seed)
    world.write(".claude/agents/scout.md", SCOUT)
    plan, gate = Plan(chance), Gate()
    turns = plan.script(0) + [text("again")] * 20
    turns.insert(0, [plan.launch(0) for _ in range(chance.randrange(1, 4))])
    session = world.open(turns, plan.routes, tools=[gate])
    ending = chance.choice(["open", "interrupt", "stop", "close"])

    async def meddle() -> None:
        for _ in range(chance.randrange(60)):
            await anyio.lowlevel.checkpoint()
        await anyio.sleep(chance.random() / 20)
        if ending == "interrupt":
            session.interrupt()
            await anyio.sleep(chance.random() / 20)
        elif ending == "stop":
            for task in list(session.plugin_state.get("tasks", {}).values()):
                if task.status == "running" and chance.random() < 0.5:
                    await task.stop()
        gate.open.set()

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(meddle)
            await world.go("Start.")
        if ending != "close":
            await world.settle()
        agents = session.agents.known.values()  # type: ignore[union-attr]
        await session.close()

    started = [m["task_id"] for m in world.said("task_started")]
    for frames in (world.said("task_notification"), world.said("task_updated")):
        assert sorted(started) == sorted(m["task_id"] for m in frames), "each task that began has ended, once"
    assert not session.history.open_calls and not session.background_tasks and not session.inbox.awaited
    for known in agents:
        assert known.status != "running" and not known.child.history.open_calls
        assert not normalise(known.child.history.messages)[1], "its history is legal as it stands"
    answered = [b["tool_use_id"] for _, blocks in session.history.messages for b in blocks if b.get("type") == "tool_result"]
    called = [b["id"] for _, blocks in session.history.messages for b in blocks if b.get("type") == "tool_use"]
    assert answered == called
