"""Where a run ends, and who is asked where nobody is there."""

from __future__ import annotations

from kernel import Extension, Harness, Leave, Session, UsageError
from kernel_durable import asking
from kernel_durable.config import config, engine
from kernel_durable.steps import keeper_of

WAITING = "waiting_for_approval"
"""The ``terminal_reason`` of a run that was left for an answer."""


class DurableExtension(Extension):
    name = "durable"

    def check(self, harness: Harness) -> None:
        config(harness.settings)
        engine(harness.settings)
        if not harness.options.persist:
            raise UsageError("--durable and --no-session-persistence exclude each other")

    async def open(self, session: Session) -> None:
        if session.parent is None:
            asking.offer(session, keeper_of(session))

    async def at_end(self, session: Session, leave: Leave) -> Leave | None:
        keeper = keeper_of(session)
        if keeper.run is None and not keeper.failure:
            return None
        run_id = keeper.run.id if keeper.run else ""
        if keeper.failure is not None:
            failure = keeper.failure
            await keeper.leave()
            keeper.failure = None
            return Leave("durable_failed", "error_during_execution", stop_reason=leave.stop_reason, errors=(str(failure),))
        if keeper.waiting:
            waiting = keeper.waiting
            await keeper.leave()
            keeper.waiting = ""
            session.denials = [d for d in session.denials if d["tool_use_id"] in keeper.nobody]
            return Leave(WAITING, "error_during_execution", stop_reason=leave.stop_reason, errors=(
                f"The run waits for an approval: kernel durable approvals answer {waiting} allow|deny, then "
                f"kernel durable resume {run_id}",))
        for denial in session.denials:
            if denial["tool_use_id"] in keeper.nobody:
                denial["reason"] = "no_one"
        await keeper.end({"reason": leave.terminal_reason, "error": leave.is_error, "text": leave.text})
        return None

    async def close(self, session: Session) -> None:
        if session.parent is None:
            await keeper_of(session).leave()
            await keeper_of(session).engine.close()
