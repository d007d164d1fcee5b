"""How a turn fails. Everything is a ``kernel.KernelError``.

    KernelError
    ├── UsageError           an argument that cannot be used, a plugin that is missing, a closed agent
    ├── SessionError         a conversation that cannot be resumed
    └── TurnFailed           a turn that ended without its answer; ``reason`` says why, ``reply`` holds what there is
        └── Interrupted      ... because it was interrupted, or the agent was closed
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import KernelError

if TYPE_CHECKING:
    from kernel_embed.turn import Reply


class TurnFailed(KernelError):
    """A turn ended without its answer.

    :ivar reason: ``terminal_reason`` of the result (``max_turns``, ``api_error``, ``budget_exhausted`` ...), or
        ``structured_output``: there is no value of the type that was asked for.
    :ivar reply: what there is of the turn: messages, usage, cost. ``None`` where it ended before it had a result.
    """

    reference = "turn-failed"

    def __init__(self, message: str, *, reason: str, reply: Reply[Any] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.reply = reply


class Interrupted(TurnFailed):
    """The turn was interrupted by the program, or dropped before it began."""

    reference = "turn-interrupted"
