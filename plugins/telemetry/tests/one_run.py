"""One scripted run: text, calls that are accepted, rejected, failed, unknown, an agent, a compaction, a retry, a refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio

from kernel import ModelError, Prices, Tool, ToolError, ToolResult
from kernel.testing import FakeClock, Kit, ScriptedModel, Turn, call, text

PLUGINS = ["telemetry", "command-hooks", "subagents", "compactor", "tools-files", "tools-shell"]
HOOKS = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "true"}]}],
                   "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}],
                   "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "exit 1"}]}]}}
SECRET = "sk-ant-planted-0123456789"  # what a person typed, a file holds, a command says: must never be told
PRICES = Prices(input=3, output=15, cache_write=3.75, cache_read=0.3)
USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 7}


class Track(Tool):
    """A tool of somebody's own, which fails."""

    name = "Track"
    description = "Tracks."
    input_schema = {"type": "object", "required": ["what"], "properties": {"what": {"type": "string"}}}

    async def call(self, input: dict[str, Any], context: Any) -> ToolResult:
        raise ToolError("not_found", f"nothing about {input['what']}")


def turns(folder: Path) -> list[Any]:
    """What the models say, in order: the conversation's, the agent's, the one that sums up."""
    return [
        Turn(fail=ModelError("too busy", kind="overloaded_error", status=529)),
        Turn(blocks=[text(f"I begin. {SECRET}"), call("Bash", command=f"echo {SECRET}")], usage=USAGE),
        call("Write", file_path=str(folder / "new.py"), content=f"a = 1\n# {SECRET}\n"),
        call("Edit", file_path=str(folder / "forbidden.md"), old_string="a", new_string=SECRET),
        call("Track", what=SECRET),
        call("Track"),
        call("Missing", what=SECRET),
        call("Agent", description="look", prompt=f"Look at {SECRET}", subagent_type="general-purpose", run_in_background=False),
        call("Bash", command="git init -q . && git -c user.name=a -c user.email=a@b.c commit --allow-empty -m 'one'"),
        text(f"The agent's report. {SECRET}"),
        text(f"All done. {SECRET}"),
        text("<summary>Something was done.</summary>"),
        Turn(blocks=[text("I will not.")], stop_reason="refusal"),
    ]


def policy(name: str, input: dict[str, Any]) -> str:
    return "deny" if "forbidden" in str(input.get("file_path")) else "allow"


def kit_of(tmp_path: Path, **more: Any) -> Kit:
    return Kit(tmp_path, model=ScriptedModel(turns(tmp_path), prices=PRICES), tools=[Track()], installed=PLUGINS, policy=policy,
               settings=HOOKS, clock=FakeClock(), **more)


def play(tmp_path: Path, kit: Kit | None = None) -> Kit:
    """The whole run; what it said lies in ``kit.outputs``."""
    kit = kit or kit_of(tmp_path)

    async def go() -> None:
        session = kit.open()
        await session.submit(f"Please do the work. {SECRET}")
        await session.submit("/compact")
        await session.submit("And now something forbidden.")
        await session.close()

    anyio.run(go)
    return kit
