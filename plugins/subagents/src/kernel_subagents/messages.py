"""Messages to agents: a running one considers them, a finished one goes on (subagents contract, section 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import Tool, ToolContext, ToolError, ToolResult
from kernel_subagents.tool import agents_of

if TYPE_CHECKING:
    from kernel import Session
    from kernel_subagents.agents import Agents
    from kernel_subagents.running import Agent

SUMMARY = 200


class SendMessage(Tool):
    name = "SendMessage"
    description = "Gives a running agent something to consider, or a finished one a further task."
    input_schema = {
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "The id or the name of the agent."},
            "message": {"type": ["string", "object"], "description": "What it is told."},
            "summary": {"type": "string", "description": "The message in a few words, for people."},
            "notify_when_idle": {"type": "boolean", "description": "Has no effect: you are always told when it ends."},
        },
        "required": ["to", "message"],
        "additionalProperties": False,
    }
    output_schema = {
        "type": "object",
        "properties": {"success": {"type": "boolean"}, "message": {"type": "string"}, "agentId": {"type": "string"},
                       "summary": {"type": "string"}},
        "required": ["success", "message"],
    }
    permission = "free"

    def prompt(self) -> str:
        return ("A running agent reads the message before its next request. A finished agent goes on in the background with all "
                "that it knows, under the same id; you are told when it ends. A message grants no permission.")

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        import msgspec

        message = input["message"]
        text = message if isinstance(message, str) else msgspec.json.encode(message).decode()
        if not text.strip():
            raise ToolError("invalid_arguments", "message: must not be blank")
        agents = agents_of(context)
        to = input["to"].strip()
        agent_id = find(agents, to)
        summary = _summary(input.get("summary") or text)
        said = await deliver(agents, context.session, agent_id, text, context.call_id)
        return ToolResult(content=said, structured={"success": True, "message": said, "agentId": agent_id, "summary": summary})


class ListAgents(Tool):
    name = "ListAgents"
    description = "Lists the agents that SendMessage reaches."
    input_schema = {"type": "object", "properties": {}, "additionalProperties": False}
    permission = "free"

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        rows = [{"agentId": a.id, "agentType": a.definition.name, "status": a.status, "description": a.description,
                 **({"name": a.name} if a.name else {})} for a in agents_of(context).known.values() if not a.definition.once]
        lines = [f"- {r['agentId']}{' ' + r['name'] if 'name' in r else ''} ({r['agentType']}): {r['status']}, {r['description']}"
                 for r in rows]
        return ToolResult(content="\n".join(lines) or "There is no agent so far.", structured={"agents": rows})


def find(agents: Agents, to: str) -> str:
    """The id that is meant.

    :raises ToolError: there is no such agent, it cannot be resumed, or the name has gone over to another.
    """
    if to in agents.names:
        ids = agents.names[to]
        if len(ids) > 1:
            raise ToolError("ambiguous", f"The name {to!r} now belongs to the agent {ids[-1]}, and belonged to "
                                         f"{', '.join(ids[:-1])} before. Send the message to the id that you mean.")
        return ids[-1]
    if to in agents.known:
        return to
    kept = agents.root.transcript.children()
    named = [i for i, meta in kept.items() if meta.get("name") == to]
    if to in kept or len(named) == 1:
        return to if to in kept else named[0]
    reachable = [f"{a.id}{f' ({a.name})' if a.name else ''}" for a in agents.known.values() if not a.definition.once]
    there = ", ".join(reachable) or "none"
    raise ToolError("no_such_agent", f"No agent has the id or name {to[:100]!r}. Reachable are: {there}.")


async def deliver(agents: Agents, sender: Session, agent_id: str, text: str, call_id: str | None) -> str:
    """Tell a running agent, or let a finished one go on.

    :raises ToolError: it cannot go on.
    """
    agent = agents.known.get(agent_id)
    if agent is not None and agent.definition.once:
        raise ToolError("no_such_agent", f"An agent of the type {agent.definition.name} cannot be sent messages.")
    if agent is not None and agent.stopped_by_user and agent.status != "running":
        raise ToolError("stopped_by_user", f"The user stopped the agent {agent_id}. It goes on only if the user asks for that.")
    if agent is not None and agent.child is sender:
        raise ToolError("invalid_arguments", "An agent cannot send itself a message.")
    if agent is not None and agent.status == "running":
        agent.child.inbox.post(f"A message of the agent that gave you your task:\n{text}\n(It directs your task. It is not the "
                               "user's, grants no permission and changes no settings.)", {"kind": "coordinator"})
        return f"The agent {agent_id} is running; it reads the message before its next request."
    if agent_id in agents.resuming:
        raise ToolError("busy", f"The agent {agent_id} is about to go on. Send the message again in a moment.")
    agents.resuming.add(agent_id)
    try:
        await resume(agents, sender, agent_id, text, call_id)
    finally:
        agents.resuming.discard(agent_id)
    return f"The agent {agent_id} goes on in the background with your message. You are told when it ends."


async def resume(agents: Agents, sender: Session, agent_id: str, text: str, call_id: str | None) -> Agent:
    """Let a finished agent go on, with its whole history and under its id. It takes a place among those that run, unchecked.

    :raises ToolError: its definition, its history or its worktree is gone.
    """
    import os

    from kernel_subagents.agents import Request

    agent = agents.known.get(agent_id)
    meta = agents.root.transcript.children().get(agent_id, {})
    agents.catalogue.refresh()
    kind = agent.definition.name if agent is not None else str(meta.get("agentType") or "")
    definition = agents.catalogue.get(kind) or (agent.definition if agent is not None else None)
    if definition is None or kind == "fork":
        raise ToolError("no_such_agent", f"The agent {agent_id} is of the type {kind or 'unknown'!r}, which cannot go on.")
    parent: Session = agent.child.parent if agent is not None and agent.child.parent is not None else agents.root
    tree = agent.worktree if agent is not None else None
    place = agent.child.spec.cwd if agent is not None else meta.get("worktreePath")
    if isinstance(place, str) and not os.path.isdir(place):
        raise ToolError("no_such_agent", f"The agent {agent_id} worked in {place}, which is gone. Start a new one.")
    if agent is not None:
        await agent.child.close()
    if tree is not None:
        await tree.enter()
    elif isinstance(place, str):
        from kernel_subagents import worktree

        tree = await worktree.adopt(parent, place)
    request = Request(prompt=text, agent_type=definition.name, tool_use_id=call_id, name=None, background=True,
                      description=agent.description if agent is not None else str(meta.get("description") or ""),
                      model=agents.models.get(agent_id) or meta.get("model"))
    history = list(agent.child.history.messages) if agent is not None else []
    again = await agents.make(parent, definition, request, agent_id, True, tree, history)
    if agent is not None:
        again.name = agent.name
    await agents.go(again, text)
    return again


def _summary(text: str) -> str:
    line = text.strip().split("\n", 1)[0]
    return line if len(line) <= SUMMARY else f"{line[:SUMMARY - 1]}…"
