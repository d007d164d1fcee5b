"""Callbacks of a program that embeds the session: one more source of handlers (hooks contract, sections 6.7 and 8.3).

Whoever speaks with the program (the control protocol's plugin) puts them into ``session.root.plugin_state["hooks.callbacks"]``:
event name -> list of ``{"matcher"?: str, "timeout"?: seconds, "callback": Callback, "label"?: str}``. To replace them (a repeated
``initialize``) put a new dictionary there; the old one must not be changed.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from kernel_command_hooks.answer import Ran

if TYPE_CHECKING:
    from kernel_command_hooks.run_command import Call

Callback = Callable[[dict[str, Any], str | None], Awaitable[Any]]
"""``await callback(input, tool_use_id)`` returns the hook's output object. It is cancelled at the timeout; whatever it raises is
an error response, which is handled like a timeout."""


async def run(call: Call) -> Ran:
    """Ask the program. An output that says ``async`` can neither refuse nor add anything."""
    import anyio

    spec: Any = call.handler.spec
    input = msgspec.json.decode(call.payload)
    try:
        with anyio.fail_after(call.timeout):
            output = await spec.callback(input, input.get("tool_use_id"))
    except TimeoutError:
        return Ran(code=None, timed_out=True, timeout=call.timeout)
    except Exception as error:  # the program's fault
        return Ran(code=None, error=f"failed: {type(error).__name__}: {error}")
    if output is None or (isinstance(output, dict) and output.get("async") is True):
        return Ran(http=True)
    if not isinstance(output, dict):
        return Ran(code=None, error=f"answered with {type(output).__name__}, expected an object")
    return Ran(stdout=json.dumps(output, default=str), http=True)
