"""A recording on disk: JSON lines, each with a checksum that holds it and all before it.

The first line is the header. Then come events in the order in which they happened: where a step of the run began and ended, what
was said, what came from outside. A line is written before what it tells of is passed on, so that a run that is killed leaves a
recording that can be replayed up to then.
"""

from __future__ import annotations

import os
import zlib
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct, field

from kernel import KernelError

VERSION = 1
MOST_BYTES = 1 << 30
_SUM = 8
_FRONT = b'{"h":"'

Kind = Literal["begin", "piece", "end", "checks", "out", "entry", "fact", "mark", "effect", "input", "returned", "blob", "closed"]


class RecordingError(KernelError):
    """A recording cannot be used."""

    reference = "recording"


class Header(Struct, kw_only=True):
    """What the run began with.

    ``seed``: what ids and chance were made from. ``began``: the wall clock in ISO 8601. ``home``: the configuration folder.
    ``spill``: where long texts went without a transcript. ``plugins``: name -> version, and digest of the code and of the
    settings that it enforces. ``settings``: digest of all settings. ``environment``: variables that steer the harness, without
    credentials, of which ``keys`` names those that were set.
    """

    recording: int
    kernel: str
    contract: str
    seed: str
    began: str
    cwd: str
    home: str
    platform: str
    zone: str
    spill: str
    options: dict[str, Any]
    plugins: dict[str, dict[str, str]]
    settings: str
    environment: dict[str, str]
    keys: list[str] = field(default_factory=list)


class Event(Struct, kw_only=True, omit_defaults=True):
    """One line. ``step``: kind, agent, name, number: which one it belongs to. ``at``: microseconds since the beginning.

    ``by``: who did it, where it was not the run itself: the front end (``front``) or a step that is not run again.
    ``drawn``: what was read from the clock since the last line, by the place in the code that read it.
    """

    kind: Kind = field(name="k")
    step: tuple[str, str, str, int] = field(name="s", default=("", "", "", 0))
    at: int = field(name="t", default=0)
    by: str = field(name="b", default="")
    drawn: dict[str, list[int]] = field(name="c", default_factory=dict)
    data: Raw = field(name="d", default_factory=Raw)

    def read(self) -> Any:
        """What it holds, decoded."""
        return msgspec.json.decode(self.data) if self.data else None


class Writer:
    """Appends lines to a new file of mode 0600.

    :raises RecordingError: it cannot be made, or is there already.
    """

    def __init__(self, path: Path, header: Header, secrets: dict[bytes, bytes]) -> None:
        self.path = path
        self._secrets = secrets
        self._sum = 0
        self._blobs: set[str] = set()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            raise RecordingError("is there already", context=f"recording {path}", hint="name another file") from None
        except OSError as error:
            raise RecordingError(f"cannot be written: {error.strerror}", context=f"recording {path}") from None
        self._line(msgspec.json.encode(header))

    def append(self, event: Event) -> None:
        """:raises OSError: it cannot be written; nothing of it counts."""
        self._line(msgspec.json.encode(event))

    def blob(self, value: bytes) -> str:
        """Keep a JSON value once; its digest."""
        name = digest(self.clean(value))
        if name not in self._blobs:
            self._blobs.add(name)
            self.append(Event(kind="blob", step=(name, "", "", 0), data=Raw(value)))
        return name

    def clean(self, line: bytes) -> bytes:
        """The same without credentials that the process was given."""
        for secret, name in self._secrets.items():
            if secret in line:
                line = line.replace(secret, name)
        return line

    def _line(self, body: bytes) -> None:
        body = self.clean(body)
        total = zlib.crc32(body, self._sum)
        line = b'%s%08x",%s\n' % (_FRONT, total, body[1:])
        view = memoryview(line)
        while view:
            view = view[os.write(self._file, view):]
        self._sum = total

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Recording(Struct):
    """A recording that was read.

    ``cut``: how it ends without its last line: a run that was killed, or a line that was torn. ``blobs``: digest -> JSON.
    ``notes``: what of its header is not taken, in words.
    """

    path: Path
    header: Header
    events: list[Event]
    blobs: dict[str, Raw]
    cut: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return sum(1 for event in self.events if event.kind == "begin")


def load(path: Path) -> Recording:
    """Read and check a recording. What stands behind the last whole line is left out and named in ``cut``.

    :raises RecordingError: it is none, of another version, or was changed; the line is named.
    """
    where = f"recording {path}"
    try:
        if path.stat().st_size > MOST_BYTES:
            raise RecordingError(f"is larger than {MOST_BYTES} bytes", context=where)
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"cannot be read: {error.strerror}", context=where) from None
    *lines, rest = data.split(b"\n")
    if not lines:
        raise RecordingError("holds no whole line", context=where, hint="kernel -p ... --record FILE makes one")
    header, total = _header(lines[0], where)
    events: list[Event] = []
    blobs: dict[str, Raw] = {}
    for number, line in enumerate(lines[1:], 2):
        body, total = _checked(line, total, where, number)
        try:
            event = _decoder.decode(body)
            if event.data:
                msgspec.json.decode(event.data)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise RecordingError(f"is no event of a recording: {error}", context=f"{where}, line {number}") from None
        if event.kind == "blob":
            blobs[event.step[0]] = event.data
        else:
            events.append(event)
    whole = bool(events) and events[-1].kind == "closed"
    cut = "" if whole else f"line {len(lines) + 1} is torn" if rest else "the run was ended before it was over"
    return Recording(path, header, events, blobs, cut)


def _header(line: bytes, where: str) -> tuple[Header, int]:
    body, total = _checked(line, 0, where, 1)
    try:
        version = msgspec.json.decode(body, type=dict[str, Any]).get("recording")
        if isinstance(version, int) and version != VERSION:
            raise RecordingError(f"is of version {version}, this kernel reads version {VERSION}", context=where,
                                 hint="record the run anew")
        return msgspec.json.decode(body, type=Header), total
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise RecordingError(f"the header cannot be used: {error}", context=f"{where}, line 1") from None


def _checked(line: bytes, total: int, where: str, number: int) -> tuple[bytes, int]:
    start = len(_FRONT)
    body = b"{" + line[start + _SUM + 2:]
    found = zlib.crc32(body, total)
    if line[:start] != _FRONT or line[start + _SUM:start + _SUM + 2] != b'",' or line[start:start + _SUM] != b"%08x" % found:
        what = "is no recording of kernel" if number == 1 and not line.startswith(_FRONT) else "was changed or damaged"
        raise RecordingError(what, context=f"{where}, line {number}", hint="the checksum of the line does not fit")
    return body, found


def digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


_decoder = msgspec.json.Decoder(Event)
