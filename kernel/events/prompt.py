"""The prompt on its way in, and the answer on its way out."""

from __future__ import annotations

from typing import Literal

from kernel.answers import Answer, ContextAnswer
from kernel.events.event import Event


class UserPromptSubmit(Event, tag=True):
    """A prompt was submitted; the model has not seen it yet.

    ``decision="block"`` erases the prompt; the reason goes to the person, never to the model.
    """

    prompt: str
    session_title: str | None = None
    carries_mode = True
    gate = True
    can_block = True


class UserPromptSubmitResult(ContextAnswer):
    event = "UserPromptSubmit"
    session_title: str | None = None
    suppress_original_prompt: bool | None = None


class UserPromptExpansion(Event, tag=True):
    """A typed command is about to become a prompt."""

    expansion_type: Literal["slash_command", "mcp_prompt"]
    command_name: str
    command_args: str
    prompt: str
    command_source: str | None = None
    matcher = "command_name"
    carries_mode = True
    gate = True
    can_block = True


class UserPromptExpansionResult(ContextAnswer):
    event = "UserPromptExpansion"


class MessageDisplay(Event, tag=True):
    """Assistant text is about to be shown; ``display_content`` replaces it on the screen only."""

    turn_id: str
    message_id: str
    index: int
    final: bool
    delta: str


class MessageDisplayResult(Answer):
    event = "MessageDisplay"
    display_content: str | None = None
