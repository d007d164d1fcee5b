"""The harness of a test, and what a run of it left behind."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import msgspec

from kernel.clock import Clock
from kernel.errors import UsageError
from kernel.events import Event
from kernel.harness import Harness
from kernel.merge import Merged
from kernel.messages import Block
from kernel.middleware import Middleware
from kernel.models import ModelCaller, ModelRequest, StreamEvent
from kernel.options import Options
from kernel.output import Output, ResultMessage, SystemMessage
from kernel.plugins import PluginSet, decide, find
from kernel.session import Session
from kernel.settings import Layer, Settings
from kernel.testing.builders import event as build_event
from kernel.testing.scripted import Scripted, ScriptedModel, as_body
from kernel.testing.stand_ins import StubPolicy, module
from kernel.tools import Tool, ToolContext, ToolResult, ToolRunner
from kernel.usable import ensure_usable


class Run(msgspec.Struct):
    """What one prompt left behind. ``ran`` holds the ids of the calls whose tool was run."""

    result: ResultMessage
    outputs: list[Output]
    requests: list[dict[str, Any]]
    session: Session
    ran: list[str] = msgspec.field(default_factory=list)

    def result_of(self, tool_use_id: str) -> Block:
        """The result that the model was shown for that call.

        :raises AssertionError: it never saw one.
        """
        for request in reversed(self.requests):
            for message in request["messages"]:
                for block in message["content"]:
                    if block.get("type") == "tool_result" and block.get("tool_use_id") == tool_use_id:
                        found: Block = block
                        return found
        raise AssertionError(f"the model never saw a result for {tool_use_id}; it was shown results for "
                             f"{', '.join(dict.fromkeys(self._answered())) or 'no call'}")

    def _answered(self) -> list[str]:
        return [b["tool_use_id"] for r in self.requests for m in r["messages"] for b in m["content"]
                if b.get("type") == "tool_result"]

    @property
    def text(self) -> str:
        """The final answer; empty where the run ended otherwise."""
        return self.result.result if isinstance(self.result.result, str) else ""

    def notices(self) -> list[str]:
        """What the person was told."""
        return [m.data["content"] for m in self.outputs if isinstance(m, SystemMessage) and m.subtype == "informational"]


class _Witness(Middleware):
    """Notes which calls reach their tool, and what a provider of a plugin is asked."""

    name = "test-kit"

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.requests: list[dict[str, Any]] = []
        self.reads_requests = False

    async def around_tool(self, tool: Tool, input: dict[str, Any], context: ToolContext, next: ToolRunner) -> ToolResult:
        self.ran.append(context.call_id)
        return await next(tool, input, context)

    def around_model(self, request: ModelRequest, next: ModelCaller) -> AsyncIterator[StreamEvent]:
        if self.reads_requests:
            self.requests.append(as_body(request))
        return next(request)


class Kit:
    """A harness in this process.

    :param cwd: the workspace; nothing outside of it is read, not even the settings of the person who runs the tests.
    :param turns: what the model answers, in order.
    :param hooks: plugin name -> module-like object with ``hookimpl`` functions (``module(...)`` makes one).
    :param policy: a policy factory, or a function as ``StubPolicy`` takes it.
    :param installed: names of installed plugins that take part for real.
    :param plugin_dirs: plugin folders that take part, as with ``--plugin-dir`` (a folder's Python part takes part where it is
        installed: name it in ``installed``).
    :param settings: the content of a project settings file.
    :param model: a provider to use instead of the script, or a text as ``--model`` takes it (``"provider:model"``).
    :param check: import the named plugins at once and raise where one cannot be used; ``False`` for tests of such a plugin.
    :param options: further fields of ``Options``.

    :raises UsageError: a plugin of ``installed`` is not there; ``model`` is neither a text nor a provider.
    :raises LoadError: a named plugin is broken or lacks what it depends on, in the kernel's own words.
    """

    def __init__(self, cwd: Path, turns: Iterable[Scripted] = (), *, tools: Iterable[Tool] = (),
                 hooks: dict[str, Any] | None = None, policy: Any = None, installed: Iterable[str] = (),
                 plugin_dirs: Iterable[Path] = (), settings: dict[str, Any] | None = None, clock: Clock | None = None,
                 model: Any = None, check: bool = True, **options: Any) -> None:
        if isinstance(model, str):
            options["model"] = model
        elif model is not None and (isinstance(model, type) or not (hasattr(model, "resolve") and hasattr(model, "stream"))):
            raise UsageError(f"model is a {type(model).__name__}", context="Kit(model=...)",
                             hint="give a provider (an object with name, resolve, stream and aclose) or a text: 'provider:model'")
        self.model = ScriptedModel(turns) if model is None or isinstance(model, str) else model
        self.policy = policy if hasattr(policy, "open") else StubPolicy(policy) if policy else StubPolicy()
        self.outputs: list[Output] = []
        self._witness = _Witness()
        folders = list(plugin_dirs)
        plugins = _plugins(set(installed), folders)
        self._named = list(plugins) if check else []
        for plugin in self._named:
            ensure_usable(plugin)
        given_tools = list(tools)
        brings: dict[str, Any] = {"register_models": lambda register: register(self.model),
                                  "register_tools": lambda register: [register(t) for t in given_tools]}
        if plugins.provider("policies", "rules") is None:
            brings["register_policies"] = lambda register: register(self.policy)
        plugins.register("test-kit", module(**brings))
        plugins.register("~test-kit", module(register_middleware=lambda register: register(self._witness)))  # innermost
        for name, hook in (hooks or {}).items():
            plugins.register(name, hook)
        layers = [Layer("project", str(cwd / ".claude" / "settings.json"), settings, str(cwd))] if settings else []
        name = getattr(self.model, "name", "anthropic")
        layers += [Layer("user", "Kit(model=...)", {"kernel": {"provider": name}}, str(cwd))] if name != "anthropic" else []
        self.harness = Harness(
            Options(**{"cwd": cwd, "persist": False, "plugin_dirs": folders, **options}), plugins=plugins, clock=clock,
            settings=Settings(layers, [], config_dir=cwd / ".config", project_root=cwd, trusted=True))

    def open(self) -> Session:
        """A new session.

        :raises LoadError: a named plugin failed when it registered what it brings.
        :raises UsageError: nobody serves the model; or another provider does, and the script would never be played.
        """
        session = self.harness.open(self.outputs.append)
        if self._named:
            _ = self.harness.tools, self.harness.prompt_parts  # the others are filled by now
        for plugin in self._named:
            ensure_usable(plugin)
        self._witness.reads_requests = session.provider is not self.model or not hasattr(self.model, "requests")
        if session.provider is not self.model and getattr(self.model, "turns", None):
            raise UsageError(f"the model is served by {session.provider.name!r}: the turns of the script would never be played",
                             context="Kit(model=...)", hint="leave the turns out, or the model")
        return session

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What the model was asked so far, decoded."""
        found: list[dict[str, Any]] = self._witness.requests if self._witness.reads_requests else self.model.requests
        return found

    async def run(self, prompt: str, session: Session | None = None) -> Run:
        """Run one prompt, in a new session or in a given one, which stays open."""
        session = session or self.open()
        result = await session.submit(prompt)
        return Run(result, self.outputs, self.requests, session, self._witness.ran)

    async def fire(self, event: Event | str, session: Session | None = None, **fields: Any) -> Merged:
        """Fire one event in a session and return what the answers come to; fields that are not given are filled in.

        ``await kit.fire("PreToolUse", tool_name="Write", tool_input={...})``
        """
        session = session or self.open()
        if isinstance(event, str):
            event = build_event(event, **{"session_id": session.id, "cwd": session.state.cwd, **fields})
        return await session.fire(event)

    # -- the same for tests that are no coroutines ------------------------------------------------------------------
    def play(self, *prompts: str) -> Run:
        """Run prompts one after the other in one session, close it, return the last run."""
        import anyio

        async def go() -> Run:
            session = self.open()
            try:
                for prompt in prompts[:-1]:
                    await session.submit(prompt)
                return await self.run(prompts[-1], session)
            finally:
                await session.close()

        return anyio.run(go)

    def play_event(self, event: Event | str, **fields: Any) -> Merged:
        """``fire`` in a session of its own."""
        import anyio

        async def go() -> Merged:
            session = self.open()
            try:
                return await self.fire(event, session, **fields)
            finally:
                await session.close()

        return anyio.run(go)


