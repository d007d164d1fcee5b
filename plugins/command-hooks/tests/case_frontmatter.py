"""Cases of the contract about hooks in the front matter of skills and agents, which are real files here, used for real."""

from __future__ import annotations

import json
from typing import Any

from kernel.testing import text

from .case_driver import Play
from .case_peers import agent_call, request_of, take_part
from .case_words import bash, one_call, prompt, read_call


def _file(name: str, hooks: dict[str, Any] | None = None) -> str:
    """A skill's or an agent's file; JSON is YAML too."""
    head = {"name": name, "description": f"The {name}.", **({"hooks": hooks} if hooks else {})}
    return f"---\n{json.dumps(head)}\n---\nINSTRUCTIONS-OF-{name}\n"


def _lay_out(play: Play, *agents: str) -> None:
    """Write the case's skills and agents into the project, and agents that need no hooks."""
    components = {**{f"agent:{name}": None for name in agents}, **play.components}
    for source, hooks in components.items():
        kind, _, name = source.partition(":")
        path = play.world.cwd / ".claude" / (f"skills/{name}/SKILL.md" if kind == "skill" else f"agents/{name}.md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_file(name, hooks))


# -- skills ------------------------------------------------------------------------------------------------------------
async def _skill(play: Play) -> None:
    take_part(play, "skills")
    _lay_out(play)
    await one_call(play, bash("ls"))
    assert play.world.ran() == []
    play.world.kit.model.turns += [play.calls(bash("ls")), text("done")]
    await prompt(play, "/secure")
    assert play.world.ran() == ["k"] and "INSTRUCTIONS-OF-secure" in play.model_saw
    await one_call(play, bash("ls"))


async def _skill_once(play: Play) -> None:
    take_part(play, "skills")
    _lay_out(play)
    play.open([play.calls(bash("ls")), play.calls(bash("ls")), text("done")])
    await prompt(play, "/secure")
    assert len(play.tools["Bash"].inputs) == 2


# -- agents ------------------------------------------------------------------------------------------------------------
async def _agent(play: Play) -> None:
    take_part(play, "subagents")
    _lay_out(play)
    await one_call(play, read_call())
    assert play.world.ran() == []
    play.world.kit.model.turns += [agent_call("reviewer"), play.calls(read_call()), text("found"), text("done")]
    await prompt(play)
    assert play.world.ran() == ["a"] and play.world.inputs("a")[0]["agent_type"] == "reviewer"
    await one_call(play, read_call())
    assert len(play.tools["Read"].inputs) == 3


async def _agent_stop(play: Play) -> None:
    take_part(play, "subagents", "sessions")
    play.options["persist"] = True
    _lay_out(play)
    play.open([agent_call("reviewer"), text("found"), text("done")])
    await prompt(play)
    assert play.run is not None and play.run.text == "done"


async def _plugin_agent(play: Play) -> None:
    """The handler of the agent's file is named by its program."""
    take_part(play, "subagents")
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": play.world.handler("r")}]}]}
    (play.world.plugins[0].root / "agents" / "r.md").write_text(_file("r", hooks))
    play.open([agent_call("p:r"), play.calls(read_call()), text("found"), text("done")])
    await prompt(play)
    assert "INSTRUCTIONS-OF-r" in json.dumps(play.world.kit.model.requests[1]["system"])
    assert play.tools["Read"].inputs and play.world.ran() == []
    said = [*play.world.debug, *play.world.notices(), *play.session.harness.announced]
    assert any("hooks" in line and "agents/r.md" in line for line in said), said


async def _untrusted_agent(play: Play) -> None:
    take_part(play, "subagents")
    _lay_out(play)
    play.open([agent_call("reviewer"), play.calls(read_call()), text("found"), text("done")])
    await prompt(play)
    assert play.tools["Read"].inputs and "found" in request_of(play, 3)
    assert any("itself was trusted" in line for line in play.world.debug)


async def _as_agent(play: Play) -> None:
    take_part(play, "subagents")
    _lay_out(play, "reviewer")
    play.open([play.calls(read_call()), text("done")])
    await prompt(play)
    assert "INSTRUCTIONS-OF-reviewer" in json.dumps(play.world.kit.model.requests[0]["system"])


FRONTMATTER = {
    "source-skill-hooks-from-first-use-to-session-end": _skill, "source-skill-once-runs-once": _skill_once,
    "source-agent-frontmatter-only-while-agent-runs": _agent, "subagent-frontmatter-stop-becomes-subagentstop": _agent_stop,
    "source-plugin-agent-frontmatter-hooks-ignored": _plugin_agent, "trust-print-runs-project-hooks": _untrusted_agent,
    "source-agent-flag-sets-agent-type-only": _as_agent,
}
