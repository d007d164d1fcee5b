"""One invocation, by a person or by the model: render, grant, register hooks, or hand the text to an agent (sections 7 to 10)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec
from msgspec import Struct, field

from kernel import Block, Session, ToolResult, env_switch, text_block
from kernel_skills.catalogue import Skill, names
from kernel_skills.render import Rendered, SkillError, render, rules, variables
from kernel_skills.state import Skills, hooks_run
from kernel_skills.text import only_variables

SOURCES = "command-hooks.sources"
"""Where the plugin 'command-hooks' finds the hooks of skills."""
AGENT = "general-purpose"
FORKS: ContextVar[tuple[str, ...]] = ContextVar("kernel_skills.forks", default=())
"""Names of the forked skills that this task runs in; a skill does not fork itself again."""
SAME = "Its text is the same as before and stands above in this conversation."


class Invocation(Struct):
    """``text`` is what enters the conversation; ``note``: it is there already, and this says so."""

    skill: Skill
    text: str
    attached: list[Block] = field(default_factory=list)
    note: str = ""

    def blocks(self) -> list[Block]:
        return [text_block(self.note or self.text), *self.attached]


async def inline(skill: Skill, args: str, session: Session, state: Skills) -> Invocation:
    """Put a skill's text into the conversation and give it what it asks for, until the next prompt.

    :raises SkillError: it cannot be rendered; then nothing is granted.
    """
    before = session.state
    fresh = state.turn is None
    grant(skill, session, state)
    try:
        rendered = await render(skill, args, session)
    except BaseException:
        session.state = msgspec.structs.replace(session.state, grants=before.grants)
        if fresh:
            state.turn = None
        raise
    turn = state.this_turn()
    if skill.model and skill.model != "inherit":
        turn.wanted = skill.model
    if skill.effort and session.model_info.effort:
        session.effort = skill.effort
    if skill.disallowed:
        state.take_away(skill.disallowed)
    register_hooks(skill, session, state)
    text = head(skill) + rendered.text + _variants(skill, state)
    told = state.note(skill.name, text)
    return Invocation(skill, text, rendered.attached,
                      note="" if told else f"{'Command' if skill.is_command else 'Skill'} {skill.name} was invoked again. {SAME}")


def head(skill: Skill) -> str:
    """The lines in front of the text; they also tell a resumed session what ran."""
    if skill.is_command:
        return f"Command: {skill.name}\n\n"
    where = f"Base directory for this skill: {skill.directory}\n" if skill.component.content is None else ""
    return f"Skill: {skill.name}\n{where}\n"


def _variants(skill: Skill, state: Skills) -> str:
    others = state.catalogue.variants(skill)
    if not others or skill.place:
        return ""
    places = "\n".join(f"- {s.name}, for files in {s.place}/" for s in others)
    return ("\n\nThere are variants of this skill for parts of the project. If the files at hand are in such a directory, load "
            f"its variant with the Skill tool instead:\n{places}")


# -- rights ----------------------------------------------------------------------------------------------------------------
def granted(skill: Skill, session: Session) -> tuple[str, ...]:
    """Its ``allowed-tools``. The program that embeds a session decides itself what people's skills may do there.

    In print mode they are not gated by trust (skills contract, ``allowed-tools``); a person who was asked and did not trust the
    folder meant this, too.
    """
    if skill.allowed and skill.component.scope == "project" and not session.options.print_mode and not session.settings.trusted:
        session.notice(f"{skill.path}, allowed-tools: does not count: this workspace has not been trusted")
        return ()
    if skill.lost or (skill.plugin is None and skill.component.scope != "managed"
                      and os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk-")):
        return ()
    return rules(skill, session, skill.allowed)


def grant(skill: Skill, session: Session, state: Skills) -> None:
    """Allow rules for the rest of the turn; deny and ask rules still win."""
    more = tuple(rule for rule in granted(skill, session) if rule not in session.state.grants)
    if more:
        state.this_turn()
        session.state = msgspec.structs.replace(session.state, grants=session.state.grants + more)


def register_hooks(skill: Skill, session: Session, state: Skills) -> None:
    """The hooks of the frontmatter, from now to the end of the session."""
    if not skill.hooks or skill.lost or skill.name in state.hooked:
        return
    state.hooked.add(skill.name)
    if not hooks_run(session.harness):
        session.notice(f"{skill.path}, hooks: the plugin 'command-hooks' is not there, so none of them runs", guard=True)
        return
    entry: dict[str, Any] = {"label": f"skill {skill.name}", "skill": True, "project": skill.component.scope == "project",
                             "hooks": _placed(skill.hooks, {"CLAUDE_SKILL_DIR": variables(skill, session)["CLAUDE_SKILL_DIR"]})}
    if skill.plugin is not None:
        entry["plugin"] = skill.plugin
    session.plugin_state.setdefault(SOURCES, []).append(entry)


def _placed(value: Any, known: dict[str, str]) -> Any:
    if isinstance(value, str):
        return only_variables(value, known)
    if isinstance(value, dict):
        return {key: _placed(v, known) for key, v in value.items()}
    return [_placed(v, known) for v in value] if isinstance(value, list) else value


# -- a context of its own ----------------------------------------------------------------------------------------------------
async def fork(skill: Skill, args: str, session: Session, state: Skills, tool_use_id: str | None = None) -> ToolResult:
    """Give the text to an agent as its task (section 9).

    :raises SkillError: nobody runs agents here, it runs inside itself, or it cannot be rendered.
    :raises ToolError: there is no such agent, or a limit is reached.
    """
    if session.agents is None:
        raise SkillError(f"{skill.path}: context: fork needs the plugin 'subagents', which is not there")
    if skill.name in FORKS.get():
        raise SkillError(f"the skill {skill.name} runs already: this is its own task, so do it yourself")
    kinds = session.agents.types(session)
    kind = skill.agent or AGENT
    if kind not in kinds:
        raise SkillError(f"{skill.path}, agent: there is no agent {kind!r}; there are {', '.join(kinds)}")
    grants = granted(skill, session)
    rendered = await _with(grants, skill, args, session)
    register_hooks(skill, session, state)
    state.used[skill.name] += 1
    with _inside(skill.name):
        return await session.agents.run(
            session, prompt=head(skill) + rendered.text, agent_type=kind, background=in_background(skill, session),
            model=skill.model or None, description=f"skill {skill.name}", tool_use_id=tool_use_id, grants=grants)


async def _with(grants: tuple[str, ...], skill: Skill, args: str, session: Session) -> Rendered:
    """Render under the skill's own grants; they are the agent's, not the conversation's."""
    before = session.state.grants
    session.state = msgspec.structs.replace(session.state, grants=before + grants)
    try:
        return await render(skill, args, session)
    finally:
        session.state = msgspec.structs.replace(session.state, grants=before)


def in_background(skill: Skill, session: Session) -> bool:
    """Whether nobody waits for it: not in a run without a terminal, nor where background work is switched off."""
    off = env_switch("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS")
    running = any(task.get("description") == f"skill {skill.name}" for task in session.background_tasks.values())
    return skill.background and not session.options.print_mode and not off and not running


@contextmanager
def _inside(name: str) -> Iterator[None]:
    token = FORKS.set((*FORKS.get(), name))
    try:
        yield
    finally:
        FORKS.reset(token)


def refusal(skill: Skill) -> str:
    """Why the model may not invoke a skill, and what it can do instead."""
    return (f"The skill {skill.name} can only be started by a person (disable-model-invocation). Ask the user to type "
            f"/{skill.name}; do not carry out its steps yourself.")


def unknown(name: str, state: Skills) -> str:
    from difflib import get_close_matches

    listed = state.listed()
    near = get_close_matches(name, [s.name for s in listed], n=3)
    return f"There is no skill {name!r}. " + (f"Did you mean {', '.join(near)}?" if near else
                                              f"There are: {names(listed[:40]) or 'none'}.")
