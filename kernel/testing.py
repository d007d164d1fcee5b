"""The public test kit: a harness in your own process, without a model, a network or a terminal.

A plugin's test in five lines::

    from kernel.testing import Kit, call, text

    async def test_my_tool(tmp_path):
        kit = Kit(tmp_path, [call("MyTool", value=1), text("done")], tools=[MyTool()])
        run = await kit.run("go")
        assert "1" in run.result_of("call_1")["content"]

The loop, the dispatcher, the merge and the batch are the real ones; the model plays a script.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec

from kernel.clock import Clock
from kernel.errors import ModelError, StreamError
from kernel.harness import Harness
from kernel.hookspecs import hookimpl
from kernel.messages import Block
from kernel.models import ModelInfo, ModelRequest, Prices, StreamEvent
from kernel.options import Options
from kernel.output import Output, ResultMessage, SystemMessage
from kernel.plugins import Plugin, PluginSet, decide, find
from kernel.policy import PermissionCall, Verdict
from kernel.session import Session
from kernel.settings import Layer, Settings
from kernel.tools import Tool


# -- turns of a script ------------------------------------------------------------------------------------------------
def text(value: str) -> Block:
    return {"type": "text", "text": value}


def call(name: str, id: str | None = None, /, **input: Any) -> Block:
    """One tool call. Ids count up within a model: ``call_1``, ``call_2`` ... where none is given."""
    return {"type": "tool_use", "id": id, "name": name, "input": input}


class Turn(msgspec.Struct, kw_only=True):
    """An answer with more to it: a stop reason, a failure, a stream that is cut after ``cut`` events."""

    blocks: list[Block] = msgspec.field(default_factory=list)
    stop_reason: str | None = None
    fail: ModelError | None = None
    cut: int | None = None
    usage: dict[str, int] = msgspec.field(default_factory=lambda: {"input_tokens": 10, "output_tokens": 5})


Scripted = Block | Sequence[Block] | Turn | Callable[[dict[str, Any]], Any]


class ScriptedModel:
    """A model provider that plays turns and keeps every request as the API would have seen it.

    ``requests``: decoded JSON bodies (``model``, ``system``, ``tools``, ``messages``). A finished script answers "The
    script has ended.".
    """

    name = "anthropic"

    def __init__(self, turns: Iterable[Scripted] = (), *, prices: Prices | None = None) -> None:
        self.turns = list(turns)
        self.requests: list[dict[str, Any]] = []
        self.prices = prices
        self._ids = itertools.count(1)
        self._calls = itertools.count(1)

    def resolve(self, model: str) -> ModelInfo | None:
        return ModelInfo(id=model, prices=self.prices)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        body = {"model": request.model, "system": request.system, "tools": request.tools,
                "messages": msgspec.json.decode(request.history.encode())}
        self.requests.append(body)
        turn: Any = self.turns.pop(0) if self.turns else text("The script has ended.")
        while callable(turn):
            turn = turn(body)
        if not isinstance(turn, Turn):
            turn = Turn(blocks=[turn] if isinstance(turn, dict) else list(turn))
        if turn.fail is not None:
            raise turn.fail
        for number, event in enumerate(self._events(turn, request.model)):
            if turn.cut is not None and number >= turn.cut:
                raise StreamError("cut", kind="connection_error")
            yield event

    def _events(self, turn: Turn, model: str) -> Iterable[StreamEvent]:
        calls = any(b.get("type") == "tool_use" for b in turn.blocks)
        yield {"type": "message_start", "message": {"id": f"msg_{next(self._ids)}", "model": model, "usage": turn.usage}}
        for index, block in enumerate(turn.blocks):
            kind = block["type"]
            if kind == "text":
                yield {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
                yield {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": block["text"]}}
            elif kind == "tool_use":
                start = {**block, "id": block["id"] or f"call_{next(self._calls)}", "input": {}}
                raw = start.pop("raw_input", None)
                yield {"type": "content_block_start", "index": index, "content_block": start}
                yield {"type": "content_block_delta", "index": index, "delta": {
                    "type": "input_json_delta", "partial_json": json.dumps(block["input"]) if raw is None else raw}}
            else:
                yield {"type": "content_block_start", "index": index, "content_block": block}
            yield {"type": "content_block_stop", "index": index}
        reason = turn.stop_reason or ("tool_use" if calls else "end_turn")
        yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": turn.usage}
        yield {"type": "message_stop"}

    async def aclose(self) -> None:
        pass


# -- stand-ins --------------------------------------------------------------------------------------------------------
class FakeClock(Clock):
    """Time that moves only when somebody sleeps; ids that count up. ``sleeps`` keeps what was slept, in seconds."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._now = 0.0
        self._ids = itertools.count(1)
        self.sleeps: list[float] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._now)

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self._now += seconds

    def new_id(self) -> str:
        return f"00000000-0000-4000-8000-{next(self._ids):012x}"


