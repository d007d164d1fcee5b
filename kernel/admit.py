"""How a prompt enters a conversation: a typed command is expanded, hooks may refuse, then history and transcript hold it.

(hooks contract, sections 18.5 and 18.6; headless contract, section 12)
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kernel import events as e
from kernel.errors import KernelError
from kernel.extension import Expansion, each
from kernel.leave import Leave
from kernel.merge import Merged, Text
from kernel.messages import INTERRUPTED, Block, blocks_of, hook_context, text_block, text_of
from kernel.record import close_calls
from kernel.transcript import Entry

if TYPE_CHECKING:
    from kernel.extension import SlashCommand
    from kernel.session import Session


async def admit(session: Session, prompt: str | list[Block], uuid: str) -> None:
    """Take a prompt in, as the transcript entry with that uuid.

    :raises Leave: it was blank, a hook refused it, or a command answered it without the model.
    """
    blocks = [text_block(prompt)] if isinstance(prompt, str) else list(prompt)
    if not blocks_of(blocks):
        raise Leave("completed", text="The prompt was blank, so nothing was asked.")
    close_calls(session, INTERRUPTED)  # a call that was put off and never taken up again
    typed = text_of(blocks)
    expanded = await _expanded(session, typed)
    merged = await session.fire(session.make(e.UserPromptSubmit, prompt=typed, session_title=session.title))
    session.set_title(merged.last.get("session_title"))
    _refused(session, merged, "UserPromptSubmit", "The prompt was blocked by a hook.")
    contexts = [(t.text, "UserPromptSubmit") for t in merged.contexts]
    extra: dict[str, object] = {"promptId": session.prompt_id}
    if expanded is not None:
        expansion, more = expanded
        contexts += [(t.text, "UserPromptExpansion") for t in more]
        blocks = [*expansion.blocks, *(b for b in blocks if b.get("type") != "text")]
        extra |= expansion.extra
    before = session.take_pending()
    after = [hook_context(hook, session.cap(text)) for text, hook in contexts]
    session.history.append("user", [*before, *blocks, *after])
    content = prompt if expanded is None else blocks
    entry = Entry(type="user", uuid=uuid, message={"role": "user", "content": content}, extra=extra)
    session.record(*([session.context_entry(before)] if before else []), entry,
                   *([session.context_entry(after)] if after else []))
    session.transcript.set("last-prompt", typed[:200])


async def _expanded(session: Session, typed: str) -> tuple[Expansion, list[Text]] | None:
    """What a typed command becomes; ``None`` where none was typed.

    :raises Leave: the command did its work itself, cannot be done, or a hook refused it.
    """
    await each(session, "before_prompt")
    if not typed.startswith("/"):
        return None
    commands, args = _commands(session, typed)
    whole: list[Expansion] = []
    contexts: list[Text] = []
    for command in commands:
        if command.kind:
            merged = await session.fire(session.make(
                e.UserPromptExpansion, expansion_type=command.kind, command_name=command.name, command_args=args,
                command_source=command.source, prompt=typed))
            _refused(session, merged, "UserPromptExpansion", "The command was blocked by a hook.")
            contexts += merged.contexts
        try:
            expansion = await command.expand(session, args)
        except KernelError as error:
            raise Leave("completed", text=f"/{command.name}: {error}", is_error=True) from None
        if not expansion.blocks:
            raise Leave("completed", text=expansion.text)
        whole.append(expansion)
    if not whole:
        return None
    extra = {key: value for expansion in reversed(whole) for key, value in expansion.extra.items()}
    return Expansion(blocks=[b for expansion in whole for b in expansion.blocks], extra=extra), contexts


MOST_STACKED = 6


def _commands(session: Session, typed: str) -> tuple[list[SlashCommand], str]:
    """The commands at the start of a prompt, and the text behind them as it was typed. None: it is an ordinary prompt.

    Commands that stack may stand in a row; a word that is no such command belongs to the text.
    """
    found: list[SlashCommand] = []
    text = typed
    while text.startswith("/") and len(found) < MOST_STACKED:
        match = _WORD.match(text)
        command = session.commands.get(match[1]) if match else None
        if match is None or command is None or (found and not getattr(command, "stacks", False)):
            break
        found.append(command)
        text = text[match.end():]
        if not getattr(command, "stacks", False) or not text.lstrip().startswith("/"):
            break
        text = text.lstrip()
    return found, text


_WORD = re.compile(r"/(\S+)(?:[ \n]|\Z)")


def _refused(session: Session, merged: Merged, hook: str, otherwise: str) -> None:
    if merged.blocked or merged.stopped:
        reason = merged.stop_reason if merged.stopped else merged.block_reason
        text = session.cap(reason) or otherwise
        session.say("informational", content=f"{hook} hook blocked the prompt: {text}", level="warning",
                    prevent_continuation=True)
        raise Leave("hook_stopped", text=text)
