"""All agents of a conversation: who may start, with what, and how they are reached again (subagents contract, 2 to 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from kernel import Child, ChildSpec, Session, ToolError, ToolResult, env_number, env_switch
from kernel_subagents import memory, report
from kernel_subagents.builtin import FORK
from kernel_subagents.catalogue import Catalogue
from kernel_subagents.definition import Definition
from kernel_subagents.filters import Chosen, choose
from kernel_subagents.models import choose_model
from kernel_subagents.prepare import hooks_for, mode_of, preload, servers_for, system_prompt
from kernel_subagents.running import Agent, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel import Block, Tool
    from kernel_subagents.worktree import Worktree

STATE = "subagents"
GUARD = "subagents.worktree"
"""``session.plugin_state[GUARD]``: the fence around an agent with a worktree of its own."""
DEPTH = 3
AT_ONCE = 20
DEFAULT_TYPE = "general-purpose"


class Request(Struct, kw_only=True):
    """What a call of the Agent tool asks for. ``background``: ``None`` where the call does not say."""

    prompt: str
    agent_type: str
    description: str = ""
    model: str | None = None
    background: bool | None = None
    name: str | None = None
    isolated: bool = False
    tool_use_id: str | None = None
    grants: tuple[str, ...] = ()


class Agents:
    """Kept in ``session.root.plugin_state[STATE]`` and ``session.agents``. ``known``: all that ran, by id.

    ``pool``: the tools of the conversation before the main agent's own filter; ``None`` where it has none.
    """

    def __init__(self, root: Session) -> None:
        self.root = root
        self.catalogue = Catalogue(root)
        self.known: dict[str, Agent] = {}
        self.names: dict[str, list[str]] = {}
        self.models: dict[str, str] = {}
        """Models that calls asked for, by the agent's id: they hold when it goes on (3.2)."""
        self.resuming: set[str] = set()
        self.main: Definition | None = None
        self.pool: list[Tool] | None = None

    # -- types -------------------------------------------------------------------------------------------------------------
    def allowed(self, session: Session) -> list[Definition]:
        """Those that this context may start: no rule denies them and the main agent's list holds them."""
        wanted = self.main.spawns if self.main is not None and session is self.root else None
        found = [d for d in self.catalogue.by_name.values() if wanted is None or d.name in wanted]
        tool = self.root.toolbox.by_name.get("Agent")
        if tool is None or not self._has_agent_rules():
            return found
        return [d for d in found if not self._denied(session, tool, d.name)]

    def types(self, session: Session) -> list[str]:
        """See ``kernel.AgentRunner``."""
        return [definition.name for definition in self.allowed(session)]

    def _denied(self, session: Session, tool: Tool, name: str) -> bool:
        from kernel import PermissionCall

        try:
            asked = PermissionCall(tool=tool, input={"subagent_type": name, "prompt": "", "description": ""}, mode="default",
                                   cwd=session.state.cwd, agent_id=session.agent_id)
            verdict = session.policy.decide(asked)
        except Exception:
            return False  # the call itself is decided again, and refused then
        return verdict.behavior == "deny"

    def _has_agent_rules(self) -> bool:
        rules = [str(r) for _, texts in self.root.settings.by_layer("permissions.deny") if isinstance(texts, list) for r in texts]
        rules += self.root.options.disallowed_tools
        return any("Agent(" in rule or "Task(" in rule for rule in rules)

    def definition(self, session: Session, name: str) -> Definition:
        """:raises ToolError: there is none, or this context may not start it."""
        self.catalogue.refresh()
        found = FORK if name == "fork" and "fork" in self.catalogue.by_name else self.catalogue.get(name)
        names = self.types(session)
        if found is None:
            if name == DEFAULT_TYPE:
                raise ToolError("invalid_arguments", f"subagent_type is required. The types are: {', '.join(names) or 'none'}.")
            raise ToolError("no_such_agent", f"There is no agent {name[:200]!r}. The types are: {', '.join(names) or 'none'}.")
        if found.name not in names:
            raise ToolError("no_such_agent", f"The agent {found.name!r} may not be started here. "
                                             f"The types are: {', '.join(names) or 'none'}.")
        return found

    # -- starting ----------------------------------------------------------------------------------------------------------
    async def run(self, session: Session, *, prompt: str, agent_type: str, background: bool, model: str | None = None,
                  description: str = "", tool_use_id: str | None = None, grants: tuple[str, ...] = ()) -> ToolResult:
        """See ``kernel.AgentRunner``."""
        return await self.start(session, Request(prompt=prompt, agent_type=agent_type, background=background, model=model,
                                                 description=description, tool_use_id=tool_use_id, grants=grants))

    async def start(self, session: Session, request: Request) -> ToolResult:
        """Start an agent; its report in the foreground, that it was launched in the background.

        :raises ToolError: it cannot be started; the text says why.
        """
        self._check_limits(session)
        definition = self.definition(session, request.agent_type)
        background = in_background(definition, request.background)
        agent_id = session.clock.new_id().replace("-", "")[:17]
        tree = await self._worktree(session, definition, request, agent_id)
        return await self.go(await self.make(session, definition, request, agent_id, background, tree), request.prompt)

    def _check_limits(self, session: Session) -> None:
        budget = session.options.max_budget_usd
        if budget is not None and self.root.spending.usd >= budget:
            raise ToolError("limit_reached", f"Budget limit reached (${budget:g}). No further agent is started.")
        if getattr(session, "depth", 0) >= max_depth():
            raise ToolError("limit_reached", "Agents are not nested deeper than this. Do the task yourself.")
        if session.agent_type == "fork" and session.parent is not None:
            raise ToolError("limit_reached", "A fork starts no agents. Do the task yourself.")
        running = sum(agent.status == "running" for agent in self.known.values())
        if running >= at_once():
            raise ToolError("limit_reached", f"Concurrent subagent limit reached ({at_once()}). Do not retry: wait until some of "
                                             "those that run have ended, or do the task yourself.")

    async def make(self, session: Session, definition: Definition, request: Request, agent_id: str, background: bool,
                   tree: Worktree | None, history: Sequence[Any] = ()) -> Agent:
        """An agent that can begin. Where it cannot be made, its worktree is left again.

        :raises ToolError: it would have no tools.
        """
        try:
            spec, remembers = self._spec(session, definition, request, agent_id, background, tree)
            spec.history = history
            agent = self._agent(session, definition, request, spec, background, remembers)
        except BaseException:
            if tree is not None:
                await tree.leave(self.root)
            raise
        agent.worktree = tree
        return agent

    def _spec(self, session: Session, definition: Definition, request: Request, agent_id: str, background: bool,
              tree: Worktree | None) -> tuple[ChildSpec, memory.Memory | None]:
        """What makes it another than its parent, and the folder that it remembers in."""
        fork = definition is FORK
        mode = mode_of(session, definition)
        chosen = self._tools(session, definition, background, mode)
        if not fork and (refusal := chosen.refusal(definition.name)):
            raise ToolError("zero_tools", refusal)
        remembers = memory.folder(self.root, definition)
        spec = ChildSpec(
            agent_id=agent_id, agent_type=definition.name, tool_use_id=request.tool_use_id,
            prompt=None if fork else system_prompt(self.root, definition, remembers),
            tools=[tool for tool in chosen.tools if not tool.name.startswith("mcp__")],  # a server's come with its extension
            admits=chosen.admits, model=None if fork else choose_model(session, request.model, definition.model), mode=mode,
            effort=definition.effort, max_turns=definition.max_turns, instructions=not definition.lean,
            grants=(*request.grants, *memory.grants(remembers)), cwd=tree.path if tree is not None else None)
        return spec, remembers

    def _tools(self, session: Session, definition: Definition, background: bool, mode: str | None) -> Chosen:
        mine = session.toolbox
        own = self.pool if session is self.root and self.pool is not None else [*mine.offered, *mine.deferred.values()]
        known = {name for tool in self.root.harness.tools for name in (tool.name, *tool.aliases)}
        return choose(definition, own, background=background, nests=getattr(session, "depth", 0) + 1 < max_depth(),
                      plan=(mode or session.state.permission_mode) == "plan" and definition.mode == "plan", known=known)

    def _agent(self, session: Session, definition: Definition, request: Request, spec: ChildSpec, background: bool,
               remembers: memory.Memory | None) -> Agent:
        parent = session.agent_id if session.parent is not None else None
        meta = {"agentType": definition.name, "toolUseId": request.tool_use_id, "parentAgentId": parent, "worktreePath": spec.cwd,
                "name": request.name, "description": request.description, "model": request.model}
        child = Child(session, spec, self.root.transcript.child(spec.agent_id, meta))
        child.plugin_state.update(hooks_for(session, definition) | servers_for(session, definition))
        if GUARD in session.plugin_state:  # an agent of one that is fenced in is fenced in, too
            child.plugin_state[GUARD] = session.plugin_state[GUARD]
        if remembers is not None:
            child.plugin_state[memory.FOLDERS] = [str(remembers.path)]
        agent = Agent(definition, child, description=request.description, name=request.name, background=background,
                      prompt=request.prompt)
        spec.watch = agent.saw
        self.known[agent.id] = agent
        if request.model:
            self.models[agent.id] = request.model
        if request.name:
            self.names.setdefault(request.name, []).append(agent.id)
        return agent

    async def _worktree(self, session: Session, definition: Definition, request: Request, agent_id: str) -> Worktree | None:
        if not (definition.isolated or request.isolated):
            return None
        from kernel_subagents import worktree

        return await worktree.create(session, f"agent-{agent_id[:8]}")

    # -- running -----------------------------------------------------------------------------------------------------------
    async def go(self, agent: Agent, prompt: str | list[Block] | None) -> ToolResult:
        agent.when_done = self._ended

        async def prepare() -> None:
            await agent.child.start()
            agent.child.pending += await preload(agent.child, agent.definition)
            if "SendMessage" in agent.child.toolbox.by_name and (roster := self._roster(agent)):
                agent.child.add_context(roster)
            if agent.worktree is not None:
                agent.child.plugin_state[GUARD] = agent.worktree.fence()

        agent.begin(prepare, prompt)
        if agent.in_background:
            return self._launched(agent)
        return self._completed(agent, await agent.report())

    def _roster(self, but: Agent) -> str:
        """The named agents that an agent may send messages to."""
        known = [(name, self.known[ids[-1]]) for name, ids in self.names.items() if ids[-1] != but.id]
        lines = [f"- {name} ({agent.id}): {agent.definition.name}, {agent.description}" for name, agent in known]
        return "Agents that SendMessage reaches:\n" + "\n".join(lines) if lines else ""

    def _ended(self, agent: Agent) -> None:
        """The report of the background goes to whoever launched it and still runs, or to the conversation."""
        if not agent.in_background:
            return
        reader: Session | None = agent.child.parent
        while reader is not None and reader.parent is not None:
            above = self.known.get(str(reader.agent_id))
            if above is not None and above.status == "running" and above.child is reader:
                break
            reader = reader.parent
        if not agent.silent:
            (reader or self.root).inbox.post(agent.letter(), {"kind": "task-notification"})
        self.root.inbox.settle(agent.id)

    def _launched(self, agent: Agent) -> ToolResult:
        structured = {"isAsync": True, "status": "async_launched", "agentId": agent.id, "description": agent.description,
                      "resolvedModel": agent.child.model_info.id, "prompt": agent.prompt, "outputFile": agent.output_file,
                      "canReadOutputFile": "Read" in self.root.toolbox.by_name}
        text = (f"The agent works in the background.\nagentId: {agent.id}\noutput file: {agent.output_file or '(none)'}\n"
                "You are told when it ends. Go on with other work, or end your turn; do not guess what it will find, and do not "
                "wait by polling. If you are asked about it before that, say that it still runs.")
        return ToolResult(content=text, structured=structured)

    def _completed(self, agent: Agent, outcome: Outcome) -> ToolResult:
        """The report of the foreground (2 and 6.5).

        :raises ToolError: there is none.
        """
        if outcome.status == "stopped":
            said = f" Its last words were:\n{report.scanned(outcome.text)}" if outcome.text else ""
            raise ToolError("cancelled", f"The agent was stopped: {outcome.error or 'it was interrupted'}.{said}")
        if outcome.status == "failed" and not outcome.text:
            raise ToolError("agent_failed", report.scanned(outcome.error))
        text = report.shown(agent.child, agent.id, outcome.text)
        if outcome.status == "failed":
            text += f"\n\n(The agent's work was cut off, so this may not be all: {report.scanned(outcome.error)})"
        usage, last = agent.usage, agent.child.spending.last
        structured: dict[str, Any] = {
            "status": "completed", "agentId": agent.id, "agentType": agent.definition.name, "prompt": agent.prompt,
            "content": [{"type": "text", "text": text}], "resolvedModel": agent.child.model_info.id,
            "totalToolUseCount": agent.tool_uses, "totalDurationMs": usage["duration_ms"], "totalTokens": usage["total_tokens"],
            "usage": msgspec.to_builtins(last)}
        models = list(agent.child.spending.by_model)
        if len(models) > 1:
            structured["modelsUsed"] = models
        if agent.worktree is not None and agent.worktree.kept:
            structured |= {"worktreePath": agent.worktree.path, "worktreeBranch": agent.worktree.branch}
        return ToolResult(content=f"{text}\n\n{trailer(agent)}", structured=structured)

    async def close(self) -> None:
        """The conversation ends: whatever runs is stopped, and clients are told."""
        import anyio

        for agent in self.known.values():
            agent.silent = True
        async with anyio.create_task_group() as group:
            for agent in self.known.values():
                if agent.status == "running":
                    group.start_soon(agent.stop_at_the_end)
        for agent in self.known.values():
            await agent.child.close()


def trailer(agent: Agent) -> str:
    """What stands behind the report: how to reach the agent again, and what it took."""
    usage = agent.usage
    lines = [] if agent.definition.once else [f"agentId: {agent.id} (SendMessage with this id gives it further tasks)"]
    if agent.worktree is not None and (told := agent.worktree.told().strip()):
        lines.append(told)
    lines.append(f"<usage>total_tokens: {usage['total_tokens']}, tool_uses: {usage['tool_uses']}, "
                 f"duration_ms: {usage['duration_ms']}</usage>")
    return "\n".join(lines)


def in_background(definition: Definition, asked: bool | None) -> bool:
    """Whether nobody waits (6.1): the first that says something; silence means that nobody does."""
    if env_switch("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"):
        return False
    if definition is FORK or definition.background:
        return True
    return True if asked is None else asked


def max_depth() -> int:
    return env_number("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", DEPTH)


def at_once() -> int:
    return env_number("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", AT_ONCE)
