"""Files that a prompt mentions as ``@path``: each goes to the model beside the prompt, as the Read tool shows it.

No ``PreToolUse`` hook sees them, as the contract has it (hooks contract, section 16); the rules for Read do (permissions
contract, 6.2). A prompt is not always typed by a person, so a file that Read would have to ask for is not attached.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import TYPE_CHECKING

from kernel import Extension, PermissionCall, ToolContext, ToolError, env_switch, inert, reminder, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel import Session, Tool

KEY = "tools-files.mentions"
MOST = 20
"""Files of one prompt."""
LOOKED_AT = 1_000
"""Words with ``@`` in front that are looked up at most."""
SWITCH = "CLAUDE_CODE_DISABLE_ATTACHMENTS"
_MENTION = re.compile(r"(?<![\w@`/.])@(?:\"([^\"\n]+)\"|([^\s`\"'<>|@,;()\[\]{}]+))")


def note(session: Session, prompt: str) -> None:
    """Keep a prompt until its request is made. A typed command attaches what its text mentions by itself."""
    first = prompt.split(maxsplit=1)[0] if prompt.startswith("/") else ""
    if first[1:] not in session.commands and not env_switch(SWITCH):
        session.plugin_state[KEY] = prompt


class Mentions(Extension):
    name = "file-mentions"

    async def before_prompt(self, session: Session) -> None:
        session.plugin_state.pop(KEY, None)  # the prompt before was refused

    async def before_request(self, session: Session) -> None:
        prompt = session.plugin_state.pop(KEY, None)
        tool = session.toolbox.by_name.get("Read")
        if prompt is None or tool is None:
            return
        for given, path in islice(_files(prompt, session.state.cwd), MOST):
            await _attach(session, tool, given, path)


def _files(prompt: str, cwd: str) -> Iterator[tuple[str, str]]:
    """What is mentioned and is a file: as it was written, and its path; each once."""
    seen = set()
    for match in islice(_MENTION.finditer(prompt), LOOKED_AT):
        given = match[1] or match[2].rstrip(".:!?")
        try:
            path = os.path.normpath(os.path.join(cwd, os.path.expanduser(given)))
            if path in seen or not os.path.isfile(path):
                continue
        except ValueError:  # a NUL byte, a lone surrogate
            continue
        seen.add(path)
        yield given, path


async def _attach(session: Session, tool: Tool, given: str, path: str) -> None:
    context = ToolContext(session, f"mention-{session.clock.new_id()}", tool.name)
    try:
        input = tool.prepare_input({"file_path": path}, context)
        verdict = session.policy.decide(PermissionCall(
            tool=tool, input=input, cwd=session.state.cwd, mode=session.state.permission_mode))
        if verdict.behavior != "allow":
            why = "a rule denies it" if verdict.behavior == "deny" else "no rule allows it without a question"
            session.notice(f"@{given} is not attached: {verdict.message or why}")
            return
        tool.validate_input(input, context)
        result = await session.run_tool(tool, input, context)
        if result.failed:
            raise ToolError("failed", result.content if isinstance(result.content, str) else text_of(result.content))
    except ToolError as error:
        session.add_context(f"The prompt mentions the file {path}, which is not attached: {inert(str(error))}")
        return
    head = f"The prompt mentions the file {path}:"
    if isinstance(result.content, str):
        session.add_context(f"{head}\n{inert(result.content)}")
    else:
        session.pending += [reminder(head), *result.content]  # an image, a document
