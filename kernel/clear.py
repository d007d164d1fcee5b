"""``/clear``: a new conversation in the same process (sessions contract, section 4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import events as e
from kernel.messages import History
from kernel.output import ConversationReset

if TYPE_CHECKING:
    from kernel.session import Session


async def clear(session: Session, title: str | None = None) -> str:
    """Leave the conversation behind and begin another one; the old one can be resumed.

    To be called where no batch runs. What plugins keep in ``plugin_state`` stays: what belongs to the conversation they drop
    themselves at ``SessionStart`` with the source ``clear``.

    :param title: the name that moves along.
    :returns: the new session id.
    :raises SessionError: the new conversation cannot be opened; the old one goes on.
    """
    fresh = session.harness.fresh_transcript(title)
    await session.fire(session.make(e.SessionEnd, reason="clear"))
    session.transcript.close()
    session.tell_problems()
    session.emit(ConversationReset(uuid=session.clock.new_id(), session_id=session.id, new_conversation_id=fresh.session_id))
    session.transcript, session.id, session.title = fresh, fresh.session_id, title
    session.history = History()
    session.measured = None
    session.read_files.clear()
    session.pending = []
    session.inbox.clear()
    session.deferred = False
    session.tell_problems()
    await session.begin("clear")
    return session.id