class StubPolicy:
    """Decides by a function of (tool name, input); ``"allow"`` for everything by default. Every call is kept."""

    name = "rules"

    def __init__(self, decide: Callable[[str, dict[str, Any]], str] = lambda name, input: "allow") -> None:
        self._decide = decide
        self.calls: list[PermissionCall] = []

    def open(self, session: Session) -> StubPolicy:
        return self

    def decide(self, call: PermissionCall) -> Verdict:
        self.calls.append(call)
        behavior: Any = self._decide(call.tool.name, call.input)
        if behavior == "ask" and call.hook == "allow":
            behavior = "allow"
        if behavior == "allow" and call.hook == "ask":
            behavior = "ask"
        return Verdict(behavior=behavior, reason_type="rule", message=f"decided: {behavior}")

    def is_visible(self, tool: Tool) -> bool:
        return True

    def matches(self, rule: str, tool_name: str, input: dict[str, Any]) -> bool:
        return rule.split("(", 1)[0] == tool_name

    def update(self, changes: list[dict[str, Any]]) -> list[str]:
        return []


def module(**functions: Any) -> SimpleNamespace:
    """Functions as a plugin's module: ``module(pre_tool_use=lambda event: ...)``."""
    return SimpleNamespace(**{name: f if hasattr(f, "kernel_impl") else hookimpl(f) for name, f in functions.items()})


# -- the kit ------------------------------------------------------------------------------------------------------------
class Run(msgspec.Struct):
    """What one prompt left behind."""

    result: ResultMessage
    outputs: list[Output]
    requests: list[dict[str, Any]]
    session: Session

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
        raise AssertionError(f"the model never saw a result for {tool_use_id}")

    def notices(self) -> list[str]:
        """What the person was told."""
        return [m.data["content"] for m in self.outputs if isinstance(m, SystemMessage) and m.subtype == "informational"]


class Kit:
    """A harness in this process.

    :param cwd: the workspace; nothing outside of it is read, not even the settings of the person who runs the tests.
    :param turns: what the model answers, in order.
    :param hooks: plugin name -> module-like object with ``hookimpl`` functions (``module(...)`` makes one).
    :param policy: a policy factory, or a function as ``StubPolicy`` takes it.
    :param installed: names of installed plugins that take part for real.
    :param settings: the content of a project settings file.
    :param options: further fields of ``Options``.
    """

    def __init__(self, cwd: Path, turns: Iterable[Scripted] = (), *, tools: Iterable[Tool] = (),
                 hooks: dict[str, Any] | None = None, policy: Any = None, installed: Iterable[str] = (),
                 settings: dict[str, Any] | None = None, clock: Clock | None = None, model: Any = None,
                 **options: Any) -> None:
        self.model = model or ScriptedModel(turns)
        self.policy = policy if hasattr(policy, "open") else StubPolicy(policy) if policy else StubPolicy()
        self.outputs: list[Output] = []
        wanted = set(installed)
        found = [p for p in find() if p.name in wanted]
        decide(found, ())
        plugins = PluginSet(found)
        given_tools = list(tools)
        brings: dict[str, Any] = {"register_models": lambda register: register(self.model),
                                  "register_tools": lambda register: [register(t) for t in given_tools]}
        if not any(p.manifest and "rules" in p.manifest.kernel.provides.get("policies", ()) for p in found):
            brings["register_policies"] = lambda register: register(self.policy)
        plugins.register("test-kit", module(**brings))
        for name, hook in (hooks or {}).items():
            plugins.register(name, hook)
        layers = [Layer("project", str(cwd / ".claude" / "settings.json"), settings, str(cwd))] if settings else []
        self.harness = Harness(
            Options(**{"cwd": cwd, "persist": False, **options}), plugins=plugins, clock=clock,
            settings=Settings(layers, [], config_dir=cwd / ".config", project_root=cwd, trusted=True))

    def open(self) -> Session:
        return self.harness.open(self.outputs.append)

    async def run(self, prompt: str, session: Session | None = None) -> Run:
        """Run one prompt, in a new session or in a given one, which stays open."""
        session = session or self.open()
        result = await session.submit(prompt)
        return Run(result, self.outputs, self.model.requests, session)


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


__all__ = ["FakeClock", "Kit", "Plugin", "Run", "ScriptedModel", "StubPolicy", "Turn", "call", "module", "plugin_folder",
           "text"]
