"""What a request of the program changes, put into force at the points where a session can take it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import Extension

if TYPE_CHECKING:
    from kernel import Leave, Session
    from kernel_control.talk import Talk

STATE = "control"
"""``session.root.plugin_state[STATE]``: the ``Talk`` of the conversation."""


class ControlExtension(Extension):
    name = "control"

    async def before_prompt(self, session: Session) -> None:
        _mirror(session)

    async def before_request(self, session: Session) -> None:
        talk: Talk | None = session.plugin_state.get(STATE)
        if talk is not None:
            talk.switch_model()
            _mirror(session)

    async def at_end(self, session: Session, leave: Leave) -> Leave | None:
        _mirror(session)
        return None


def _mirror(session: Session) -> None:
    """``/clear`` begins another transcript, which is mirrored too."""
    talk: Talk | None = session.plugin_state.get(STATE)
    if talk is not None and talk.mirror is not None:
        talk.mirror.follow(session.transcript)
