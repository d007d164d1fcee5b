"""The style in the system prompt and in the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kernel import Extension
from kernel_output_styles import styles
from kernel_output_styles.builtin import CODING

if TYPE_CHECKING:
    from kernel import Session


class CodingRules:
    """How to work on code; a style of its own kind leaves them out."""

    name = "coding"
    layer: Literal["rules"] = "rules"

    async def text(self, session: Session) -> str:
        return CODING if session.parent is None and styles.at_start(session, self.name).coding else ""


class StyleText:
    name = "output-style"
    layer: Literal["style"] = "style"

    async def text(self, session: Session) -> str:
        return styles.at_start(session, self.name).text if session.parent is None else ""


class StyleReminder(Extension):
    """From the second prompt on, a line behind it: the text itself is far up by then."""

    name = "output-styles"

    async def before_prompt(self, session: Session) -> None:
        active = styles.of(session)
        active.prompts += 1
        active.due = active.prompts > 1 and bool(active.style.text) and session.options.system_prompt is None

    async def before_request(self, session: Session) -> None:
        active = styles.of(session)
        if active.due and session.parent is None:
            active.due = False
            session.add_context(styles.REMIND.format(name=active.style.name))
