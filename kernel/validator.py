"""The validator protocol: what a final answer means, checked after its form (structured-output contract, section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from kernel.session import Session

RetryScope = Literal["final_generation", "tool_loop", "planner"]
"""Who is asked again: the model for another answer, or the tool loop for what is missing, or for another plan."""


class OutputProblem(Struct, kw_only=True, omit_defaults=True):
    """One thing that is wrong with an answer, in the words that the model gets (section 5).

    ``path`` is a JSON pointer into the value; ``received`` is what stood there. A ``warning`` sends nothing back.
    """

    validator: str
    path: str
    rule: str
    expected: str
    received: str = ""
    retry_scope: RetryScope = "final_generation"
    severity: Literal["error", "warning"] = "error"


class OutputValidator(Protocol):
    """Registered by ``register_validators`` under ``name``.

    ``uses_model``: it asks a model, so it runs last and once per attempt; otherwise it is deterministic.
    """

    name: str
    uses_model: bool

    async def validate(self, value: Any, text: str, session: Session) -> list[OutputProblem]:
        """What is wrong with an answer that fits its schema.

        :param value: the structured value; ``None`` for a plain final answer. It may not be changed.
        :param text: the answer's text.

        A validator that raises, or takes longer than 10 s, is skipped with a warning.
        """
