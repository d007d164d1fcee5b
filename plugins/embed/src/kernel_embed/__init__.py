"""Agents inside a Python program::

    from kernel_embed import Agent

    with Agent(model="sonnet").sync() as agent:
        print(agent.ask("What does this project do?").text)

``async with Agent(...) as agent`` is the same for programs with an event loop. The messages that an agent streams, events and
their answers, ``Tool``, ``ToolContext`` and ``ToolResult`` are the kernel's own: ``from kernel import AssistantMessage``.
"""

from kernel_embed.agent import Agent
from kernel_embed.answers import AddContext, Allow, Deny, add_context, allow, deny
from kernel_embed.asking import Question
from kernel_embed.blocking import SyncAgent, SyncTurn
from kernel_embed.errors import Interrupted, TurnFailed
from kernel_embed.hooks import Hook, hook
from kernel_embed.notices import Notice
from kernel_embed.tools import FunctionTool, tool
from kernel_embed.turn import Message, Reply, Turn

__all__ = [
    "AddContext", "Agent", "Allow", "Deny", "FunctionTool", "Hook", "Interrupted", "Message", "Notice", "Question", "Reply",
    "SyncAgent", "SyncTurn", "Turn", "TurnFailed", "add_context", "allow", "deny", "hook", "tool",
]
