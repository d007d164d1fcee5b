"""``/compact`` and ``/pin`` (context contract, 8.5)."""

from __future__ import annotations

import anyio

from kernel import Expansion, Extension, Harness, KernelError, Leave, Session
from kernel_compactor import counting, pins
from kernel_compactor.state import state


class Compact:
    name = "compact"
    description = "Sum the conversation up to make room; what is typed behind it says what matters"
    argument_hint = "[instructions]"
    kind = ""
    source: str | None = None

    async def expand(self, session: Session, args: str) -> Expansion:
        compactor = session.harness.compactor
        if compactor is None:
            raise KernelError("no compactor is installed")
        with anyio.CancelScope() as session.scope:
            if session.interrupted:
                session.scope.cancel()
            text = await compactor.compact(session, "manual", args.strip())
        cancelled, session.scope = session.scope.cancelled_caught, None
        if cancelled:
            raise Leave("aborted_streaming", "error_during_execution", errors=("Interrupted by the user",))
        return Expansion(text=text)


class Pin:
    name = "pin"
    description = "Keep a text word for word, whatever is summed up later"
    argument_hint = "TEXT"
    kind = ""
    source: str | None = None

    async def expand(self, session: Session, args: str) -> Expansion:
        if not args.strip():
            raise KernelError("what is to be pinned stands behind it: /pin The port is 8443.")
        if pins.END_TAG in args:
            raise KernelError(f"what is pinned cannot hold {pins.END_TAG}; leave the tags out")
        state(session).pins.append(args.strip())
        session.pending.append(pins.typed(args.strip()))
        return Expansion(text="Pinned; it goes to the model with the next prompt.")


class TypedCommands(Extension):
    name = "compactor"

    def check(self, harness: Harness) -> None:
        for problem in counting.problems(harness.settings, harness.options.extra.get("autocompact")):
            harness.announce(problem)
        chosen = harness.settings.own("kernel.compactor")
        if chosen is not None and harness.compactor is None:
            harness.announce(f"settings, kernel.compactor: there is no compactor {chosen!r}, so nothing makes room")

    async def before_prompt(self, session: Session) -> None:
        state(session).prompted = True

    async def open(self, session: Session) -> None:
        if session.parent is None:
            session.commands["compact"] = Compact()
            session.commands["pin"] = Pin()
