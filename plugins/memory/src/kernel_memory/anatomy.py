"""What a first request would hold, part by part, each with its size and where it comes from. Nothing is sent.

A session is opened as for a run and goes as far as its first request: extensions open, servers are connected, files are read.
The place of the provider is taken by one that keeps the request. Hooks that are commands do not run unless they are asked for.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from kernel import Block, Harness, Options, Section, Session, SystemMessage, reminder
from kernel_memory import state

if TYPE_CHECKING:
    from kernel import ModelInfo, ModelProvider, ModelRequest, Output, StreamEvent

PROMPT = "(your prompt)"
FIXED, OWN, TOOLS, FIRST = "system, fixed", "system, this session", "tools", "first message"


class Part(Struct, kw_only=True):
    """One part of a request. ``tokens`` are estimated: a token for four characters of text, for two of JSON.

    ``group``: where it stands. ``source``: a plugin, ``kernel`` or an option; ``file``: where it is written, if anywhere.
    """

    group: str
    name: str
    source: str
    file: str = ""
    characters: int
    tokens: int
    text: str = ""


class Anatomy(Struct, kw_only=True):
    """``later``: tools that are known by name and whose schemas are not sent. ``ended``: why there would be no request."""

    model: str
    window: int
    parts: list[Part]
    later: list[str]
    problems: list[str]
    ended: str = ""

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)


class Sent(BaseException):
    """The first request was about to be sent. No ``Exception``: nobody on its way may take it for a failure to mend."""

    def __init__(self, request: ModelRequest) -> None:
        self.request = request


class Unsent:
    """Stands for the provider; knows its models."""

    def __init__(self, provider: ModelProvider) -> None:
        self.name = provider.name
        self.resolve = provider.resolve

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        raise Sent(request)
        yield  # what makes this a stream

    async def aclose(self) -> None:
        pass


async def anatomy(options: Options, prompt: str = PROMPT) -> Anatomy:
    harness = Harness(options)
    provider_of = harness.provider_of

    def unsent(model: str) -> tuple[ModelProvider, ModelInfo]:
        provider, info = provider_of(model)
        return Unsent(provider), info

    harness.provider_of = unsent  # type: ignore[method-assign]
    said: list[str] = []
    session = harness.open(lambda message: _hear(message, said))
    told = _listen(session)
    ended = ""
    try:
        result = await session.submit(prompt)
        ended = str(result.result or "; ".join(result.errors or ()) or result.subtype)
        request = session.request()
    except Sent as sent:
        request = sent.request
    finally:
        await session.close()
    parts = [*_system(session), *_tools(session, request), *_message(session, told)]
    problems = [text for text in dict.fromkeys([*harness.announced, *said]) if "nothing enforces them" not in text]
    return Anatomy(model=request.model, window=session.model_info.context_window, parts=parts,
                   later=list(session.toolbox.deferred), problems=problems, ended=ended)


def _hear(message: Output, said: list[str]) -> None:
    """Keep what a person would be told."""
    if isinstance(message, SystemMessage) and message.subtype == "informational":
        said.append(str(message.data.get("content")))


def _listen(session: Session) -> dict[str, str]:
    """Note which module's code adds which text; a session does not keep that."""
    told: dict[str, str] = {}
    add = session.add_context

    def noted(text: str) -> None:
        told[reminder(text)["text"]] = str(sys._getframe(1).f_globals.get("__name__", ""))
        add(text)

    session.add_context = noted  # type: ignore[method-assign]
    return told


def _part(group: str, name: str, source: str, text: str, *, file: str = "", per_token: int = 4) -> Part:
    tokens = -(-len(text) // per_token)
    return Part(group=group, name=name, source=source, file=file, characters=len(text), tokens=tokens, text=text)


def _in_system(session: Session) -> list[Section]:
    whole = "\n\n".join(block["text"] for block in session.system)
    return [s for s in session.sections if s.layer != "instructions" and s.text.strip() in whole]


def _system(session: Session) -> Iterator[Part]:
    for section in _in_system(session):
        yield _part(FIXED if section.layer == "rules" else OWN, section.name, section.source, section.text)


def _tools(session: Session, request: ModelRequest) -> Iterator[Part]:
    for definition in request.tools:
        name = str(definition.get("name"))
        tool = session.toolbox.by_name.get(name)
        source = session.harness.tools.owner(name) or (_plugin(session, type(tool).__module__) if tool is not None else "model")
        if name.startswith("mcp__"):
            source = f"MCP server {name.split('__')[1]}"
        yield _part(TOOLS, name, source, msgspec.json.encode(definition).decode(), per_token=2)


def _message(session: Session, told: dict[str, str]) -> Iterator[Part]:
    """The first user message, block by block; of people's instructions file by file."""
    inside = _in_system(session)
    opening = [s for s in session.sections if s not in inside]
    first = reminder("\n\n".join(s.text for s in opening))["text"] if opening else ""
    for block in _last_user(session):
        text = block.get("text")
        if not isinstance(text, str):
            yield _part(FIRST, str(block.get("type")), "prompt", msgspec.json.encode(block).decode(), per_token=2)
        elif text == first:
            for section in opening:
                yield from _files(session, section.text) if section.name == "instructions" else [
                    _part(FIRST, section.name, section.source, section.text)]
        elif text in told:
            plugin = _plugin(session, told[text])
            name = text.removeprefix("<system-reminder>\n").partition("\n")[0]
            yield _part(FIRST, name if len(name) <= 60 else f"{name[:57]}...", plugin, text)
        else:
            yield _part(FIRST, "prompt", "prompt", text)


def _last_user(session: Session) -> list[Block]:
    return [b for role, blocks in session.history.messages for b in blocks if role == "user"]


def _files(session: Session, whole: str) -> Iterator[Part]:
    memory = state.of(session)
    rest = len(whole)
    for instruction in memory.first:
        shown = instruction.shown()
        rest -= len(shown)
        yield _part(FIRST, f"instructions ({instruction.kind.lower()})", "memory", shown, file=instruction.path)
    index = memory.auto.beginning() if memory.auto is not None else ""
    if index and index in whole and memory.auto is not None:
        rest -= len(index)
        yield _part(FIRST, "auto memory", "memory", index, file=memory.auto.index)
    yield _part(FIRST, "instructions (frame)", "memory", " " * max(rest, 0))


def _plugin(session: Session, module: str) -> str:
    """The plugin that a module belongs to."""
    package = module.partition(".")[0]
    for plugin in session.plugins.ready:
        if plugin.module and plugin.module.partition(".")[0] == package:
            return plugin.name
    return "kernel" if package == "kernel" else package
