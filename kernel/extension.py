"""What a plugin adds to a running session beyond tools and hooks: at its start, at each prompt, at each request.

An extension is registered once and used by every session of a harness; what it knows of one session it keeps in
``session.plugin_state``. Typed commands (``/name``) are what it offers a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from kernel.leave import Leave
from kernel.messages import Block

if TYPE_CHECKING:
    from kernel.harness import Harness
    from kernel.session import Session


class Extension:
    """Base of all extensions; every method may be left as it is. Registered by ``register_extensions`` under ``name``.

    A method that raises is announced with the plugin's name and does not end the run. In a subagent's session
    ``session.parent`` is set; its task is no prompt and its end no run of the conversation's, so ``before_prompt`` and ``at_end``
    are not called there.
    """

    name: str

    def check(self, harness: Harness) -> None:
        """A session is about to be opened. Options that cannot work are refused here, before anything begins.

        :raises UsageError: which option, what was expected.
        """

    async def open(self, session: Session) -> None:
        """Before tools, instructions and the system prompt are fixed. The extensions of a session open side by side."""

    async def reload(self, session: Session) -> None:
        """What people write may have changed on disk: look again (``reloadSkills`` of a SessionStart hook)."""

    async def before_prompt(self, session: Session) -> None:
        """A prompt was submitted; nothing was done with it yet. ``session.commands`` is looked up right after."""

    async def before_request(self, session: Session) -> None:
        """The next request is about to be put together. Context that is added now goes behind the last user message."""

    async def after_batch(self, session: Session) -> bool:
        """Every call of one message has its result. True: the run has what it wants and ends, unless a ``Stop`` hook objects.

        :raises Leave: the run ends otherwise.
        """
        return False

    async def before_stop(self, session: Session, answer: str) -> str | None:
        """The run is about to end with that answer. A text goes to the model and sends it on.

        :raises Leave: the run ends otherwise.
        """
        return None

    async def at_end(self, session: Session, leave: Leave) -> Leave | None:
        """The run is over. Another ending takes the place of the one that is given."""
        return None

    async def after_compaction(self, session: Session) -> list[Block]:
        """What is told again when a summary has replaced the history (context contract, 8.3)."""
        return []

    async def close(self, session: Session) -> None:
        """The session is over; ``SessionEnd`` was raised."""


class Expansion(Struct, kw_only=True):
    """What a typed command becomes.

    ``blocks``: what the model gets instead of what was typed. Where it is empty the model is not asked, and ``text`` is the
    result of the run. ``extra`` goes into the transcript entry.
    """

    blocks: list[Block] = field(default_factory=list)
    text: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


class SlashCommand(Protocol):
    """A command that a person types as ``/name arguments``; kept in ``session.commands[name]``.

    ``kind`` and ``source`` are ``expansion_type`` and ``command_source`` of ``UserPromptExpansion``; an empty ``kind`` is a
    command of the harness itself (``/compact``), which raises no such event. Two attributes may be missing: ``stacks`` (another
    such command may follow it at the start of a prompt, and both get the text behind) and ``hidden`` (it works and is not shown).
    """

    name: str
    description: str
    argument_hint: str
    kind: str
    source: str | None

    async def expand(self, session: Session, args: str) -> Expansion:
        """Run or render it.

        :param args: what was typed behind the name, as it was typed.
        :raises KernelError: it cannot be done; the text is the result of the run.
        """


async def each(session: Session, method: str, *args: Any) -> list[Any]:
    """Call one method of every extension, by order of plugins; what they returned. Faults are announced.

    :raises Leave: an extension ends the run.
    """
    found = []
    left = getattr(Extension, method)  # as it is: costs nothing
    for extension in (x for x in session.harness.extensions if getattr(type(x), method) is not left):
        try:
            found.append(await getattr(extension, method)(session, *args))
        except Leave:
            raise
        except Exception as error:
            _announce(session, extension, method, error)
    return found


async def open_all(session: Session) -> None:
    """Open the extensions side by side; a slow one does not hold up the others."""
    import anyio

    async def one(extension: Extension) -> None:
        try:
            await extension.open(session)
        except Exception as error:
            _announce(session, extension, "open", error)

    async with anyio.create_task_group() as group:
        for extension in session.harness.extensions:
            if type(extension).open is not Extension.open:
                group.start_soon(one, extension)


def _announce(session: Session, extension: Extension, method: str, error: Exception) -> None:
    plugin = session.harness.extensions.owner(extension.name)
    session.notice(f"plugin {plugin}: {method} of the extension {extension.name!r} failed: {type(error).__name__}: {error}",
                   guard=True)
