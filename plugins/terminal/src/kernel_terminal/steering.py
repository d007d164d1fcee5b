"""Words that a person typed while a turn runs reach the model with its next request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import Extension, UserPromptSubmit, reminder

if TYPE_CHECKING:
    from kernel import Session
    from kernel_terminal.talk import Talk

STATE = "terminal"
"""``session.plugin_state[STATE]``: the ``Talk`` of the conversation."""


class Steering(Extension):
    name = "terminal"

    async def before_request(self, session: Session) -> None:
        """The words pass the same hooks as a prompt; what a hook refuses is not sent."""
        talk: Talk | None = session.plugin_state.get(STATE)
        for text in talk.steer() if talk is not None else ():
            merged = await session.fire(session.make(UserPromptSubmit, prompt=text, session_title=session.title))
            if merged.blocked or merged.stopped:
                reason = session.cap(merged.stop_reason or merged.block_reason)
                session.notice(f"UserPromptSubmit hook blocked the message: {reason}")
                continue
            session.pending.append(reminder("The user sent this message while you were working. Take it into account and go on "
                                            f"with the task:\n{text}"))
            for context in merged.contexts:
                session.add_context(f"UserPromptSubmit hook additional context: {session.cap(context.text)}")
