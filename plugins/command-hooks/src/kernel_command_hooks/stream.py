"""What the message stream says of a running handler (hooks contract, section 15; headless contract, 5.8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_command_hooks.facts import ALWAYS_STREAMED, NEVER_STARTED

if TYPE_CHECKING:
    from kernel import Event, Session
    from kernel_command_hooks.answer import Ran

SHOWN_CHARS = 30_000
"""Characters of each stream on a message; a line of the protocol must not grow with what a handler prints."""


class Report:
    """The messages of one run of one handler.

    :param background: nobody waits for the handler.
    """

    def __init__(self, session: Session, event: Event, *, background: bool) -> None:
        name = event.event_name
        self.listened = name in ALWAYS_STREAMED or session.options.include_hook_events
        self._starts = self.listened and name not in NEVER_STARTED
        self._ends = self.listened and (background or name not in NEVER_STARTED)
        self._session = session
        self._id = {"hook_id": session.clock.new_id(), "hook_name": event.hook_name, "hook_event": name} if self.listened else {}

    def silence(self) -> None:
        """The handler does not run at all."""
        self.listened = self._starts = self._ends = False

    def started(self) -> None:
        if self._starts:
            self._session.say("hook_started", **self._id)

    def progress(self, stdout: bytes, stderr: bytes) -> None:
        self._session.say("hook_progress", **self._id, **_output(stdout.decode("utf-8", "replace"),
                                                                  stderr.decode("utf-8", "replace")))

    def ended(self, ran: Ran | None, failed: bool) -> None:
        """``ran`` is ``None`` where the handler was cancelled."""
        if not self._ends:
            return
        cancelled = ran is None or ran.timed_out
        outcome = "cancelled" if cancelled else "error" if failed or (ran is not None and ran.code == 2) else "success"
        code = {} if ran is None or ran.code is None or ran.http else {"exit_code": ran.code}
        self._session.say("hook_response", **self._id, **_output(ran.stdout if ran else "", ran.stderr if ran else ""), **code,
                          outcome=outcome)


def _output(stdout: str, stderr: str) -> dict[str, str]:
    stdout, stderr = stdout[:SHOWN_CHARS], stderr[:SHOWN_CHARS]
    return {"output": stdout + stderr, "stdout": stdout, "stderr": stderr}
