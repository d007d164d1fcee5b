"""The conversation itself as an agent: ``--agent NAME`` or the setting ``agent`` (subagents contract, 1.4)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from kernel import KernelError, UsageError
from kernel_subagents.filters import choose
from kernel_subagents.models import choose_model
from kernel_subagents.prepare import SOURCES, hook_entry, servers_for, system_prompt

if TYPE_CHECKING:
    from kernel import Harness, Session
    from kernel_subagents.agents import Agents

FACT = "agent-setting"
MAX_BYTES = 1_000_000


def check(harness: Harness) -> None:
    """Whether ``--agent`` names an agent that is there. A program may bring its own later, so it is told then.

    :raises UsageError: there is none.
    """
    asked = harness.options.extra.get("agent")
    if not isinstance(asked, str) or not asked.strip() or harness.options.input_format == "stream-json":
        return
    from kernel_subagents.catalogue import Catalogue

    def quiet(text: str, guard: bool = False) -> None:
        """The session says it when it opens."""

    place: Any = SimpleNamespace(options=harness.options, settings=harness.settings, plugins=harness.plugins,
                                 project_root=str(harness.options.cwd), notice=quiet, debug=quiet)
    catalogue = Catalogue(place)
    catalogue.refresh()
    if catalogue.get(asked.strip()) is None:
        raise UsageError(f"there is no agent {asked!r}", context="--agent",
                         hint=f"the agents are: {', '.join(catalogue.by_name) or 'none'}")


async def apply(session: Session, agents: Agents) -> None:
    """Run the session as the agent that is wanted, if one is."""
    asked = session.options.extra.get("agent")
    restored = session.transcript.restored.agent
    name = asked or restored or session.settings.get("agent") or _of_plugins(session, agents)
    if not isinstance(name, str) or not name.strip():
        return
    definition = agents.catalogue.get(name.strip())
    if definition is None:
        session.notice(f"the agent {name!r} is not there{'' if asked else ' any more'}; the session goes on without it",
                       guard=bool(asked))
        return
    agents.main = definition
    session.agent_type = definition.name
    session.transcript.set(FACT, definition.name)
    _filter(session, agents)
    if session.options.system_prompt is None and definition.prompt:
        session.options = msgspec.structs.replace(session.options, system_prompt=system_prompt(session, definition, None))
    fixed = session.options.model or os.environ.get("ANTHROPIC_MODEL") or session.transcript.restored.model
    if definition.model and not fixed:
        chosen = choose_model(session, None, definition.model)
        if chosen is not None:
            try:
                session.switch(definition.model)
            except KernelError as error:
                session.notice(f"agent {definition.name}, model: {error}")
    if definition.effort and session.model_info.effort and not session.options.effort:
        session.effort = definition.effort
    entry = hook_entry(session, definition)
    if entry is not None:
        session.plugin_state.setdefault(SOURCES, []).append(entry)
    session.plugin_state.update(servers_for(session, definition))
    if definition.initial_prompt and session.transcript.source == "startup":
        session.initial_message = definition.initial_prompt


def _of_plugins(session: Session, agents: Agents) -> str | None:
    """The agent that a plugin's default settings name: one of its own (plugins contract, 4.7). The first plugin that has one."""
    for plugin in session.plugins.ready:
        inline = plugin.manifest.settings if plugin.manifest is not None else None
        name = _file(plugin.root / "settings.json").get("agent") or (inline or {}).get("agent")
        if not isinstance(name, str) or not name.strip():
            continue
        full = f"{plugin.name}:{name.strip().removeprefix(f'{plugin.name}:')}"
        if agents.catalogue.get(full) is not None:
            return full
        session.notice(f"plugin {plugin.name}, settings.json, agent: it has no agent {name!r}")
    return None


def _file(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes()) if path.is_file() and path.stat().st_size < MAX_BYTES else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _filter(session: Session, agents: Agents) -> None:
    """Its own list of tools is for the conversation alone; agents that it starts choose among all."""
    definition = agents.main
    assert definition is not None
    if definition.tools is None and not definition.disallowed:
        return
    box = session.toolbox
    agents.pool = [*box.offered, *box.deferred.values()]
    removed = choose(msgspec.structs.replace(definition, tools=None), agents.pool, background=False, nests=True, plan=True)
    wanted = choose(definition, agents.pool, background=False, nests=True, plan=True)
    # What no subagent may have is not barred here: the conversation is with a person.
    barred = {t.name for t in agents.pool if not removed.admits(t) and t.name not in definition.disallowed}
    own = {t.name for t in agents.pool if wanted.admits(t)} | barred.intersection(definition.tools or barred)
    box.admits = lambda tool: tool.name in own or (tool.name.startswith("mcp__") and wanted.admits(tool))
    box.withdraw([t.name for t in agents.pool if t.name not in own])
