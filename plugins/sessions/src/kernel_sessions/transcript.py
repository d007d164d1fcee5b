"""The transcript of one running session: entries and facts come in, lines go out (sessions contract, sections 2 and 3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kernel import Clock, Entry, Restored, SessionError
from kernel_sessions import running
from kernel_sessions.entries import Stamp, fact_line, line
from kernel_sessions.linefile import Durability, LineFile
from kernel_sessions.reader import WINDOW, Fact, facts_in

if TYPE_CHECKING:
    from kernel_sessions.checkpoints import Checkpoints
    from kernel_sessions.side import SideTranscript

REFRESH = WINDOW * 3 // 4
"""A listed fact that has more than this behind it is written again, so that a batch has room before it is out of sight."""
LISTED = ("custom-title", "ai-title", "tag", "last-prompt")
NEVER = 1 << 62
HEAD_ROOM = WINDOW // 2
"""Bytes of context that may stand before the first prompt; listings look for the prompt in the first 64 KiB."""


class FileTranscript:
    """Made by ``FileStore.open``.

    ``problems``: sentences for the person, from opening and from writing. The kernel may show and clear them at any time.
    ``kept``: whether anything is written; if not, nothing of the session belongs on disk.
    ``unfinished``: the resumed conversation's last turn did not come to its end.
    ``observers``: called with (path, lines) after lines are in the file, or in a subagent's; a mirror of the transcript listens.

    :param head: lines that a new file begins with (the copied chain of a fork).
    :param known: the size of the file that was read; 0 for a new one.
    """

    def __init__(self, path: Path, stamp: Stamp, *, source: Literal["startup", "resume", "fork"], restored: Restored, cwd: str,
                 clock: Clock, head: list[bytes] | None = None, known: int = 0, facts: dict[str, Fact] | None = None,
                 durability: Durability = "off", kept: bool = True, unfinished: bool = False,
                 writer: Callable[..., Any] = LineFile) -> None:
        self.session_id = stamp.session_id
        self.path = str(path)
        self.source = source
        self.restored = restored
        self.problems: list[str] = []
        self.unfinished = unfinished
        self.ended: str | None = None
        """When the last message of the resumed conversation was said."""
        self.observers: list[Callable[[str, list[bytes]], None]] = []
        self._stamp = stamp
        self._clock, self._print_mode = clock, stamp.print_mode
        self._head = head or []
        self._facts = facts or {}
        self._refresh_at = 0
        self._durability = durability
        self.checkpoints: Checkpoints | None = None
        """Set by the store where files are kept for rewinding."""
        self.said: dict[str, str] = {}
        """First words of the prompts that have a checkpoint."""
        self.kept = kept
        self._appended = False
        self._running: Path | None = None
        self._file = writer(path, end=known, report=self.problems.append, foreign=self._heed, written=self._tell)
        if kept:
            if known:
                self._warn_of_others()
                self._file.mend()
            self._running = running.announce(self.session_id, cwd, stamp.entrypoint, clock)
        self._plan_refresh()

    # -- writing -------------------------------------------------------------------------------------------------------
    def append(self, entries: list[Entry], *, cwd: str) -> None:
        """Write the entries in one write; see ``kernel.Transcript``."""
        if not self.kept or not entries:
            return
        lines = self._stamp.lines(entries, cwd)
        if not self._appended:
            lines = self._first(entries, lines)
        if self.checkpoints is not None and self._stamp.prompts:
            lines += [line(self.checkpoints.at_prompt(uuid)) for uuid in self._stamp.prompts]
            self.said.update(self._stamp.prompts)
            self._hear_checkpoints()
        data = b"".join(lines)
        if self._file.end + len(data) > self._refresh_at:
            self._file.look()  # a title that was set from outside counts; do not write an older one over it
            again = self._due(self._file.end + len(data))
            lines += again
            data += b"".join(again)
        if self._file.write(data) and (self._durability == "entry" or (self._durability == "turn" and _ends_turn(entries[-1]))):
            self._file.sync()

    def set(self, kind: str, value: str) -> None:
        """Keep a fact: at once where the session has a file, else with the first entries.

        ``last-prompt`` changes with every prompt and is for listings only: it is written at the end, and whenever the
        one before has left the part of the file that listings read.
        """
        if self.plan(kind, value) and kind != "last-prompt" and self._file.begun:
            self._file.write(self._line(kind, self._file.end))

    def plan(self, kind: str, value: str) -> bool:
        """Keep a fact for the next time that something is written. False if nothing is new."""
        if kind == "last-prompt":
            value = " ".join(value.split())
        old = self._facts.get(kind)
        if not self.kept or (old and old.value == value) or (not value and kind != "tag"):
            return False
        self._facts[kind] = Fact(value, old.offset if old else self._file.end, dirty=True)
        self._plan_refresh()
        return True

    @property
    def chosen_title(self) -> str | None:
        """The name that a person gave; not one that was made up."""
        fact = self._facts.get("custom-title")
        return fact.value if fact and fact.value else None

    # -- checkpoints -----------------------------------------------------------------------------------------------------
    def before_change(self, path: str) -> None:
        """A tool is about to change that file."""
        if self.checkpoints is not None:
            self._note(self.checkpoints.before_change(path))

    def adopt(self, olds: dict[str, bytes | None]) -> None:
        """Files that a command changed, with their content before."""
        if self.checkpoints is not None:
            self._note(self.checkpoints.adopt(olds))

    def rewind_files(self, message_id: str, *, dry_run: bool = False) -> dict[str, Any]:
        """See ``kernel.Session.rewind_files``."""
        from kernel_sessions.rewind import rewind

        if self.checkpoints is None:
            raise SessionError("File rewinding is not enabled", hint="CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true, or the "
                               "setting fileCheckpointingEnabled outside of print mode")
        return rewind(self.checkpoints, message_id, dry_run=dry_run)

    def _note(self, entry: dict[str, Any] | None) -> None:
        if entry is not None:
            self._file.write(line(entry))
        self._hear_checkpoints()

    def _hear_checkpoints(self) -> None:
        if self.checkpoints is not None and self.checkpoints.problems:
            self.problems += self.checkpoints.problems
            self.checkpoints.problems.clear()

    # -- subagents -------------------------------------------------------------------------------------------------------
    def child(self, agent_id: str, meta: dict[str, Any]) -> SideTranscript:
        """A subagent's transcript; see ``kernel.Transcript``."""
        from kernel_sessions.side import SideTranscript

        return SideTranscript(self._agents, self.session_id, agent_id, meta, kept=self.kept, print_mode=self._print_mode,
                              clock=self._clock, tell=self._tell_of)

    def children(self) -> dict[str, dict[str, Any]]:
        from kernel_sessions.side import metas

        return metas(self._agents)

    @property
    def _agents(self) -> Path:
        return Path(self.path).with_suffix("") / "subagents"

    def close(self) -> None:
        """Write what listings need within the last bytes of the file, and let go."""
        if self.kept and self._appended:
            self._file.look()
            lines = self._due(self._file.end, closing=True)
            if lines or self._file.waiting:
                self._file.write(b"".join(lines))
            if self._durability != "off":
                self._file.sync()
        self._file.close()
        if self._running is not None:
            running.retract(self._running)
            self._running = None

    # -- inside ----------------------------------------------------------------------------------------------------------
    def _first(self, entries: list[Entry], lines: list[bytes]) -> list[bytes]:
        """What goes ahead of the first batch, and the prompt ahead of long context.

        Readers follow ``parentUuid``, so a line may stand before its parent's.
        """
        self._appended = True
        prompt = next((n for n, e in enumerate(entries) if e.type == "user" and not e.extra.get("isMeta")), 0)
        if sum(map(len, lines[:prompt])) > HEAD_ROOM and not self._file.end and not self._head:
            lines.insert(0, lines.pop(prompt))
        head, self._head = self._head, []
        at = self._file.end + sum(map(len, head))
        facts = [self._line(kind, at) for kind, fact in list(self._facts.items()) if fact.dirty and kind != "last-prompt"]
        return [*head, *facts, *lines]

    def _due(self, size: int, *, closing: bool = False) -> list[bytes]:
        """Lines for the listed facts that a reader of the last 64 KiB would no longer see."""
        return [self._line(kind, size) for kind in LISTED if (fact := self._facts.get(kind)) and fact.value
                and (size - fact.offset > REFRESH or (closing and fact.dirty))]

    def _line(self, kind: str, at: int) -> bytes:
        """The fact as it is written at that offset."""
        value = self._facts[kind].value
        self._facts[kind] = Fact(value, at)
        self._plan_refresh()
        return fact_line(kind, value, self.session_id)

    def _plan_refresh(self) -> None:
        """The file size at which the first listed fact has to be written again."""
        offsets = [fact.offset for kind in LISTED if (fact := self._facts.get(kind)) and fact.value]
        self._refresh_at = min(offsets) + REFRESH if offsets else NEVER

    def _heed(self, data: bytes, offset: int) -> None:
        """Somebody else appended: a newer title or tag of theirs is the session's now."""
        for kind, fact in facts_in(data, offset).items():
            mine = self._facts.get(kind)
            if not (kind == "last-prompt" and mine and mine.dirty):
                self._facts[kind] = fact
        self._plan_refresh()

    def _tell(self, data: bytes) -> None:
        self._tell_of(self.path, data)

    def _tell_of(self, path: str, data: bytes) -> None:
        for observer in self.observers:
            try:
                observer(path, data.splitlines(keepends=True))
            except Exception as error:
                self.problems.append(f"a mirror of transcript {path} failed: {type(error).__name__}: {error}")

    def _warn_of_others(self) -> None:
        pids = running.others(self.session_id)
        if pids:
            self.problems.append(f"session {self.session_id} is also open in process {', '.join(map(str, pids))}; both write to "
                                 "one transcript, and the branch that was written last counts")


def _ends_turn(entry: Entry) -> bool:
    """Whether this is the last piece of an answer that calls no tool."""
    return (entry.type == "assistant" and entry.message is not None
            and entry.message.get("stop_reason") not in (None, "tool_use", "pause_turn"))
