"""The context of a subagent: the same loop and gates, with a history, tools, limits and rights of its own (subagents contract).

What is the conversation's and what is not:

* shared: plugins, settings, permission rules and lasting answers, sandbox, whoever is asked (one question at a time), variables
  for commands, the table of background tasks, ``session.root.plugin_state``;
* own: history, system prompt, tools, model, permission mode, working directory, files that were read, limits, transcript,
  inbox, context that waits, ``plugin_state``, the turn's grants;
* counted twice: spending, here and for everybody above.

``SubagentStart`` and ``SubagentStop`` take the place of ``SessionStart`` and ``Stop``; ``Setup``, ``UserPromptSubmit`` and
``SessionEnd`` do not happen. Extensions open, and close with the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from kernel import events as e
from kernel.extension import each, open_all
from kernel.loop import turns
from kernel.messages import Block, History, Role, normalise, reminder, text_block, text_of
from kernel.models import ModelInfo, ModelProvider, Usage
from kernel.outcome import Turn, ending, make_result
from kernel.output import AssistantMessage, Output, ResultMessage, StreamMessage, SystemMessage, ToolProgress, UserMessage
from kernel.prompt import child_sections, gather, joined, opening
from kernel.record import close_calls
from kernel.session import Session
from kernel.tools import Tool
from kernel.transcript import Entry, Transcript
from kernel.variables import env_switch

if TYPE_CHECKING:
    from kernel.events import Event

FORKED = "You are the fork: the conversation up to here is the one you come from. Your own task follows."
"""Stands for the results that the parent was waiting for when it was forked."""
_CONVERSATION = (AssistantMessage, UserMessage, StreamMessage, ToolProgress)
_SESSION_ONLY = frozenset({"status", "init", "api_retry"})
"""System messages about the session itself; a client would take a subagent's for the conversation's."""


class ChildSpec(Struct, kw_only=True):
    """What makes a subagent another than its parent.

    ``prompt``: its system prompt; ``None``: a fork, which has the parent's prompt, tools and history as they are.
    ``tools``: what it is offered; rules and the tools themselves still have their say. ``admits``: asked of every tool, of those
    too that an extension brings later. ``history``: what it did before, where it is resumed.
    ``model``: another provider and model than the parent's. ``mode``: another permission mode.
    ``max_turns``: answers with tool calls. ``instructions``: whether it is told what people wrote for the model, and what
    plugins say about the surroundings.
    ``grants``: allow rules of its own. ``cwd``: where it works, and what "the project" is for it.
    ``watch``: sees every message of the agent, forwarded or not.
    """

    agent_id: str
    agent_type: str
    tool_use_id: str | None = None
    prompt: str | None = ""
    tools: Sequence[Tool] = ()
    admits: Callable[[Tool], bool] | None = None
    history: Sequence[tuple[Role, list[Block]]] = ()
    model: tuple[ModelProvider, ModelInfo] | None = None
    mode: str | None = None
    effort: str | None = None
    max_turns: int | None = None
    instructions: bool = True
    grants: tuple[str, ...] = ()
    cwd: str | None = None
    watch: Callable[[Output], None] | None = None


class Ended(Struct, kw_only=True):
    """How a run of a subagent ended. ``text``: its last words, of whatever run. ``usage``: of its last request."""

    result: ResultMessage
    text: str
    usage: Usage

    @property
    def reason(self) -> str | None:
        return self.result.terminal_reason


class Child(Session):
    """A subagent of ``parent``. ``depth``: layers below the main conversation.

    :param transcript: from ``session.root.transcript.child(...)``.
    """

    def __init__(self, parent: Session, spec: ChildSpec, transcript: Transcript) -> None:
        self.spec = spec
        super().__init__(parent.harness, transcript, parent.root.emit, parent)
        self.agent_id, self.agent_type = spec.agent_id, spec.agent_type
        self.depth: int = getattr(parent, "depth", 0) + 1
        self.prompt_id = parent.prompt_id
        changes: dict[str, Any] = {"max_turns": spec.max_turns}
        self.project_root = spec.cwd or parent.project_root
        if spec.cwd is not None:
            changes["cwd"] = Path(spec.cwd)
        self.options = msgspec.structs.replace(parent.options, **changes)
        if spec.model is not None and spec.model[1].id != self.model_info.id:
            self.provider, self.model_info = spec.model
            self.fold()
        self.state = msgspec.structs.replace(
            parent.state, cwd=spec.cwd or parent.state.cwd, model=self.model_info.id, grants=spec.grants,
            permission_mode=spec.mode or parent.state.permission_mode)
        self.effort = (spec.effort or parent.effort) if self.model_info.effort else None
        self._forwards = bool(self.options.extra.get("forward_subagent_text")
                              or env_switch("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT"))
        if spec.prompt is None:
            self._copy(parent)
        else:
            self.history = History(normalise(spec.history or transcript.restored.messages)[0])
            if spec.admits is not None:
                self.toolbox.admits = spec.admits

    def _copy(self, parent: Session) -> None:
        """A fork: its first request begins with what the parent's last one was."""
        results: list[Block] = [{"type": "tool_result", "tool_use_id": call, "content": FORKED}
                                for call in parent.history.open_calls]
        self.history = History([*parent.history.messages, ("user", results)])
        self.system, self.read_files = parent.system, dict(parent.read_files)
        self.toolbox.copy(parent.toolbox)
        self.toolbox.admits = lambda tool: tool.name not in self.toolbox.by_name  # extensions bring again what is there

    # -- life ----------------------------------------------------------------------------------------------------------
    async def start(self) -> None:
        """Fix tools and system prompt, raise ``SubagentStart``."""
        if self._started:
            return
        self._started = True
        self.tell_problems()
        if self.spec.prompt is not None:
            self.toolbox.offer(self.spec.tools)
        await open_all(self)
        merged = await self.fire(self.make(e.SubagentStart))
        if self.spec.prompt is not None:
            told = await gather(self, list(self.harness.prompt_parts)) if self.spec.instructions else []
            first = opening(self, told)
            if first and not len(self.history):
                self.pending.insert(0, reminder("\n\n".join(s.text for s in first)))
            self.sections = child_sections(self, self.spec.prompt, told)
            self.system = joined(self.sections)
            self.sections += first
        for text in merged.contexts:
            self.add_context(f"SubagentStart hook additional context: {self.cap(text.text)}")

    async def work(self, prompt: str | list[Block] | None) -> Ended:
        """Run a task to its end. Whatever ends it, its history and its transcript stay legal.

        :param prompt: ``None``: what lies in the inbox.
        """
        turn = Turn(self)
        self.spending.turn = Usage()
        self.denials = []
        await self.start()
        if prompt is not None:
            self._admit(prompt)
        try:
            leave = await ending(self, turn, turns(self, turn))
            while leave.terminal_reason == "completed" and len(self.inbox):  # it came behind the last request
                turn.clear()
                leave = await ending(self, turn, turns(self, turn))
        except BaseException:
            close_calls(self, "The agent was stopped.")
            raise
        result = make_result(self, turn, leave, None, None)
        return Ended(result=result, text=turn.text or self.last_words(), usage=self.spending.last)

    def _admit(self, prompt: str | list[Block]) -> None:
        """The task, as the first user message or the next one. No hook sees it: no person typed it."""
        blocks: list[Block] = [text_block(prompt)] if isinstance(prompt, str) else list(prompt)
        close_calls(self, "The agent was stopped.")
        before = self.take_pending()
        self.history.append("user", [*before, *blocks])
        entry = Entry(type="user", uuid=self.clock.new_id(), message={"role": "user", "content": prompt},
                      extra={"promptId": self.prompt_id})
        self.record(*([self.context_entry(before)] if before else []), entry)

    def last_words(self) -> str:
        """The text of the last answer that had any."""
        for role, blocks in reversed(self.history.messages):
            if role == "assistant" and (text := text_of(blocks)).strip():
                return text
        return ""

    async def close(self, reason: str = "other") -> None:
        """Let extensions and the transcript go. Nothing of the conversation ends with it."""
        if self._closed:
            return
        self._closed = True
        if self._started:
            await each(self, "close")
        self.transcript.close()
        self.tell_problems()

    # -- what differs from a conversation with a person ------------------------------------------------------------------
    def stopping(self, active: bool, text: str | None) -> Event:
        return self.make(e.SubagentStop, agent_transcript_path=self.transcript.path, **self._stop_facts(active, text))

    def emit(self, message: Output) -> None:
        """To the conversation's front end, under the call that started the agent; text and thinking only on request."""
        if isinstance(message, _CONVERSATION) and message.parent_tool_use_id is None:
            message.parent_tool_use_id = self.spec.tool_use_id or self.agent_id  # never taken for the conversation's
        self.tell_hearers(message)
        if self.spec.watch is not None:
            self.spec.watch(message)
        if self._passes(message):
            self.root.emit(message)

    def _passes(self, message: Output) -> bool:
        if isinstance(message, AssistantMessage | UserMessage):
            content = message.message.get("content")
            kinds = {b.get("type") for b in content} if isinstance(content, list) else set()
            return self._forwards or bool(kinds & {"tool_use", "tool_result"})
        if isinstance(message, SystemMessage):
            return message.subtype not in _SESSION_ONLY
        return not isinstance(message, ResultMessage | StreamMessage) or (self._forwards and isinstance(message, StreamMessage))

    def say(self, subtype: str, **data: Any) -> None:
        if subtype == "permission_denied":
            data["agent_id"] = self.agent_id
        super().say(subtype, **data)

    def set_title(self, title: str | None) -> None:
        """Has none."""
