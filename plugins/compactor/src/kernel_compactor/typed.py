"""``/compact`` and ``/pin`` (context contract, 8.5)."""

from __future__ import annotations

from kernel import Expansion, Extension, KernelError, Session
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
        return Expansion(text=await compactor.compact(session, "manual", args.strip()))


class Pin:
    name = "pin"
    description = "Keep a text word for word, whatever is summed up later"
    argument_hint = "TEXT"
    kind = ""
    source: str | None = None

    async def expand(self, session: Session, args: str) -> Expansion:
        if not args.strip():
            raise KernelError("what is to be pinned stands behind it: /pin The port is 8443.")
        state(session).pins.append(args.strip())
        session.add_context(f"The person pinned this; keep it in mind: {args.strip()}")
        return Expansion(text="Pinned; it goes to the model with the next prompt.")


class TypedCommands(Extension):
    name = "compactor"

    async def open(self, session: Session) -> None:
        if session.parent is None:
            session.commands["compact"] = Compact()
            session.commands["pin"] = Pin()
