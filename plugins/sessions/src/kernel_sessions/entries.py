"""The form of an entry on disk (sessions contract, section 2): compact JSON, one object per line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import msgspec

from kernel import CONTRACT, Clock, Entry
from kernel_sessions.chain import calls, first_prompt, is_prompt, results
from kernel_sessions.paths import git_branch
from kernel_sessions.reader import FACTS

BOUNDARY = "compact_boundary"
DEEPEST = 60

_encode = msgspec.json.Encoder(enc_hook=str).encode


def line(value: dict[str, Any]) -> bytes:
    """The object as one line. Never raises for what a tool or a model put into it."""
    try:
        raw = _encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, OverflowError, RecursionError):
        raw = _encode(_plain(value))
    return escaped(raw) + b"\n"


def escaped(raw: bytes) -> bytes:
    """JSON without raw U+0085, U+2028 and U+2029, at which some readers break lines; they stand in strings only."""
    if not raw.isascii():
        for character in ("\u0085", "\u2028", "\u2029"):
            raw = raw.replace(character.encode(), b"\\u%04x" % ord(character))
    return raw


def _plain(value: Any, depth: int = 0) -> Any:
    """The same value in what JSON has: keys as text, no lone surrogates, unknown objects as text, no endless depth."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth < DEEPEST and isinstance(value, dict):
        return {_plain(k if isinstance(k, str) else str(k)): _plain(v, depth + 1) for k, v in value.items()}
    if depth < DEEPEST and isinstance(value, list | tuple | set | frozenset):
        return [_plain(v, depth + 1) for v in value]
    if depth < DEEPEST and isinstance(value, msgspec.Struct):
        return _plain(msgspec.to_builtins(value, enc_hook=str), depth + 1)
    try:
        return _plain(str(value)[:10_000])
    except Exception:
        return f"<{type(value).__name__}>"


def entrypoint(print_mode: bool) -> str:
    """Who started the program: what a host says, else the kind of the run."""
    return os.environ.get("CLAUDE_CODE_ENTRYPOINT") or ("sdk-cli" if print_mode else "cli")


def fact_line(kind: str, value: str, session_id: str) -> bytes:
    """A metadata line. ``type`` stands first: readers look for lines that begin with it."""
    name = FACTS.get(kind)
    if name is None:
        head, *rest = kind.split("-")
        name = head + "".join(word.capitalize() for word in rest)
    return line({"type": kind, name: value, "sessionId": session_id})


def plain_tag(text: str) -> str:
    """A tag as it is kept: one line of what can be shown."""
    return "".join(c for c in " ".join(text.split()) if c.isprintable())


class Stamp:
    """Gives entries their chain fields; remembers the entry that the next one hangs from.

    :param known: uuids that the file holds already.
    """

    def __init__(self, session_id: str, parent: str | None, *, print_mode: bool, clock: Clock,
                 known: Iterable[str] = ()) -> None:
        self.session_id = session_id
        self.parent = parent
        self.print_mode = print_mode
        self.entrypoint = entrypoint(print_mode)
        self._clock = clock
        self._known = set(known)
        self._cwd = ""
        self._branch = ""
        self._callers: dict[str, str] = {}
        self.prompts: dict[str, str] = {}
        """The prompts among the entries that ``lines`` was last called with: uuid and first words."""

    def lines(self, entries: list[Entry], cwd: str) -> list[bytes]:
        """The entries in order, each the parent of the next."""
        now = self._clock.timestamp()
        self.prompts = {}
        return [self._line(entry, cwd, now) for entry in entries]

    def _line(self, entry: Entry, cwd: str, now: str) -> bytes:
        extra = entry.extra
        starts_turn = entry.type == "user" and "toolUseResult" not in extra and "isMeta" not in extra
        if cwd != self._cwd or starts_turn:
            self._cwd, self._branch = cwd, git_branch(cwd)  # a command may have switched the branch
        uuid = entry.uuid
        if uuid in self._known:  # a host sent its message again after a crash: the same uuid twice would close a circle
            uuid = self._clock.new_id()
        self._known.add(uuid)
        value: dict[str, Any] = {
            "type": entry.type, "uuid": uuid, "parentUuid": self.parent, "sessionId": self.session_id,
            "timestamp": now, "isSidechain": False, "userType": "external", "cwd": cwd, "version": CONTRACT,
            "gitBranch": self._branch, "entrypoint": self.entrypoint}
        if entry.message is not None:
            value["message"] = entry.message
        if extra.get("subtype") == BOUNDARY:
            value["parentUuid"], value["logicalParentUuid"] = None, self.parent
        self._link_results(entry, value)
        value.update(extra)  # an explicit parentUuid starts a branch there
        self.parent = uuid
        if starts_turn and is_prompt(value):
            self.prompts[uuid] = first_prompt([value])
        return line(value)

    def _link_results(self, entry: Entry, value: dict[str, Any]) -> None:
        if entry.type == "assistant":
            for call in calls(value):
                self._callers[call] = entry.uuid
        elif self._callers:
            callers = [c for r in results(value) if (c := self._callers.pop(r, None))]
            if callers:
                value["sourceToolAssistantUUID"] = callers[0]
