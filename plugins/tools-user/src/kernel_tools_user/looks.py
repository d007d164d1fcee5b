"""Which look at a call's input is the first one: the model's own input, before a hook or a person could replace it.

The batch hands an input to ``prepare_input`` once as the model sent it, and again each time that a hook or an answer rewrote
it. What the model must not say itself is taken out at the first look, and only there.
"""

from __future__ import annotations

from typing import Any

from kernel import ToolContext


def looks(context: ToolContext) -> dict[str, Any]:
    """Call id -> what was put into the input at the first look. Ids of calls are unique within a session."""
    found: dict[str, Any] = context.session.plugin_state.setdefault("tools-user.looks", {})
    return found
