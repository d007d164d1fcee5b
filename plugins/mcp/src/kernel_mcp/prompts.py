"""Prompts of servers as typed commands: ``/mcp__server__prompt first second`` (MCP contract, section 4)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from kernel import Block, Expansion, ToolError, UsageError
from kernel_mcp.schemas import clean_text, cut

if TYPE_CHECKING:
    from kernel import Session
    from kernel_mcp.link import Link


class PromptCommand:
    """One prompt of one server."""

    kind = "mcp_prompt"

    def __init__(self, link: Link, prompt: Any, name: str) -> None:
        self.link = link
        self.prompt = prompt
        self.name = name
        self.description = cut(prompt.description or prompt.title or "")
        self.arguments = list(prompt.arguments or ())
        self.argument_hint = " ".join(f"<{a.name}>" if a.required else f"[{a.name}]" for a in self.arguments)
        self.source: str | None = link.server.name

    async def expand(self, session: Session, args: str) -> Expansion:
        """Ask the server for the prompt. Words go to arguments by position; the last argument takes the rest.

        :raises UsageError: a required argument is missing, or the server gives no prompt.
        """
        from kernel_mcp.calls import request

        values = positional(args, [a.name for a in self.arguments])
        missing = [a.name for a in self.arguments if a.required and a.name not in values]
        if missing:
            raise UsageError(f"missing: {', '.join(missing)}", context=f"/{self.name}", hint=f"/{self.name} {self.argument_hint}")

        async def send(client: Any, alive: Any) -> Any:
            return await client.get_prompt(self.prompt.name, values)

        try:
            result = await request(self.link, send, read_only=True)
        except ToolError as error:
            raise UsageError(str(error), context=f"/{self.name}") from error
        name = f"prompt-{session.clock.new_id()}"
        blocks = [b for n, message in enumerate(result.messages) for b in _blocks(session, f"{name}-{n}", message)]
        if not blocks:
            raise UsageError("the server gave an empty prompt", context=f"/{self.name}")
        return Expansion(blocks=blocks)


def positional(text: str, names: list[str]) -> dict[str, str]:
    """Words by position; quotes hold words together, and the last name takes what is left."""
    try:
        words = shlex.split(text)
    except ValueError:  # an apostrophe is no open quote
        words = text.split()
    if not names:
        return {}
    if len(words) > len(names):
        words = [*words[:len(names) - 1], " ".join(words[len(names) - 1:])]
    return dict(zip(names, words, strict=False))


def _blocks(session: Session, name: str, message: Any) -> list[Block]:
    """A message of a prompt as blocks of the person's; what the server lets the model say is marked as such."""
    from kernel_mcp.results import image_block, other_text

    item = message.content
    if item.type == "text":
        text = clean_text(item.text)
        if not text.strip():
            return []
        return [{"type": "text", "text": text if message.role == "user" else f"(the assistant said:) {text}"}]
    block = image_block(session, name, item)
    return [block if block is not None else {"type": "text", "text": other_text(session, name, item)}]