def installed(name: str) -> bool:
    """Whether a plugin of that name is installed; for tests that need another plugin and are skipped without it."""
    return any(p.name == name and p.source == "distribution" for p in find())


def provides(kind: str, name: str) -> list[str]:
    """The installed plugins whose manifest says that they bring that: ``provides("tools", "Skill")``."""
    return [p.name for p in find() if p.source == "distribution" and p.manifest
            and name in p.manifest.kernel.provides.get(kind, ())]


def _plugins(wanted: set[str], folders: list[Path]) -> PluginSet:
    every = find(folders)
    missing = sorted(wanted - {p.name for p in every})
    if missing:
        raise UsageError(f"there is no installed plugin {missing[0]!r}", context="Kit(installed=...)",
                         hint="pip install -e . in its folder; installed are: " + (", ".join(p.name for p in every) or "none"))
    found = [p for p in every if p.name in wanted or p.source == "inline"]
    decide(found, ())
    return PluginSet(found)


def plugin_folder(root: Path, name: str, files: dict[str, str | dict[str, Any]] | None = None, *,
                  kernel: dict[str, Any] | None = None, **fields: Any) -> Path:
    """A plugin folder with a manifest and files; dictionaries are written as JSON."""
    manifest: dict[str, Any] = {"name": name, "version": "1.0.0", "description": f"{name} for a test", **fields}
    if kernel is not None:
        manifest["metadata"] = {"kernel": kernel}
    for path, content in {".claude-plugin/plugin.json": manifest, **(files or {})}.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        if path.endswith((".sh", ".py")):
            target.chmod(0o755)
    return root
