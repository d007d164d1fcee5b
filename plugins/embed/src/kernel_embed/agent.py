"""An agent: one conversation of this program, with its own plugins, tools and hooks."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar, cast, overload

import anyio

from kernel import Block, Harness, Options, Output, ResultMessage, Session, Tool, UsageError
from kernel_embed.asking import Asking, OnPermission
from kernel_embed.blocking import SyncAgent
from kernel_embed.errors import Interrupted
from kernel_embed.hooks import Hook
from kernel_embed.notices import LOG, Notice, Notices
from kernel_embed.setup import check_tools, folder, merged, register, require
from kernel_embed.signatures import schema_of
from kernel_embed.tools import FunctionTool
from kernel_embed.turn import Message, Reply, Turn

T = TypeVar("T")
GRACE_S = 5.0
"""How long an interrupted turn has to come to its end by itself."""
Mode = Literal["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"]


class Agent:
    """One conversation. Use it with ``async with``, or ``Agent(...).sync()`` in a program without an event loop.

    What is in the folder and in the home counts as for ``kernel -p``: settings, hooks, skills, instruction files, MCP servers.

    :param cwd: the folder that it works in; the current one by default.
    :param model: alias, id, or ``provider:model``.
    :param system_prompt: replaces the system prompt; ``append_system_prompt`` is added to it.
    :param tools: further tools: functions with ``@tool`` (or without it), and ``kernel.Tool`` objects.
    :param builtin_tools: of the tools that plugins bring only these; ``[]``: none. All by default.
    :param hooks: functions with ``@hook``.
    :param plugins: further objects with ``kernel.hookimpl`` functions, by name: a model provider, a policy, middleware.
    :param allowed_tools: allow rules of this agent, ``["Edit", "Bash(git log *)"]``; ``disallowed_tools``: deny rules.
    :param permission_mode: as ``--permission-mode``.
    :param on_permission: answers what no rule decides. Without it such a call is refused.
    :param on_notice: hears what a person must know. Without it that goes to the log ``kernel_embed``.
    :param max_turns: most requests with tool calls per turn; ``max_budget_usd``: most dollars of the conversation.
    :param mcp_servers: name -> server, as in ``.mcp.json``; ``agents``: name -> subagent, as with ``--agents``.
    :param settings: a settings object or a file, above all others; ``setting_sources``: which of user, project, local to read.
    :param resume: a conversation to go on with, by id or name; ``continue_session``: the latest of the folder; ``fork``: a copy.
    :param persist: whether the conversation is kept.
    :param options: everything else (``kernel.Options``); the other arguments stand above it.
    :raises UsageError: an argument cannot be used.
    """

    def __init__(self, *, cwd: str | Path | None = None, model: str | None = None, system_prompt: str | None = None,
                 append_system_prompt: str | None = None, tools: Iterable[Tool | Callable[..., Any]] = (),
                 builtin_tools: Sequence[str] | None = None, hooks: Iterable[Hook[Any]] = (),
                 plugins: Mapping[str, object] | None = None, allowed_tools: Sequence[str] = (),
                 disallowed_tools: Sequence[str] = (), permission_mode: Mode | None = None,
                 on_permission: OnPermission | None = None, on_notice: Callable[[Notice], Any] | None = None,
                 max_turns: int | None = None, max_budget_usd: float | None = None,
                 effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None,
                 mcp_servers: Mapping[str, Mapping[str, Any]] | None = None,
                 agents: Mapping[str, Mapping[str, Any]] | None = None,
                 settings: Mapping[str, Any] | str | Path | None = None, setting_sources: Sequence[str] | None = None,
                 add_dirs: Sequence[str | Path] = (), plugin_dirs: Sequence[str | Path] = (), resume: str | None = None,
                 continue_session: bool = False, fork: bool = False, session_id: str | None = None, persist: bool | None = None,
                 name: str | None = None, options: Options | None = None) -> None:
        self._tools = [given if isinstance(given, Tool) else FunctionTool(given) for given in tools]
        self._hooks = list(hooks)
        for given in self._hooks:
            if not isinstance(given, Hook):
                raise UsageError(f"{given!r} is no hook", context="Agent(hooks=...)", hint='@hook("PreToolUse") makes one')
        self._plugins = dict(plugins or {})
        self._asking = Asking(on_permission) if on_permission is not None else None
        self._notices = Notices(on_notice)
        extra: dict[str, Any] = {}
        if mcp_servers is not None:
            extra["mcp_config"] = [json.dumps({"mcpServers": {key: dict(value) for key, value in mcp_servers.items()}})]
        if agents is not None:
            extra["agents"] = {key: dict(value) for key, value in agents.items()}
        self._options = merged(
            options, extra, cwd=folder(cwd), model=model, system_prompt=system_prompt, append_system_prompt=append_system_prompt,
            tools=None if builtin_tools is None else [*builtin_tools, *(tool.name for tool in self._tools)],
            allowed_tools=list(allowed_tools) or None, disallowed_tools=list(disallowed_tools) or None,
            permission_mode=permission_mode, max_turns=max_turns, max_budget_usd=max_budget_usd, effort=effort,
            settings=json.dumps(dict(settings)) if isinstance(settings, Mapping) else settings and str(settings),
            setting_sources=None if setting_sources is None else tuple(setting_sources),
            add_dirs=[folder(path) for path in add_dirs] or None, plugin_dirs=[folder(path) for path in plugin_dirs] or None,
            resume=resume, continue_session=continue_session or None, fork_session=fork or None, session_id=session_id,
            persist=persist, name=name)
        self._session: Session | None = None
        self._worker: asyncio.Task[None] | None = None
        self._queue: deque[Turn[Any]] = deque()
        self._news = anyio.Event()
        self._current: Turn[Any] | None = None
        self._early: list[Message] = []
        self._spent = 0.0
        self._model: str | None = None
        self._closed = False

    # -- life ----------------------------------------------------------------------------------------------------------------
    async def __aenter__(self) -> Agent:
        return await self.open()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def open(self) -> Agent:
        """Begin or resume the conversation; what ``async with`` does.

        :raises UsageError: an option, a tool or the model cannot be used.
        :raises SessionError: there is no such conversation.
        """
        if self._worker is not None or self._closed:
            raise UsageError("an agent is opened once", context="Agent", hint="another one with resume= goes on with it")
        opened: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self._worker = asyncio.create_task(self._work(opened), name="kernel agent")
        try:
            self._session = await asyncio.shield(opened)
        except BaseException:
            self._closed = True
            self._worker.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._worker])
            if opened.done() and not opened.cancelled():
                opened.exception()  # it was seen
            raise
        return self

    async def close(self) -> None:
        """Interrupt what runs, drop what waits, end the conversation. May be called twice."""
        if self._worker is None or self._closed:
            self._closed = True
            return
        self._closed = True
        while self._queue:
            self._queue.popleft()._end(None, 0.0)
        with anyio.CancelScope(shield=True):
            if (turn := self._current) is not None:
                self._interrupt(turn)
                await self._over(turn)
            self._ring()
            await asyncio.wait([self._worker])
        if not self._worker.cancelled():
            self._worker.result()

    def sync(self) -> SyncAgent:
        """The same agent for a program without an event loop, opened. Its loop runs in a thread, so it works in notebooks, too.

        :raises KernelError: as ``open()``.
        """
        return SyncAgent(self)

    # -- turns ---------------------------------------------------------------------------------------------------------------
    @overload
    def stream(self, prompt: str | list[Block], *, partial: bool = False) -> Turn[None]: ...
    @overload
    def stream(self, prompt: str | list[Block], *, output: type[T], partial: bool = False) -> Turn[T]: ...
    @overload
    def stream(self, prompt: str | list[Block], *, output: Any, partial: bool = False) -> Turn[Any]: ...

    def stream(self, prompt: str | list[Block], *, output: Any = None, partial: bool = False) -> Turn[Any]:
        """Submit a prompt; it runs when those before it have run. Iterate what comes back, or wait for its ``reply()``.

        :param prompt: a text, or content blocks of the Messages API.
        :param output: the turn ends with a value of that type: a dataclass, a model, ``list[str]`` ..., or a JSON Schema.
        :param partial: the model's stream as well (``StreamMessage``).
        :raises UsageError: the agent is not open, or the type cannot be described.
        """
        schema = None if output is None else self._schema(output)
        return self._submit(Turn(self, prompt, output=output, schema=schema, partial=partial))

    @overload
    async def ask(self, prompt: str | list[Block]) -> Reply[None]: ...
    @overload
    async def ask(self, prompt: str | list[Block], *, output: type[T]) -> Reply[T]: ...
    @overload
    async def ask(self, prompt: str | list[Block], *, output: Any) -> Reply[Any]: ...

    async def ask(self, prompt: str | list[Block], *, output: Any = None) -> Reply[Any]:
        """Submit a prompt and wait for the answer; the arguments are those of ``stream``.

        :raises TurnFailed: there is no answer; ``reason`` says why.
        """
        schema = None if output is None else self._schema(output)
        return await self._submit(Turn(self, prompt, output=output, schema=schema, streams=False)).reply()

    async def settle(self, timeout: float | None = None) -> list[Reply[None]]:
        """Wait for agents and commands in the background. Each report starts a turn; the answers to these come back.

        Without it, a report waits for the next prompt.

        :param timeout: seconds to wait for the next report; ``None``: no limit.
        """
        inbox, replies = self.session.inbox, []
        while len(inbox) or inbox.awaited:
            if len(inbox):
                replies.append(await self._submit(Turn[None](self, None, output=None, schema=None, streams=False)).reply())
            elif not await inbox.wait(timeout):
                break
        return replies

    def interrupt(self) -> bool:
        """End the turn that runs; what waits behind it runs then. False where none runs."""
        if self._current is None:
            return False
        self._interrupt(self._current)
        return True

    # -- what may change -------------------------------------------------------------------------------------------------------
    def set_model(self, model: str) -> None:
        """Another model, from the next turn on.

        :raises UsageError: nobody serves it.
        """
        self.session.harness.provider_of(model)
        self._model = model

    def set_permission_mode(self, mode: Mode) -> None:
        """Another permission mode, from the next call on.

        :raises UsageError: it does not exist or is switched off.
        """
        self.session.set_mode(mode)

    @property
    def session(self) -> Session:
        """The kernel's session, for everything that has no name here.

        :raises UsageError: the agent is not open.
        """
        if self._session is None:
            raise UsageError("the agent is not open", context="Agent", hint="async with Agent(...), or Agent(...).sync()")
        return self._session

    @property
    def session_id(self) -> str:
        """The id of the conversation, for ``resume=``."""
        return self.session.id

    # -- the worker: the one task that the session lives in --------------------------------------------------------------------
    async def _work(self, opened: asyncio.Future[Session]) -> None:
        session: Session | None = None
        try:
            session = self._open_session()
            await session.start()
            check_tools(session.harness, self._tools)
            opened.set_result(session)
            while not self._closed:
                if self._queue:
                    await self._run(session, self._queue.popleft())
                else:
                    await self._news.wait()
        except BaseException as error:
            if opened.done():
                raise
            opened.set_exception(error) if isinstance(error, Exception) else opened.cancel()
            if not isinstance(error, Exception):
                raise
        finally:
            self._closed = True
            while self._queue:
                self._queue.popleft()._end(None, 0.0)
            if session is not None:
                with anyio.CancelScope(shield=True):
                    await session.close()

    def _ring(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    def _open_session(self) -> Session:
        harness = Harness(self._options)
        for text in harness.announced:
            self._notices.announce(text)
        harness.listeners.append(self._notices.announce)
        if LOG.isEnabledFor(logging.DEBUG):
            harness.debug_sink = LOG.debug
        for extra, plugin in (("mcp_config", "mcp"), ("agents", "subagents")):
            if self._options.extra.get(extra):
                require(harness, plugin, f"{extra} need")
        register(harness, self._tools, self._hooks, self._plugins)
        session = harness.open(self._hear)
        if self._asking is not None:
            session.asker = self._asking
        self._spent = session.spending.usd
        return session

    def _hear(self, message: Output) -> None:
        self._notices.hear(message)
        known = cast("Message", message)
        if self._current is not None:
            self._current._take(known)
        else:
            self._early.append(known)

    async def _run(self, session: Session, turn: Turn[Any]) -> None:
        self._current = turn
        early, self._early = self._early, []
        for message in early:
            turn._take(message)
        result: ResultMessage | None = None
        failure: Exception | None = None
        try:
            if self._model is not None:
                model, self._model = self._model, None
                session.switch(model)
            self._set(session, turn)
            with turn._scope:
                origin = session.inbox.origin if turn._prompt is None else None
                result = await session.submit(turn._prompt, origin=origin)
        except Exception as error:
            failure = error
        finally:
            self._current = None
            spent = session.spending.usd
            turn._end(result, spent - self._spent, failure or (None if result else _cut_off()))
            self._spent = spent

    def _set(self, session: Session, turn: Turn[Any]) -> None:
        """The options of this turn, where the kernel and the plugin structured-output look for them."""
        session.options.include_partial_messages = turn._streams
        session.options.extra.pop("json_schema", None)
        if turn._schema is not None:
            session.options.extra["json_schema"] = turn._schema

    def _submit(self, turn: Turn[T]) -> Turn[T]:
        _ = self.session
        if self._closed:
            raise UsageError("the agent is closed", context="Agent", hint="another one with resume= goes on with it")
        self._queue.append(turn)
        self._ring()
        return turn

    def _interrupt(self, turn: Turn[Any]) -> None:
        if turn in self._queue:
            self._queue.remove(turn)
            turn._end(None, 0.0)
        elif turn is self._current:
            self.session.interrupt()

    async def _over(self, turn: Turn[Any]) -> None:
        """Until an interrupted turn is over; one that does not come to its end by itself is cut off."""
        with anyio.move_on_after(GRACE_S):
            await self._ended(turn)
        if not turn._ended:
            turn._scope.cancel()
            await self._ended(turn)

    async def _ended(self, turn: Turn[Any]) -> None:
        while not turn._ended:
            await turn._wake.wait()

    def _schema(self, output: Any) -> dict[str, Any]:
        """:raises UsageError: it cannot be described, or nobody can do it."""
        harness = self.session.harness
        require(harness, "structured-output", "output= needs")
        schema: dict[str, Any] = output if isinstance(output, dict) else schema_of(output, "output")
        extra = harness.options.extra
        running = extra.get("json_schema")
        extra["json_schema"] = schema
        try:
            if (extension := harness.extensions.get("structured-output")) is not None:
                extension.check(harness)
        finally:
            extra["json_schema"] = running
            if running is None:
                del extra["json_schema"]
        return schema


def _cut_off() -> Exception:
    return Interrupted("the turn was cut off before it came to its end", reason="cut_off")
