"""What a person types: ``/name arguments`` (skills contract, section 7)."""

from __future__ import annotations

from kernel import Expansion, KernelError, Session, ToolError, text_block, text_of
from kernel_skills import state
from kernel_skills.catalogue import Skill
from kernel_skills.values import one_line


class Typed:
    """One skill or command as a typed command. ``bare``: a plugin's, under the name without the plugin's."""

    kind = "slash_command"

    def __init__(self, skill: Skill, bare: bool = False) -> None:
        self.skill = skill
        self.name = skill.name
        self.description = one_line(skill.description)
        self.argument_hint = skill.argument_hint
        self.source: str | None = skill.component.scope
        self.hidden = bare or not skill.by_user
        """Works, but is not shown among the commands."""
        self.stacks = skill.by_user and not skill.fork
        """Whether another command may stand behind it at the start of one message."""

    async def expand(self, session: Session, args: str) -> Expansion:
        from kernel_skills import invoke

        skill, skills = self.skill, state.of(session)
        if not skill.by_user:
            raise KernelError("only the model can use this skill" if skill.by_model else "this skill is switched off",
                              hint=f"ask for it in words: \"use the skill {skill.name}\"" if skill.by_model else "")
        if skill.fork:
            return await self._fork(session, args)
        made = await invoke.inline(skill, args, session, skills)
        return Expansion(blocks=[text_block(_typed(skill.name, args)), *made.blocks()], extra={"commandName": skill.name})

    async def _fork(self, session: Session, args: str) -> Expansion:
        from kernel_skills import invoke

        try:
            result = await invoke.fork(self.skill, args, session, state.of(session))
        except ToolError as error:
            raise KernelError(str(error)) from None
        report = result.content if isinstance(result.content, str) else text_of(result.content)
        typed = f"/{self.skill.name} {args}".strip()
        session.add_context(f"The user ran {typed} in a context of its own. Its report:\n{report}")
        return Expansion(text=report)


def _typed(name: str, args: str) -> str:
    """What was typed, for the model and for whoever reads the transcript."""
    text = f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>"
    return f"{text}\n<command-args>{args}</command-args>" if args else text
