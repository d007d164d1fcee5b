"""A world of real processes for each test; tools that kill their own process where a test wants it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.durable import PLUGIN, World

TOOLS = PLUGIN + '''

def kill_here(where):
    """Ends this process as SIGKILL does, the first so many times that it comes here: the file holds how often still."""
    import signal
    try:
        left = int(open(f"{PLACE}.kill.{where}").read())
    except FileNotFoundError:
        return
    if left:
        with open(f"{PLACE}.kill.{where}", "w") as file:
            file.write(str(left - 1))
            file.flush()
            os.fsync(file.fileno())
        os.kill(os.getpid(), signal.SIGKILL)

class Guarded(Effect):
    """Needs an approval."""
    name = "Guarded"
    permission = "ask"

class Deadly(Effect):
    """Has its effect, and may kill its process right after."""
    name = "Deadly"

    async def call(self, input, context):
        note("effect", input["key"], context.call_id)
        kill_here(input["key"])
        return ToolResult(content="done " + input["key"])

class Looks(Deadly):
    name = "Looks"

    def is_read_only(self, input):
        return True

class Keyed(Once):
    """Knows what it did under a key, and may kill its process right after."""
    name = "Keyed"

    async def call(self, input, context):
        note("called", input["key"], context.call_id)
        kill_here(input["key"])
        return await super().call(input, context)

class Knows(Deadly):
    name = "Knows"

    def idempotency_key(self, input, context):
        return context.call_id

    async def outcome_of(self, key, input, context):
        note("asked", input["key"], key)
        done = ("effect", input["key"], key) in [tuple(line.split()) for line in open(PLACE)]
        return ToolResult(content="it was done") if done else None

class Fresh(Deadly):
    """Its checks fail where its effect is there."""
    name = "Fresh"

    def validate_input(self, input, context):
        from kernel import ToolError
        if os.path.exists(f"{PLACE}.fresh.{input['key']}"):
            raise ToolError("exists", "it is there already")

    async def call(self, input, context):
        open(f"{PLACE}.fresh.{input['key']}", "x").close()
        return await super().call(input, context)

class Slow(Effect):
    """Waits for a file, which a test makes."""
    name = "Slow"

    async def call(self, input, context):
        import anyio
        note("waits", input["key"], context.call_id)
        while not os.path.exists(f"{PLACE}.go"):
            await anyio.sleep(0.02)
        return await super().call(input, context)

@hookimpl
def register_tools(register):
    for tool in (Effect, Once, Guarded, Deadly, Looks, Keyed, Knows, Fresh, Slow):
        if tool.name not in os.environ.get("WITHOUT", "").split():
            register(tool())

@hookimpl
def post_tool_use(event):
    note("hook", event.tool_name, event.tool_use_id)
    kill_here("post")

@hookimpl
def user_prompt_submit(event):
    note("prompt", "-", "-")
    kill_here("prompt")
'''
NAMES = ["Effect", "Once", "Guarded", "Deadly", "Looks", "Keyed", "Knows", "Fresh", "Slow"]
MANIFEST = {"name": "ledger", "version": "0.1.0", "description": "d", "metadata": {"kernel": {
    "requires": ">=0.1,<1", "implements": ["register_tools", "post_tool_use", "user_prompt_submit"],
    "provides": {"tools": NAMES}}}}

Steps = tuple[tuple[tuple[str, Any], ...], ...]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """``world((("Effect", "a"),), settings={...}, kill={"a": 1})``: steps of calls, settings, who kills how often."""
    made: list[World] = []

    def make(*steps: tuple[tuple[str, Any], ...], settings: dict[str, Any] | None = None, kill: dict[str, int] | None = None,
             database: str = "") -> World:
        here = World(tmp_path / f"w{len(made)}", database or f"sqlite:///{tmp_path}/db/durable.sqlite",
                     {"unknown": "skip", **(settings or {})}, plugin=TOOLS, manifest=MANIFEST, steps=steps)
        for where, times in (kill or {}).items():
            Path(f"{here.ledger}.kill.{where}").write_text(str(times))
        made.append(here)
        return here

    yield make
    for here in made:
        here.close()
