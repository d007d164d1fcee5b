"""Agents in the life of a session: found at its start, told to the model, ended with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import Extension, reminder
from kernel_subagents.agents import STATE, Agents
from kernel_subagents.report import defused

if TYPE_CHECKING:
    from kernel import Block, Harness, Session
    from kernel_subagents.definition import Definition

TOLD = "subagents.told"
LONGEST = 1_000
"""Characters of one description in the list."""
TOGETHER = 15_000
"""Characters of the whole list; above it descriptions are shortened, and at last left out."""


class SubagentsExtension(Extension):
    name = "subagents"

    def check(self, harness: Harness) -> None:
        if harness.options.extra.get("agent"):
            from kernel_subagents import main_agent

            main_agent.check(harness)

    async def open(self, session: Session) -> None:
        if session.parent is None:
            from kernel_subagents import main_agent

            agents = session.plugin_state[STATE] = Agents(session)
            session.agents = agents
            agents.catalogue.refresh()
            await main_agent.apply(session, agents)
            _publish(session, agents)
        tell(session)

    async def before_prompt(self, session: Session) -> None:
        agents: Agents | None = session.plugin_state.get(STATE)
        if agents is not None:
            agents.catalogue.refresh()
            _publish(session, agents)
            tell(session)

    async def after_compaction(self, session: Session) -> list[Block]:
        session.plugin_state.pop(TOLD, None)
        text = listing(session)
        running = running_agents(session)
        return [reminder(t) for t in (text, running) if t]

    async def close(self, session: Session) -> None:
        agents: Agents | None = session.plugin_state.pop(STATE, None)
        if agents is not None:
            await agents.close()


def tell(session: Session) -> None:
    """The list once; later what is new or gone."""
    told: dict[str, str] | None = session.plugin_state.get(TOLD)
    if told is None:
        text = listing(session)
        if text and not any(text in str(b.get("text", "")) for _, blocks in session.history.messages for b in blocks):
            session.add_context(text)
        return
    now = {d.name: d.description for d in _usable(session)}
    changed = [line(name, text, LONGEST) for name, text in now.items() if told.get(name) != text]
    gone = [name for name in told if name not in now]
    session.plugin_state[TOLD] = now
    parts = ["Agents that are new or different:\n" + "\n".join(changed)] if changed else []
    parts += [f"Agents that are gone: {', '.join(gone)}"] if gone else []
    if parts:
        session.add_context("\n".join(parts))


async def forget(session: Session) -> None:
    """Stop the agents of a conversation that is over; no message reaches them from the next one."""
    agents: Agents | None = session.plugin_state.get(STATE)
    session.plugin_state.pop(TOLD, None)
    if agents is not None:
        await agents.close()
        agents.known.clear()
        agents.names.clear()
        agents.models.clear()


def _publish(session: Session, agents: Agents) -> None:
    session.init_facts["agents"] = list(agents.catalogue.by_name)


def _usable(session: Session) -> list[Definition]:
    agents: Agents | None = session.root.plugin_state.get(STATE)
    return agents.allowed(session) if agents is not None and "Agent" in session.toolbox.by_name else []


def listing(session: Session) -> str:
    """What the model is told of the agents it may start; remembers it."""
    usable = _usable(session)
    session.plugin_state[TOLD] = {d.name: d.description for d in usable}
    if not usable:
        return ""
    for longest in (LONGEST, 250, 80, 0):
        lines = [line(d.name, d.description, longest) for d in usable]
        if sum(map(len, lines)) <= TOGETHER:
            break
    return "Agents that the Agent tool can start (subagent_type: what for):\n" + "\n".join(lines)


def line(name: str, description: str, longest: int) -> str:
    text = defused(" ".join(description.split()))
    if len(text) > longest:
        text = f"{text[:longest - 1]}…" if longest else ""
    return f"- {name}: {text}" if text else f"- {name}"


def running_agents(session: Session) -> str:
    agents: Agents | None = session.plugin_state.get(STATE)
    running = [a for a in agents.known.values() if a.status == "running" and a.in_background] if agents is not None else []
    return "Agents at work in the background: " + "; ".join(f"{a.id} ({a.description})" for a in running) if running else ""
