"""Every lifecycle event with its answer: one table, from which hooks, docs and public names follow (hooks contract, 10 and 18).

An event is what a hook is handed. Field names are the documented wire names; ``encode(event)`` gives the documented flat
JSON, ``hook_event_name`` included. Behind each event stands the model of its answer. To add an event, write the two classes
into the file of its moment; the hook (in snake case), its documentation and the public names come from there.

Class attributes say what the host needs to know about an event:

``matcher``: the field whose value a matcher is tested against; ``None`` where the event has no matcher.
``gate``: an implementation that raises or times out counts as a refusal (decision D5).
``can_block``: ``decision: "block"`` has an effect.
``ours``: the public contract does not know the event. An answer names fields that it does not know in ``ours``.
``carries_mode``, ``carries_effort``: the host adds ``permission_mode`` and ``effort`` (section 10).
"""

from __future__ import annotations

from msgspec.json import Encoder

from kernel.answers import Answer
from kernel.events import agents, conversation, prompt, tool_call, turn
from kernel.events.agents import *
from kernel.events.conversation import *
from kernel.events.event import Event as Event
from kernel.events.prompt import *
from kernel.events.tool_call import *
from kernel.events.turn import *

_TABLE = [cls for module in (conversation, prompt, tool_call, agents, turn) for cls in vars(module).values()
          if isinstance(cls, type) and cls.__module__ == module.__name__ and not cls.__name__.startswith("_")]

EVENTS: dict[str, type[Event]] = {cls.__name__: cls for cls in _TABLE if issubclass(cls, Event)}
"""Every lifecycle event by wire name."""

ANSWERS: dict[str, type[Answer]] = {cls.event: cls for cls in _TABLE if issubclass(cls, Answer)}
"""The model of the answer to every event, by the event's wire name."""

encode = Encoder().encode
"""The documented flat JSON of an event, as UTF-8 bytes on one line."""


def snake(name: str) -> str:
    """``PreToolUse`` -> ``pre_tool_use``: the hook's name from the event's."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
