"""The harness of a replay, put together from the header of a recording."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from kernel import Harness, ModelInfo, ModelProvider, ModelRequest, Options, StreamEvent, UsageError
from kernel_replay import places
from kernel_replay.recording import Event, Recording, RecordingError

STATE = frozenset({"projects", "sessions", "todos", "tasks", "plans", "file-history", "shell-snapshots", "tool-results", "logs",
                   "cache", "statsig", "debug"})
"""Folders of the configuration folder that runs write to; a replay begins without them."""
SHORTEST = 6
"""Characters of a stand-in's name."""


@contextmanager
def surroundings(recording: Recording) -> Iterator[dict[str, str]]:
    """The variables that the run had, and stand-ins for the folders that it wrote to: recorded path -> path in the replay.

    All is put back afterwards. A stand-in's path is as long as the real one wherever that can be: lengths of texts decide on cuts
    and counts of tokens.
    """
    before = dict(os.environ)
    header = recording.header
    given = _variables(recording, before)
    own = os.path.realpath(before.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude"))
    stand_ins = {folder: _stand_in(folder) for folder in (header.home, header.spill) if folder}
    try:
        for name in before:
            if places.steers(name) or (name.startswith(places.PREFIXES) and places.is_secret(name)):
                del os.environ[name]
        os.environ.update(given)
        if os.path.realpath(header.home) == own:
            _link(Path(own), Path(stand_ins[header.home]))
        elif os.path.isdir(header.home):
            recording.notes.append(f"the configuration folder {header.home} is not the one in force here, so nothing is "
                                   f"read there; CLAUDE_CONFIG_DIR={header.home} does so")
        os.environ["CLAUDE_CONFIG_DIR"] = stand_ins[header.home]
        yield stand_ins
    finally:
        os.environ.clear()
        os.environ.update(before)
        for folder in stand_ins.values():
            shutil.rmtree(folder, ignore_errors=True)


def _variables(recording: Recording, before: dict[str, str]) -> dict[str, str]:
    """Those of the header that a recorder writes; the others are named and left out.

    :raises RecordingError: one cannot be the name or the value of a variable.
    """
    header, where = recording.header, f"recording {recording.path}"
    for name, value in [*header.environment.items(), *((name, "") for name in header.keys)]:
        if not places.is_name(name) or "\0" in value:
            raise RecordingError(f"environment: {name[:80]!r} cannot be set", context=where,
                                 hint="no recorder writes such a variable")
    given = {name: value for name, value in header.environment.items() if places.steers(name)}
    left = {name for name in header.environment if name not in given and header.environment[name] != before.get(name)}
    left -= {"CLAUDE_CONFIG_DIR"}
    for name in header.keys:
        if name.startswith(places.PREFIXES) and places.is_secret(name):
            given[name] = "replayed"
        else:
            left.add(name)
    if left:
        recording.notes.append(f"variables that a recording does not set were left out: {', '.join(sorted(left))}")
    return given


def _stand_in(folder: str) -> str:
    """A new folder of mode 0700, if possible with a path of the same length."""
    base = "/tmp/"  # noqa: S108  # short; the name is random and the folder new
    room = len(folder) - len(base)
    if room >= SHORTEST and os.path.isdir(base):
        made = base + secrets.token_hex(room // 2 + 1)[:room]
        try:
            os.mkdir(made, 0o700)
        except OSError:
            pass
        else:
            return made
    return os.path.realpath(tempfile.mkdtemp(prefix="kernel-replay-"))


def _link(real: Path, stand_in: Path) -> None:
    """What people wrote is read where it is; what runs keep is not touched."""
    if real.is_dir():
        for entry in real.iterdir():
            if entry.name not in STATE:
                (stand_in / entry.name).symlink_to(entry)


CODE = {"plugin_dirs": "--plugin-dir", "harness": "--harness", "settings": "--settings"}
"""Options that name code or commands: a file that somebody made is no reason to run those."""


def harness_of(recording: Recording, changes: dict[str, Any] | None = None, *, live: Iterable[str] = ()) -> Harness:
    """The harness that was recorded, with other options as ``changes`` say. What of the options names code is not taken over.

    :param live: as for ``replay``; without ``tools`` or ``mcp`` no MCP server is started.
    :raises RecordingError: its folder is not there, its options cannot be used, it used MCP servers, and those are not live,
        or no plugin has a name that is to be blocked.
    """
    where = f"recording {recording.path}"
    given = dict(recording.header.options)
    for name, flag in CODE.items():
        if (value := given.pop(name, None)) and name not in (changes or {}):
            recording.notes.append(f"{flag} of the recording is not taken over: {str(value)[:200]!r}; "
                                   "give it again where you trust it")
    try:
        options = msgspec.convert({**given, **(changes or {})}, Options, strict=False,
                                  dec_hook=lambda kind, value: kind(value))
    except msgspec.ValidationError as error:
        raise RecordingError(f"its options cannot be used: {error}", context=where) from None
    if frozenset(live).isdisjoint(("tools", "mcp")):
        if _used_servers(recording, options):
            raise RecordingError("used MCP servers, and a replay starts none", context=where,
                                 hint="--live mcp starts them, with the recorded answers; --live tools asks them as well. "
                                      "Only for a recording that you trust: it says what is started")
        options.extra["strict_mcp_config"] = True
    options.extra["replaying"] = True
    options.resume, options.continue_session = None, False
    options.add_dirs = [Path(p) for p in options.add_dirs]
    if not options.cwd.is_dir():
        raise RecordingError(f"was made in {options.cwd}, which is not there", context=where,
                             hint="--cwd FOLDER replays elsewhere")
    harness = ReplayHarness(recording, options)
    there = {p.name for p in harness.plugins} | recording.header.plugins.keys() | {"all"}
    for name in (changes or {}).get("block", ()):
        if name not in there and name not in recording.header.options.get("block", ()):
            raise RecordingError(f"no plugin has the name {name!r}", context="--block",
                                 hint=f"one of {', '.join(sorted(there))}; --block again for each")
    return harness


def _used_servers(recording: Recording, options: Options) -> bool:
    """Whether the options bring MCP servers, or the run had some."""
    agents = options.extra.get("agents")
    if isinstance(agents, str):
        with suppress(ValueError, RecursionError):
            agents = json.loads(agents)
    if options.extra.get("mcp_config") or options.extra.get("mcp_servers") or "mcpServers" in repr(agents):
        return True
    for event in recording.events:
        if event.kind == "begin" and event.step[0] == "tool" and event.step[2].startswith("mcp__"):
            return True
        if event.kind == "out" and b'"mcp_servers":[{' in bytes(event.data):
            return True
    return False


class ReplayHarness(Harness):
    """A harness whose models are those that were recorded, where nobody serves them here."""

    def __init__(self, recording: Recording, options: Options) -> None:
        self._infos = list(_infos(recording.events))
        super().__init__(options)

    def provider_of(self, model: str) -> tuple[ModelProvider, ModelInfo]:
        try:
            return super().provider_of(model)
        except UsageError:
            if not self._infos:
                raise
            wanted = model.partition(":")[2] or model
            return NoModel(), next((i for i in self._infos if i.id in (model, wanted)), self._infos[0])


class NoModel:
    """Is never asked: the answers come from the recording."""

    name = "recorded"

    def resolve(self, model: str) -> ModelInfo | None:
        return ModelInfo(id=model)

    async def stream(self, request: ModelRequest) -> Any:
        raise RuntimeError("no model is asked in a replay")
        yield StreamEvent()

    async def aclose(self) -> None:
        pass


def _infos(events: list[Event]) -> Iterator[ModelInfo]:
    for event in events:
        if event.kind == "begin" and event.step[0] == "model" and (info := event.read().get("info")):
            yield msgspec.convert(info, ModelInfo)


def moved(recording: Recording, cwd: Path) -> Recording:
    """The recording as if it had been made in another folder."""
    there, here = (msgspec.json.encode(str(p))[1:-1] for p in (recording.header.cwd, cwd.resolve()))

    def other(value: Any) -> Any:
        raw = bytes(value)
        return msgspec.Raw(raw.replace(there, here)) if there in raw else value

    events = [msgspec.structs.replace(event, data=other(event.data)) for event in _whole(recording.events)]
    header = msgspec.json.decode(msgspec.json.encode(recording.header).replace(there, here), type=type(recording.header))
    blobs = {name: other(value) for name, value in recording.blobs.items()}
    return Recording(recording.path, header, events, blobs, recording.cut, recording.notes)


def _whole(events: list[Event]) -> list[Event]:
    """The input of a call in one piece, since a path may be cut in two."""
    found = list(events)
    inputs: dict[tuple[Any, Any], list[int]] = {}
    for number, event in enumerate(events):
        if event.kind == "piece" and b'"partial_json"' in bytes(event.data):
            inputs.setdefault((event.step, event.read().get("index")), []).append(number)
    for numbers in inputs.values():
        wires = [found[n].read() for n in numbers]
        text = "".join(str(w["delta"].get("partial_json", "")) for w in wires)
        for n, w in zip(numbers, wires, strict=True):
            w["delta"]["partial_json"], text = text, ""
            found[n] = msgspec.structs.replace(found[n], data=msgspec.Raw(msgspec.json.encode(w)))
    return found
