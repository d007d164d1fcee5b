"""The transcript store ``files``: start, resume, continue or fork, as the options say (sessions contract, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, get_args

from kernel import Clock, EntryStore, Options, Restored, SessionError, Settings, UsageError, env_switch
from kernel_sessions import checkpoints, find
from kernel_sessions.chain import first_prompt, restore
from kernel_sessions.cut import ResumeRejected, cut
from kernel_sessions.entries import Stamp
from kernel_sessions.find import Loaded
from kernel_sessions.fork import fork
from kernel_sessions.linefile import Durability
from kernel_sessions.listing import listed
from kernel_sessions.paths import is_session_id, project_dir, reading_dirs
from kernel_sessions.reader import Fact
from kernel_sessions.transcript import FileTranscript

Maker = Callable[..., FileTranscript]


class FileStore:
    """One JSON Lines file per session under ``CONFIG/projects/<project>/``.

    Settings: ``kernel.sessions.fsync`` (``off``, ``turn`` or ``entry``).
    """

    name = "files"

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()

    def open(self, options: Options, settings: Settings, entries: EntryStore | None = None) -> FileTranscript:
        """See ``kernel.TranscriptStore.open``.

        :param entries: keeps the entries in the place of files.
        :raises SessionError: the conversation is not there, cannot be read, or the cut is refused.
        :raises UsageError: the options do not fit together.
        """
        cwd = str(options.cwd)
        _check(options)
        durability, problem = _durability(settings)
        where = _finder(entries)
        loaded = self._source(options, cwd, where)
        make = partial(where.transcript, cwd=cwd, clock=self.clock, durability=durability, kept=_is_kept(options))
        if loaded is None:
            transcript = self._new(options, cwd, make, where)
        elif options.fork_session:
            transcript = self._fork(options, cwd, make, loaded)
        else:
            transcript = self._resume(options, make, loaded)
        if entries is None and transcript.kept and checkpoints.enabled(options, settings):
            self._keep_files(transcript, loaded)
        if loaded is not None:
            last = loaded.chain.messages()[-1:]
            transcript.ended = str(last[0].get("timestamp")) if last else None
            if loaded.chain.lost is not None:
                problem.append(f"transcript {loaded.path}, line {loaded.chain.lost}: the entry before it is not in the file, so "
                               "the conversation begins here; kernel sessions repair "
                               f"{loaded.session_id} links it to the line before")
        transcript.problems += [*(loaded.journal.problems() if loaded else ()), *problem]
        if options.name:
            transcript.restored.title = options.name
            transcript.plan("custom-title", options.name)
        return transcript

    def sessions(self, options: Options, settings: Settings, entries: EntryStore | None = None) -> list[dict[str, Any]]:
        """See ``kernel.TranscriptStore``."""
        rows: list[dict[str, Any]] = _finder(entries).listed(str(options.cwd))
        return rows

    def _keep_files(self, transcript: FileTranscript, loaded: Loaded | None) -> None:
        """Checkpoints from now on, and those there are of the session; a fork begins without."""
        goes_on = loaded if transcript.source == "resume" else None
        transcript.checkpoints = checkpoints.Checkpoints(
            transcript.session_id, self.clock, goes_on.journal.snapshots if goes_on else ())
        if goes_on:
            kept = {point.message_id for point in transcript.checkpoints.points}
            transcript.said = {line.uuid: first_prompt([line.entry]) for line in goes_on.graph.lines if line.uuid in kept}

    def _source(self, options: Options, cwd: str, where: Any) -> Loaded | None:
        """The conversation to go on from, cut where the options say."""
        loaded: Loaded
        if options.resume is not None:
            loaded = where.wanted(options.resume, cwd)
        elif options.continue_session and (found := where.newest(cwd, interactive=not options.print_mode)):
            loaded = found
        else:
            return None
        if options.resume_at is not None:
            loaded.chain = cut(loaded.graph, options.resume_at, options.extra.get("resume_drops_turn"))
        return loaded

    def _new(self, options: Options, cwd: str, make: Maker, where: Any) -> FileTranscript:
        session_id = self._chosen(options)
        if options.session_id and where.is_taken(session_id, cwd):
            raise SessionError(f"Session ID {session_id} is already in use", context="--session-id",
                               hint=f"choose another one, or resume it with --resume {session_id}")
        return make(project_dir(cwd) / f"{session_id}.jsonl", self._stamp(session_id, None, options), source="startup",
                    restored=Restored())

    def _resume(self, options: Options, make: Maker, loaded: Loaded) -> FileTranscript:
        stamp = self._stamp(loaded.session_id, loaded.chain.tail, options, known=loaded.graph.place)
        return make(loaded.path, stamp, source="resume", restored=restore(loaded.journal, loaded.chain),
                    known=loaded.journal.size, facts=loaded.journal.facts, unfinished=loaded.chain.unfinished)

    def _fork(self, options: Options, cwd: str, make: Maker, loaded: Loaded) -> FileTranscript:
        session_id = self._chosen(options)
        if session_id == loaded.session_id:
            raise UsageError("a fork needs another id than its source", context="--session-id")
        copy = fork(loaded.graph, loaded.chain, loaded.session_id, session_id, self.clock)
        restored = restore(loaded.journal, loaded.chain)
        restored.title = copy.title
        facts = {"custom-title": Fact(copy.title, 0, dirty=True)}
        if restored.permission_mode:
            facts["permission-mode"] = Fact(restored.permission_mode, 0, dirty=True)
        return make(project_dir(cwd) / f"{session_id}.jsonl", self._stamp(session_id, copy.tail, options), source="fork",
                    restored=restored, head=copy.lines, facts=facts, unfinished=loaded.chain.unfinished)

    def _chosen(self, options: Options) -> str:
        return options.session_id.lower() if options.session_id else self.clock.new_id()

    def _stamp(self, session_id: str, parent: str | None, options: Options, known: Iterable[str] = ()) -> Stamp:
        return Stamp(session_id, parent, print_mode=options.print_mode, clock=self.clock, known=known)


class FileFinder:
    """Conversations in files."""

    transcript = FileTranscript
    wanted = staticmethod(find.wanted)
    newest = staticmethod(find.newest)

    @staticmethod
    def listed(cwd: str) -> list[dict[str, Any]]:
        return [item.wire() for item in listed(reading_dirs(cwd))]

    @staticmethod
    def is_taken(session_id: str, cwd: str) -> bool:
        return find.is_taken(session_id)


def _finder(entries: EntryStore | None) -> Any:
    if entries is None:
        return FileFinder
    from kernel_sessions.stored import StoredFinder

    return StoredFinder(entries)


def _check(options: Options) -> None:
    """Options that contradict each other."""
    goes_on = options.resume is not None or options.continue_session
    if options.session_id is not None and not is_session_id(options.session_id):
        raise UsageError(f"{options.session_id!r} is not a valid UUID", context="--session-id")
    if options.session_id is not None and goes_on and not options.fork_session and options.session_id != options.resume:
        raise UsageError("a conversation that goes on keeps its id", context="--session-id",
                         hint="add --fork-session to go on under a new one")
    if options.fork_session and not goes_on:
        raise UsageError("there is nothing to fork", context="--fork-session", hint="add --resume ID or --continue")
    if options.resume_at is not None and not goes_on:
        raise UsageError("there is nothing to cut", context="--resume-session-at", hint="add --resume ID")
    if options.extra.get("resume_drops_turn") is not None and options.resume_at is None:
        raise ResumeRejected("it needs --resume-session-at")
    if options.resume is not None and not options.resume.strip():
        raise UsageError("which conversation?", context="--resume", hint="give its ID or its name")


def _is_kept(options: Options) -> bool:
    """Whether the session is written (section 3)."""
    if not options.persist or env_switch("CLAUDE_CODE_SKIP_PROMPT_HISTORY"):
        return False
    is_child = env_switch("CLAUDE_CODE_CHILD_SESSION") and not options.print_mode
    return not is_child or env_switch("CLAUDE_CODE_FORCE_SESSION_PERSISTENCE") is True


def _durability(settings: Settings) -> tuple[Durability, list[str]]:
    given = settings.get("kernel.sessions.fsync")
    if given is None or given in get_args(Durability):
        return given or "off", []
    return "off", [f"setting kernel.sessions.fsync: {given!r} is not off, turn or entry; off is used"]
