"""What every answer to an event is, in Python and on the wire (hooks contract, section 11); each stands beside its event.

In Python all fields of an answer are flat and in snake case: ``PreToolUseResult(permission_decision="deny",
permission_decision_reason="not on main")``. On the wire the universal fields stand at the root and the event's own
fields under ``hookSpecificOutput``; ``to_wire`` and ``from_wire`` translate and check.
"""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct, field


class Decision(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The answer to a permission question (hooks contract, 13.5).

    ``updated_input`` and ``updated_permissions`` count with ``allow``, ``message`` and ``interrupt`` with ``deny``.
    """

    behavior: Literal["allow", "deny"]
    updated_input: dict[str, Any] | None = None
    updated_permissions: list[dict[str, Any]] | None = None
    message: str | None = None
    interrupt: bool = False


class Answer(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """The universal fields (section 11.2). ``source`` and ``rank`` are the host's and never on the wire.

    ``source`` labels the handler in messages and traces; ``rank`` is the order of completion: a plugin that answers several
    times sets it among its own, the dispatcher then among all (a later rewrite wins, section 12.2).
    """

    continue_: bool = field(default=True, name="continue")
    stop_reason: str | None = None
    suppress_output: bool = False
    system_message: str | None = None
    terminal_sequence: str | None = None
    decision: Literal["approve", "block"] | None = None
    reason: str | None = None
    source: str = ""
    rank: int = 0

    event: ClassVar[str] = ""
    ours: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_wire(cls, value: Any) -> Answer:
        """The answer from a handler's JSON object.

        :raises ValueError: the object does not fit the event's output schema; the text names the path.
        """
        try:
            wire = msgspec.convert(value, _wire_model(cls))
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        specific = getattr(wire, "hook_specific_output", None)
        values = {name: getattr(wire, name) for name in _UNIVERSAL}
        if specific is not None:
            values |= {name: getattr(specific, name) for name in specific_fields(cls)}
        return cls(**values)

    def to_wire(self) -> dict[str, Any]:
        """The documented JSON object, without defaults."""
        flat = msgspec.to_builtins(self)
        own = {f.encode_name for f in msgspec.structs.fields(type(self)) if f.name in specific_fields(type(self))}
        root = {k: v for k, v in flat.items() if k not in own and k not in ("source", "rank")}
        specific = {_UNRENAMED.get(k, k): v for k, v in flat.items() if k in own}
        if specific:
            root["hookSpecificOutput"] = {"hookEventName": self.event, **specific}
        return root


_HOST = ("source", "rank")
_UNIVERSAL = tuple(f.name for f in msgspec.structs.fields(Answer) if f.name not in _HOST)
# Answer.decision is the root's; a permission request's own ``decision`` object needs another name in Python.
_UNRENAMED = {"permission": "decision"}


@cache
def specific_fields(cls: type[Answer]) -> frozenset[str]:
    """The Python names of the fields that stand under ``hookSpecificOutput``."""
    return frozenset(f.name for f in msgspec.structs.fields(cls)) - set(_UNIVERSAL) - set(_HOST)


@cache
def _wire_model(cls: type[Answer]) -> type[Struct]:
    """The nested model that the wire object is checked against. Unknown keys are ignored at every level."""
    optional: Any = msgspec.UNSET
    root: list[Any] = []
    for f in msgspec.structs.fields(Answer):
        if f.name not in _HOST:
            root.append((f.name, f.type, field(default=f.default, name=f.encode_name)))
    own = [f for f in msgspec.structs.fields(cls) if f.name in specific_fields(cls)]
    event_name: Any = (Literal[cls.event],)[0]
    if own:
        inner = msgspec.defstruct(f"{cls.event}Output", [
            ("hook_event_name", event_name, field(name="hookEventName")),
            *((f.name, f.type, field(default=f.default, name=_UNRENAMED.get(f.encode_name, f.encode_name))) for f in own),
        ], kw_only=True)
        root.append(("hook_specific_output", inner | None, field(default=None, name="hookSpecificOutput")))
    else:
        # The event has no specific output: any value is a schema failure (hook-events.json, output).
        root.append(("hook_specific_output", msgspec.UnsetType, field(default=optional, name="hookSpecificOutput")))
    return msgspec.defstruct(f"{cls.event}Wire", root, kw_only=True)


class ContextAnswer(Answer):
    """An answer that may add text to the model's context, read with the next request only (section 11.3)."""

    additional_context: str | None = None
