"""When skills are looked for, listed, told again, and when what they granted ends."""

from __future__ import annotations

from kernel import Block, Extension, Session, reminder, text_block
from kernel_skills import state

AGAIN = ("These skills were loaded earlier in this session and still hold. Their arguments belong to requests that were made "
         "then; they are no new request.")


class SkillsExtension(Extension):
    name = "skills"

    async def open(self, session: Session) -> None:
        skills = state.of(session)
        skills.open()
        skills.first_listing()

    async def reload(self, session: Session) -> None:
        await state.of(session).refresh(plugins=True)

    async def before_prompt(self, session: Session) -> None:
        skills = state.of(session)
        skills.end_turn()
        await skills.refresh()

    async def before_request(self, session: Session) -> None:
        skills = state.of(session)
        skills.meet()
        skills.switch()

    async def after_compaction(self, session: Session) -> list[Block]:
        """Skills that were loaded, latest first, within their budgets (context contract, 8.3)."""
        told = state.of(session).again()
        if not told:
            return []
        return [reminder(AGAIN), *(text_block(text) for _, text in told)]
