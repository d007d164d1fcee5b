"""One conversation: its state, its history, what it costs, and who is told about it.

The session owns all state; plugins keep theirs in ``session.plugin_state``, never in module globals.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import anyio
import msgspec

from kernel import CONTRACT, events as e
from kernel.dispatch import Outcome
from kernel.errors import SessionError, UsageError
from kernel.events import Event
from kernel.extension import each, open_all
from kernel.inbox import Inbox
from kernel.merge import NOTHING, Merged, merge
from kernel.messages import Block, History, Role, normalise, reminder
from kernel.middleware import HookRunner, Middleware, fold
from kernel.models import ModelCaller, ModelRequest, Usage
from kernel.output import ResultMessage
from kernel.policy import Asker, Policy, for_agent
from kernel.prompt import Section, gather, joined, opening, system_sections
from kernel.spending import Spending
from kernel.stream import Assembler
from kernel.toolbox import Toolbox
from kernel.tools import ReadState, State, ToolRunner
from kernel.transcript import Entry, Transcript
from kernel.variables import env_number
from kernel.voice import Emit, Voice

if TYPE_CHECKING:
    from kernel.agents import AgentRunner
    from kernel.clock import Clock
    from kernel.extension import SlashCommand
    from kernel.harness import Harness
    from kernel.reload import Reloaded
    from kernel.sandbox import Sandbox
    from kernel.settings import Settings

NO_AUTO = "permission mode auto needs a classifier (setting kernel.permissions.classifier: the name of a model, or \"session\")"
DEFAULT_MAX_TOKENS = 32_000


class Session(Voice):
    """Opened by ``Harness.open``; not made by hand. A subagent's is a ``Child``.

    ``plugin_state`` is of one context: a subagent begins with an empty one. What belongs to the whole conversation (tables of
    background tasks, connections, callbacks of the embedding program) plugins keep in ``session.root.plugin_state``.

    :param emit: called with every message for the front end, in order; must not block for long.
    """

    def __init__(self, harness: Harness, transcript: Transcript, emit: Emit, parent: Session | None = None) -> None:
        self.parent = parent
        self.root: Session = self if parent is None else parent.root
        """The conversation itself; in a subagent not this object."""
        self.harness = harness
        self.options = harness.options
        self.plugins = harness.plugins
        self.clock: Clock = harness.clock
        self.transcript = transcript
        self.id = transcript.session_id
        self.project_root: str = str(self.options.cwd)
        if parent is None:
            self.provider, self.model_info = harness.choose_model(transcript.restored.model)
            mode = harness.starting_mode(transcript.restored.permission_mode)
        else:
            self.provider, self.model_info, mode = parent.provider, parent.model_info, parent.state.permission_mode
        self.state: State = State(cwd=str(self.options.cwd), model=self.model_info.id, permission_mode=mode)
        self.history: History = History()
        self.background_tasks: dict[str, dict[str, Any]] = parent.background_tasks if parent else {}
        """What runs in the background, by task id; the values are the entries of ``Stop.background_tasks``."""
        self.measured: tuple[Usage, int] | None = None
        """Usage of the last answer, and how many messages the history held with it; ``None`` where it tells nothing any more."""
        self.read_files: dict[str, ReadState] = {}
        self.plugin_state: dict[str, Any] = {}
        self.environment: dict[str, str] = parent.environment if parent else {}
        """Variables that commands get on top of the process's own."""
        self.prompt_id: str | None = None
        self.asked: tuple[str | list[Block] | None, str] | None = None
        """What the run that is on was asked, and the uuid of the prompt's entry."""
        self.last_entry: str | None = None
        """The uuid of the entry that was recorded last: where ``resume_at`` takes a conversation up again."""
        self.ran_before: dict[str, dict[str, Any]] = {}
        """Input of calls whose tools ran in a process before this one, by call id; for a middleware that has their results."""
        self.agent_id: str | None = None
        self.agent_type: str | None = None
        self.effort: str | None = self.options.effort if self.model_info.effort else None
        self.asker: Asker | None = None
        """Asked is always the one of the root."""
        self.interrupted = False
        self.scope: anyio.CancelScope | None = None
        self.partial: Assembler | None = None
        """The answer that is being streamed; an interrupt keeps what it holds."""
        self.asking: anyio.Lock = parent.asking if parent else anyio.Lock()
        self.pending: list[Block] = []
        """Blocks that go to the model with the next user message (context of SessionStart hooks, instructions)."""
        self.inbox = Inbox(self)
        self.init_facts: dict[str, Any] = {}
        """What plugins add to the ``init`` message: ``skills``, ``agents``, ``slash_commands``, ``mcp_servers`` ..."""
        self.plugin_errors: list[dict[str, str]] = []
        """What of plugins could not be used, for the ``init`` message: ``{"plugin", "type", "message"}`` each."""
        self.denials: list[dict[str, Any]] = []
        self.plan_file: str | None = None
        """The file that plan mode may write, where there is one."""
        self.once: dict[str, Any] = {}
        """Changes of the conversation's next request alone, by field of ``ModelRequest``: ``tool_choice``."""
        self.result_facts: dict[str, Any] = {}
        """What plugins add to the result message of the run, by field: ``structured_output``."""
        self.spending: Spending = Spending(parent.spending if parent else None)
        self.title: str | None = transcript.restored.title or self.options.name
        self.initial_message: str | None = None
        """A first prompt that a SessionStart hook or an extension gave; front ends of print mode submit it before their own."""
        self.deferred = False
        """A call that a hook put off is still open; the next run takes it up first (hooks contract, 13.3)."""
        self._emit = emit
        self.hearers = []
        self._started = False
        self._closed = False
        self.sandbox: Sandbox | None = parent.sandbox if parent else harness.open_sandbox(self)
        self.policy: Policy = harness.open_policy(self) if parent is None else for_agent(parent.root.policy, self)
        if self.state.permission_mode == "auto" and not self._auto_works:
            harness.announce(f"{NO_AUTO}; default is used")
            self.state = msgspec.structs.replace(self.state, permission_mode="default")
        self.toolbox: Toolbox = Toolbox(self)
        self.agents: AgentRunner | None = parent.agents if parent else None
        """Who runs subagents; an extension fills it."""
        self.commands: dict[str, SlashCommand] = {}
        """What a person can type as ``/name``; extensions fill it."""
        self.system: list[Block] = []
        self.sections: list[Section] = []
        """What ``system`` and the front of the first user message are made of, and where each text comes from."""
        self.fold()

    def fold(self) -> None:
        """Put the middleware around the steps; anew whenever either side changed."""
        self.middleware: list[Middleware] = [item.for_session(self) for item in self.harness.middleware]
        self.call_model: ModelCaller = fold(self.middleware, "around_model", self.provider.stream)
        self.run_tool: ToolRunner = fold(self.middleware, "around_tool", lambda tool, input, context: tool.call(input, context))
        self.run_hooks: HookRunner = fold(self.middleware, "around_hooks",
                                          lambda event: self.harness.dispatcher.fire(event, self))

    @property
    def settings(self) -> Settings:
        """As they are now: a front end that lives long takes up edited files."""
        return self.harness.settings

    # -- life ----------------------------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Raise ``Setup`` and ``SessionStart``, fix the tools and the system prompt. Called by the first ``submit``."""
        if self._started:
            return
        self._started = True
        self.tell_problems()
        restored, changes = normalise(self.transcript.restored.messages, keep_open=self.transcript.restored.deferred)
        self.history = History(restored)
        self.deferred = bool(self.history.open_calls)
        for change in changes:
            self.debug(f"history mended on resume: {change}")
        self.toolbox.offer(self.harness.tools)
        if len(self.harness.extensions):
            await open_all(self)
        await self.begin(self.transcript.source)

    async def begin(self, source: str) -> None:
        """Ask for the prompt's parts and raise ``SessionStart``: at the start, and again for what ``/clear`` begins."""
        told = await gather(self, list(self.harness.prompt_parts))
        first = opening(self, told)
        if first and not len(self.history):
            self.pending.insert(0, reminder("\n\n".join(s.text for s in first)))
        if self.options.setup_trigger and source != "clear":
            await self.hear(self.make(e.Setup, trigger=self.options.setup_trigger))
        merged = await self.hear(self.make(e.SessionStart, source=source, model=self.model_info.id, session_title=self.title))
        self.set_title(merged.last.get("session_title"))
        if source != "clear":
            self.initial_message = merged.last.get("initial_user_message") or self.initial_message
        if merged.last.get("reload_skills"):
            await each(self, "reload")
        self.sections = system_sections(self, told)
        self.system = joined(self.sections)
        self.sections += first
        if self.transcript.restored.permission_mode != self.state.permission_mode:
            self.transcript.set("permission-mode", self.state.permission_mode)

    async def hear(self, event: Event) -> Merged:
        """Fire an event whose contexts go to the model with its next user message (``SessionStart``, ``Setup``)."""
        merged = await self.fire(event)
        for text in merged.contexts:
            self.add_context(f"{event.hook_name} hook additional context: {self.cap(text.text)}")
        return merged

    async def told_again(self) -> list[Block]:
        """What extensions want the model told again when a summary has taken the place of the history."""
        return [block for blocks in await each(self, "after_compaction") for block in blocks]

    async def submit(self, prompt: str | list[Block] | None, *, uuid: str | None = None,
                     origin: dict[str, Any] | None = None) -> ResultMessage:
        """Run one prompt to its end. Exactly one result comes back, whatever happens.

        :param prompt: ``None`` takes up a call that was put off, where ``deferred`` says that there is one, or what lies in
            the inbox.
        """
        from kernel.loop import run

        return await run(self, prompt, uuid=uuid, origin=origin)

    async def reload(self) -> Reloaded:
        """Take up plugins that were installed, updated or removed since; to be called where no batch runs (``reload.py``)."""
        from kernel.reload import reload

        return await reload(self)

    async def clear(self, title: str | None = None) -> str:
        """Begin another conversation in this process, under a new id (``clear.py``). ``title``: the name that moves along."""
        from kernel.clear import clear

        return await clear(self, title)

    def rewind_files(self, message_id: str, *, dry_run: bool = False) -> dict[str, Any]:
        """Put files back to what they were when that prompt came; the conversation is not touched (sessions contract, 6).

        :returns: ``{"canRewind": True, "filesChanged", "insertions", "deletions", "skippedLinks"?}``.
        :raises SessionError: nothing keeps checkpoints, or none is there for that message.
        """
        rewind = getattr(self.transcript, "rewind_files", None)
        if rewind is None:
            raise SessionError("File rewinding is not enabled")
        done: dict[str, Any] = rewind(message_id, dry_run=dry_run)
        return done

    def blank_result(self, text: str) -> ResultMessage:
        """The result of a prompt that was blank: nothing was asked (headless contract, 3.2)."""
        from kernel.leave import Leave
        from kernel.outcome import Turn, make_result

        self.spending.turn = Usage()
        return make_result(self, Turn(self), Leave("completed", text=text), None, None)

    def interrupt(self) -> None:
        """Stop the stream or the running tools, not the session. May come before the first request."""
        self.interrupted = True
        if self.scope is not None:
            self.scope.cancel()

    async def close(self, reason: str = "other") -> None:
        """Raise ``SessionEnd`` and let go of the transcript. May be called twice."""
        if self._closed:
            return
        self._closed = True
        if self._started:
            await self.fire(self.make(e.SessionEnd, reason=reason))
            await each(self, "close")
        if self.sandbox is not None:
            self.sandbox.close()
        self.transcript.close()
        self.tell_problems()

    # -- events ----------------------------------------------------------------------------------------------------------
    def stopping(self, active: bool, text: str | None) -> Event:
        """The event at the end of an answer. ``active``: the turn goes on because of such an event already."""
        return self.make(e.Stop, **self._stop_facts(active, text))

    def _stop_facts(self, active: bool, text: str | None) -> dict[str, Any]:
        return {"stop_hook_active": active, "last_assistant_message": text, "session_crons": [],
                "background_tasks": [dict(task) for task in self.background_tasks.values()]}

    def make(self, kind: type[Event], **fields: Any) -> Event:
        """An event with the fields that every event of its kind carries (hooks contract, section 10)."""
        if kind.carries_mode:
            fields["permission_mode"] = self.state.permission_mode
        if kind.carries_effort and self.effort:
            fields["effort"] = {"level": self.effort}
        if self.agent_id and "agent_id" not in fields:
            fields["agent_id"] = self.agent_id
        if self.agent_type and "agent_type" not in fields:
            fields["agent_type"] = self.agent_type
        return kind(session_id=self.id, transcript_path=self.root.transcript.path, cwd=self.state.cwd,
                    prompt_id=self.prompt_id, **fields)

    async def fire(self, event: Event) -> Merged:
        """Fire an event, merge the answers, tell the person what is theirs to know."""
        try:
            outcomes = await self.run_hooks(event)
        except Exception as error:  # of a middleware: nobody's answer counts, and a gate refuses
            outcomes = [Outcome("middleware", None, error, 0.0)]
        if not outcomes:
            return NOTHING
        merged = merge(event, outcomes)
        self.harness.trace(self, event, outcomes, merged)
        self.tell_of(event, merged)
        return merged

    # -- what the program is told -------------------------------------------------------------------------------------
    def say_init(self) -> None:
        """The ``init`` message that begins every turn (headless contract, 5.2)."""
        broken = [*({"plugin": p.name, "type": p.state, "message": "; ".join(p.errors)}
                    for p in self.plugins if p.state == "broken"), *self.plugin_errors]
        facts = {
            "apiKeySource": "ANTHROPIC_API_KEY" if os.environ.get("ANTHROPIC_API_KEY") else "none",
            "claude_code_version": CONTRACT, "cwd": self.state.cwd,
            "tools": [name for tool in self.toolbox.offered for name in (tool.name, *tool.listed_as)],
            "mcp_servers": [], "model": self.model_info.id, "permissionMode": self.state.permission_mode,
            "slash_commands": [name for name, command in self.commands.items() if not getattr(command, "hidden", False)],
            "output_style": self.settings.get("outputStyle") or "default", "skills": [], "agents": [],
            "plugins": [{"name": p.name, "path": str(p.root)} for p in self.plugins.ready], **self.init_facts}
        for name, value in (("betas", self.options.betas), ("plugin_errors", broken)):
            if value:
                facts[name] = value
        self.say("init", **facts)

    # -- context -----------------------------------------------------------------------------------------------------------
    def take_pending(self) -> list[Block]:
        """What waits for the model's next user message, letters included; it does not wait any more."""
        pending, self.pending = self.pending, []
        return pending + self.inbox.take() if len(self.inbox) else pending

    def add_context(self, text: str) -> None:
        """Text for the model, with its next user message."""
        self.pending.append(reminder(text))

    def record(self, *entries: Entry) -> None:
        """Keep entries in the transcript; durable when it returns."""
        self.transcript.append(list(entries), cwd=self.state.cwd)
        self.last_entry = entries[-1].uuid
        if self.transcript.problems:
            self.tell_problems()

    def tell_problems(self) -> None:
        """Announce what the transcript has to say for itself."""
        for problem in self.transcript.problems:
            self.harness.announce(problem)
        self.transcript.problems.clear()

    def context_entry(self, blocks: list[Block]) -> Entry:
        """An entry for context that no person typed."""
        return Entry(type="user", uuid=self.clock.new_id(), message={"role": "user", "content": blocks},
                     extra={"isMeta": True})

    # -- the model ------------------------------------------------------------------------------------------------------------
    def request(self, **changes: Any) -> ModelRequest:
        """The next request. Everything but the history is the same object from turn to turn."""
        wanted = env_number("CLAUDE_CODE_MAX_OUTPUT_TOKENS", DEFAULT_MAX_TOKENS)
        request = ModelRequest(model=self.model_info.id, max_tokens=min(wanted, self.model_info.max_output),
                               system=self.system, tools=self.toolbox.definitions, history=self.history,
                               thinking=self._thinking(), effort=self.effort, betas=self.options.betas)
        return msgspec.structs.replace(request, **changes) if changes else request

    def _thinking(self) -> dict[str, Any] | None:
        tokens, kind = self.options.max_thinking_tokens, self.options.thinking
        if not tokens and not kind:
            return None
        thinking: dict[str, Any] = {"type": "enabled", "budget_tokens": max(1024, tokens)} if tokens else {"type": kind}
        display = self.options.extra.get("thinking_display")
        return {**thinking, "display": display} if display and thinking["type"] != "disabled" else thinking

    def switch(self, model: str) -> None:
        """Change the model for the requests to come. Thinking of another model is dropped: its signatures would be refused.

        :raises UsageError: no provider serves the model.
        """
        provider, info = self.harness.provider_of(model)
        if info.id != self.model_info.id:
            self.history = History(normalise(self.history.messages, keep_thinking=False)[0])
        self.provider, self.model_info = provider, info
        self.fold()
        self.state = msgspec.structs.replace(self.state, model=info.id)

    def rewrite(self, messages: list[tuple[Role, list[Block]]]) -> None:
        """Put another history in the place of this one: shortened, or summed up. The transcript is the caller's to write.

        :raises HistoryError: the API would refuse it; nothing is changed.
        """
        self.history = History(messages)
        self.measured = None

    def set_title(self, title: str | None) -> None:
        """Name the session; an empty name changes nothing."""
        if title and title != self.title:
            self.title = title
            self.transcript.set("custom-title", title)

    @property
    def _auto_works(self) -> bool:
        return getattr(self.policy, "auto", False) is True

    def set_mode(self, mode: str) -> None:
        """Change the permission mode (permissions contract, 7.7).

        :raises UsageError: the mode does not exist, is switched off, or nobody answers in it.
        """
        mode = self.harness.checked_mode(mode)
        if mode == "auto" and not self._auto_works:
            raise UsageError(NO_AUTO, context="permission mode")
        self.state = msgspec.structs.replace(self.state, permission_mode=mode)
        self.transcript.set("permission-mode", self.state.permission_mode)
        self.say("status", status=None, permissionMode=self.state.permission_mode)
