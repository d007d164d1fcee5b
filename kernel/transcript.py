"""The transcript protocol: where a conversation is kept (sessions contract, sections 2 to 4; decision D9).

The kernel says what happened, in order; a store keeps it. The entry's form on disk is the store's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from kernel.messages import Block, Role

if TYPE_CHECKING:
    from kernel.options import Options
    from kernel.settings import Settings

SessionSource = Literal["startup", "resume", "fork"]


class Entry(Struct, kw_only=True):
    """One thing that happened. ``uuid`` is the one on the stream.

    ``type`` is ``user``, ``assistant`` or ``system``; ``message`` is the API message of the first two. ``extra`` holds
    further documented fields in their wire spelling (``toolUseResult``, ``isMeta``, ``subtype`` ...).
    """

    type: Literal["user", "assistant", "system"]
    uuid: str
    message: dict[str, Any] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


class Restored(Struct, kw_only=True):
    """What a resumed conversation brings along: the active chain, as it was recorded."""

    messages: list[tuple[Role, str | list[Block]]] = field(default_factory=list)
    model: str | None = None
    permission_mode: str | None = None
    title: str | None = None
    agent: str | None = None
    """The agent that the conversation ran as (the fact ``agent-setting``)."""
    deferred: str | None = None
    """Id of the tool call that a hook put off and that is still open (the fact ``deferred-tool``)."""


@runtime_checkable
class Transcript(Protocol):
    """One conversation that is being written.

    ``path`` is the transcript file, or the place where it would be (hooks are told the path in any case).
    """

    session_id: str
    path: str
    source: SessionSource
    restored: Restored
    kept: bool
    """Whether anything is written at all."""
    problems: list[str]
    """What a person must know: damaged lines, a full disk. The kernel announces and clears them."""

    def append(self, entries: list[Entry], *, cwd: str) -> None:
        """Make the entries durable, in order, in one write; when this returns they survive a kill of the process.

        A failure (disk full, no rights) is announced once and never ends the run.
        """

    def set(self, kind: str, value: str) -> None:
        """Keep a fact about the session: ``permission-mode``, ``custom-title``, ``last-prompt``, ``deferred-tool`` ..."""

    def child(self, agent_id: str, meta: dict[str, Any]) -> Transcript:
        """The transcript of a subagent, beside this one; where there is one already, it goes on with what it ``restored``.

        :param meta: ``agentType``, ``toolUseId``?, ``parentAgentId``?, ``worktreePath``? and more, kept beside it.
        """

    def children(self) -> dict[str, dict[str, Any]]:
        """The subagents whose transcripts are there: what was kept beside them, by id."""

    def close(self) -> None:
        """Flush and release. May be called twice."""


class TranscriptStore(Protocol):
    """Registered by ``register_stores`` under ``name``; the setting ``kernel.store`` chooses, ``files`` is the default.

    A store may also have ``sessions(options, settings)``: the conversations of the options' folder, the one that changed last
    first, as ``{"session": id, "changed": ISO 8601, "shown": what to call it, "title"?}``. ``files`` takes an ``EntryStore`` as a
    third argument, as its ``open`` does.
    """

    name: str

    def open(self, options: Options, settings: Settings) -> Transcript:
        """Start, resume, continue or fork, as the options say.

        :raises SessionError: the conversation does not exist, or the chosen id is taken.
        """


class EntryKey(Struct, frozen=True):
    """Where entries belong (sessions contract, section 8). ``subpath``: ``subagents/agent-<id>``; empty for the conversation."""

    project_key: str
    session_id: str
    subpath: str = ""


@runtime_checkable
class EntryStore(Protocol):
    """Keeps entries somewhere else than in files: a database, a service (sessions contract, section 8).

    Also registered by ``register_stores``. It knows nothing of chains, forks and titles: the store ``files`` makes
    conversations of the entries. Entries are JSON objects as they would stand in the file, one per line. All calls may block.
    """

    name: str

    def append(self, key: EntryKey, entries: list[dict[str, Any]]) -> None:
        """Keep the entries, in order, all or none; they are durable when this returns. An empty list does nothing.

        :raises OSError: it cannot be done now. It is tried again later, with what came since.
        """

    def load(self, key: EntryKey) -> list[dict[str, Any]] | None:
        """All entries in order; ``None`` where nothing was ever written.

        :raises OSError: it cannot be done now.
        """

    def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """``{"session_id", "mtime"}`` of every conversation; ``mtime`` in milliseconds since the epoch."""

    def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """``{"session_id", "mtime", "data"}``; ``data`` holds the facts of the conversation by their field name."""

    def delete(self, key: EntryKey) -> None:
        """Remove the entries; for a conversation those of its subagents, too."""

    def list_subkeys(self, key: EntryKey) -> list[str]:
        """The subpaths under a conversation."""


class MemoryTranscript:
    """A conversation that is not kept: no store is loaded, or persistence is off."""

    source: SessionSource = "startup"
    kept = False

    def __init__(self, session_id: str, path: str = "") -> None:
        self._children: dict[str, dict[str, Any]] = {}
        self.session_id = session_id
        self.path = path
        self.restored = Restored()
        self.problems: list[str] = []
        self.entries: list[Entry] = []

    def append(self, entries: list[Entry], *, cwd: str) -> None:
        self.entries += entries

    def set(self, kind: str, value: str) -> None:
        pass

    def child(self, agent_id: str, meta: dict[str, Any]) -> MemoryTranscript:
        self._children[agent_id] = {**self._children.get(agent_id, {}), **meta}
        return MemoryTranscript(self.session_id)

    def children(self) -> dict[str, dict[str, Any]]:
        return dict(self._children)

    def close(self) -> None:
        pass
