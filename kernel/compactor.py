"""The compactor protocol: who makes room when the window fills (context contract, sections 7 and 8).

The kernel asks before every request and once after a refusal for length. Without a compactor nothing is ever cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from kernel.errors import ModelError
    from kernel.session import Session


class Compactor(Protocol):
    """One strategy. Registered by ``register_compactors`` under ``name``; the setting ``kernel.compactor`` chooses."""

    name: str

    async def before_request(self, session: Session) -> None:
        """Make the next request fit, where it would not: clear old results, or compact.

        :raises Leave: the run must end, since nothing can be done (breakers).
        """

    async def too_long(self, session: Session, error: ModelError) -> bool:
        """The API refused the request for its length. True: there is room now, ask again; false: the error stands."""

    async def compact(self, session: Session, trigger: Literal["manual", "auto"], instructions: str = "") -> str:
        """Compact now.

        :returns: what to tell the person.
        :raises KernelError: it was not done, and why. The history is as it was.
        """
