"""What a session knows of skills: the catalogue, what was invoked, what holds for this turn only."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from kernel import ConfigChange, Harness, History, KernelError, Session, UsageError, components_in, normalise
from kernel_skills import listing
from kernel_skills.catalogue import Catalogue, Skill
from kernel_skills.values import one_line

if TYPE_CHECKING:
    from kernel import Tool

KEY = "skills"
HEAD = re.compile(r"\A(?:Skill|Command): (\S+)\n(?:Base directory for this skill: [^\n]*\n)?\n")
PER_SKILL = 5_000 * listing.CHARACTERS_PER_TOKEN
TOGETHER = 25_000 * listing.CHARACTERS_PER_TOKEN
"""What is told again after a compaction, in characters (contract, section 11)."""
CUT = "\n... (the rest of this skill was left out)"


class Turn(Struct):
    """What invoked skills changed until the next prompt, and how it was before.

    ``wanted``: the model of the latest skill that names one. ``taken``: tools that were taken away, with their places.
    """

    grants: tuple[str, ...]
    effort: str | None
    model: tuple[Any, Any, Any]
    wanted: str = ""
    taken: list[tuple[int, Tool, dict[str, Any]]] = field(default_factory=list)
    hidden: dict[str, Tool] = field(default_factory=dict)
    later: dict[str, Tool] = field(default_factory=dict)


class Skills:
    """Kept in ``session.plugin_state["skills"]``."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.off = bool(session.options.extra.get("disable_slash_commands"))
        above: Skills | None = session.parent.plugin_state.get(KEY) if session.parent else None
        same = above is not None and above.session.project_root == session.project_root
        self.catalogue: Catalogue = above.catalogue if above is not None and same else Catalogue()
        self.shared = same
        self.used: Counter[str] = Counter()
        self.invoked: dict[str, str] = {}
        """Name -> the text as it was rendered last; the latest is the last."""
        self.in_context: set[str] = set()
        self.hooked: set[str] = set()
        self.turn: Turn | None = None
        self._told: dict[str, str] = {}
        self._met = 0
        self._looked: set[str] = set()
        self._awake: set[str] = set()
        """Skills with ``paths`` of which a file was met."""
        self._warned: set[str] = set()

    # -- what there is ---------------------------------------------------------------------------------------------------
    def open(self) -> None:
        if self.off:
            return
        if not self.shared:
            self.catalogue.load(self.session)
        self._remember()
        self._tell_problems()
        self._publish()

    def first_listing(self) -> None:
        """The listing of the start, unless the history of a resumed session holds it already."""
        if "Skill" not in self.session.toolbox.by_name:
            return
        skills = self.listed()
        self._told = {s.name: listing.describe(s, listing.longest(self.session)) for s in skills}
        text = listing.whole(self.session, skills, self.used)
        if text and not any(text in str(b.get("text", "")) for _, blocks in self.session.history.messages for b in blocks):
            self.session.add_context(text)

    def forget(self) -> None:
        """Another conversation begins in this session (``/clear``): it was told of nothing, and no file was met in it."""
        self.invoked.clear()
        self.in_context.clear()
        self._awake.clear()
        self._met = 0
        self.first_listing()

    def listed(self) -> list[Skill]:
        """What the model is told of, in order of precedence."""
        return [s for s in self.catalogue.by_name.values()
                if s.by_model and (not s.paths or s.name in self._awake) and self.chosen(s)]

    def chosen(self, skill: Skill) -> bool:
        """Whether the program that embeds the session lets the model use it (SDK option ``skills``)."""
        wanted = self.session.root.options.extra.get("skills")
        if wanted is None or wanted == "all":
            return True
        return isinstance(wanted, list) and skill.name in wanted

    def _publish(self) -> None:
        """The names for the ``init`` message and the commands that can be typed."""
        session = self.session
        if session.parent is not None:
            return
        from kernel_skills.typed import Typed

        for name in [n for n, c in session.commands.items() if isinstance(c, Typed)]:
            del session.commands[name]
        for name, skill in self.catalogue.by_name.items():
            session.commands.setdefault(name, Typed(skill))
        for bare, full in self.catalogue.bare.items():
            session.commands.setdefault(bare, Typed(self.catalogue.by_name[full], bare=True))
        session.init_facts["skills"] = [s.name for s in self.catalogue.by_name.values()
                                        if not s.is_command and (s.by_model or s.by_user)]

    def _tell_problems(self) -> None:
        """Everything that is wrong, once, with file and field; a plugin's faults also go to the ``init`` message."""
        for problem, plugin in self.catalogue.problems.items():
            if problem in self._warned or self.session.parent is not None:
                continue
            self._warned.add(problem)
            text = f"skills: {one_line(problem)}"
            if plugin:
                self.session.plugin_errors.append({"plugin": plugin, "type": "component-load-failed", "message": problem})
            if self.session.options.output_format == "text" and not _is_remark(problem):
                self.session.harness.announce(text)
            else:
                self.session.debug(text)

    # -- changes while the session runs ------------------------------------------------------------------------------------
    async def refresh(self, *, plugins: bool = False) -> None:
        """Look at the disk again and announce what became another."""
        if self.off or self.session.parent is not None:
            return
        before = self.catalogue.by_name
        changed = self.catalogue.load(self.session, plugins=plugins)
        if self.catalogue.by_name is before:
            return
        if await self._vetoed(changed):
            self.catalogue.by_name = before
            self.catalogue.name_bare()
            return
        self._tell_problems()
        self._publish()
        self.announce()

    async def _vetoed(self, changed: list[str]) -> bool:
        session = self.session
        if not changed or not session.harness.dispatcher.listens(ConfigChange):
            return False
        merged = await session.fire(session.make(ConfigChange, source="skills", file_path=changed[0]))
        return bool(merged.blocked)

    def announce(self) -> None:
        """Tell the model of what it is not told yet."""
        if "Skill" not in self.session.toolbox.by_name:
            return
        limit = listing.longest(self.session)
        now = {s.name: listing.describe(s, limit) for s in self.listed()}
        came = [self.catalogue.by_name[name] for name, text in now.items() if self._told.get(name) != text]
        went = [name for name in self._told if name not in now]
        if came or went:
            self.session.add_context(listing.changes(self.session, came, went))
        self._told = now

    # -- files the model met -------------------------------------------------------------------------------------------------
    def meet(self) -> None:
        """Skills below the start directory and skills for certain files come up with the first file of theirs."""
        files = self.session.read_files
        if self.off or len(files) == self._met:
            return
        fresh = list(files)[self._met:]
        self._met = len(files)
        new = [found for path in fresh for found in self._below(path)]
        if new:
            self.catalogue.nested += new
            self.catalogue.load(self.session, plugins=False)
            self._tell_problems()
            self._publish()
        asleep = [s for s in self.catalogue.by_name.values() if s.paths and s.name not in self._awake]
        if asleep:
            from kernel_skills.globs import inside, matches

            paths = [parts for path in fresh for parts in inside(path, self.session.project_root)]
            self._awake |= {skill.name for skill in asleep if matches(skill.paths, paths)}
        self.announce()

    def _below(self, path: str) -> list[tuple[str, Any]]:
        """``.claude/skills`` folders between the start directory and a file."""
        from kernel_skills.ignored import is_ignored

        start = os.path.realpath(self.session.project_root)
        found = []
        folder = os.path.dirname(os.path.realpath(path))
        while folder.startswith(start + os.sep) and folder not in self._looked:
            self._looked.add(folder)
            skills = os.path.join(folder, ".claude", "skills")
            if self._may_nest() and os.path.isdir(skills) and not is_ignored(folder, start):
                from pathlib import Path

                found.append((os.path.relpath(folder, start), components_in(Path(skills), "skills", root=Path(start))))
            folder = os.path.dirname(folder)
        return found[::-1]

    def _may_nest(self) -> bool:
        """Nested skills are the project's, so they come and go with its own."""
        session = self.session
        strict = session.settings.managed("strictPluginOnlyCustomization")
        closed = strict is True or (isinstance(strict, list) and "skills" in strict)
        off = session.options.extra.get("bare") or session.options.extra.get("safe_mode")
        return "project" in session.options.setting_sources and not closed and not off

    # -- a turn --------------------------------------------------------------------------------------------------------------
    def this_turn(self) -> Turn:
        """What has to be put back before the next prompt."""
        if self.turn is None:
            session = self.session
            self.turn = Turn(session.state.grants, session.effort, (session.provider, session.model_info, session.call_model))
        return self.turn

    def end_turn(self) -> None:
        """The next prompt is here: grants, model, effort and tools are those of the session again."""
        turn, session = self.turn, self.session
        self.turn = None
        if turn is None:
            return
        session.state = msgspec.structs.replace(session.state, grants=turn.grants, model=turn.model[1].id)
        session.effort = turn.effort
        if session.model_info.id != turn.model[1].id:
            session.history = History(normalise(session.history.messages, keep_thinking=False)[0])
        session.provider, session.model_info, session.call_model = turn.model
        box = session.toolbox
        if turn.hidden:
            offered, definitions = list(box.offered), list(box.definitions)
            for place, tool, definition in sorted(turn.taken, key=lambda item: item[0]):
                offered.insert(place, tool)
                definitions.insert(place, definition)
            box.offered, box.definitions = offered, definitions
            box.by_name |= turn.hidden
            box.deferred |= turn.later

    def take_away(self, names: list[str]) -> None:
        """Tools that the model has not while the skill is active."""
        box, turn = self.session.toolbox, self.this_turn()
        gone = {n: t for n, t in box.by_name.items() if any(_means(name, t.name, n) for name in names)}
        gone = {n: t for n, t in box.by_name.items() if any(t is g for g in gone.values())}
        turn.hidden |= gone
        turn.later |= {n: t for n, t in box.deferred.items() if n in gone}
        turn.taken += [(n, t, d) for n, (t, d) in enumerate(zip(box.offered, box.definitions, strict=True))
                       if any(t is g for g in gone.values())]
        box.withdraw(list(gone))

    def switch(self) -> None:
        """The model that a skill wants, from this request on; one that cannot be had is said and changes nothing."""
        turn = self.turn
        if turn is None or not turn.wanted:
            return
        wanted, turn.wanted = turn.wanted, ""
        allowed = self.session.settings.get("availableModels")
        try:
            _, info = self.session.harness.provider_of(wanted)
            if isinstance(allowed, list) and not {wanted, info.id}.intersection(m for m in allowed if isinstance(m, str)):
                raise UsageError(f"the setting availableModels does not hold {wanted!r}")
            self.session.switch(wanted)
        except KernelError as error:
            self.session.notice(f"skills: the model {wanted!r} is not used: {error}")

    # -- for agents ------------------------------------------------------------------------------------------------------------
    async def preload(self, name: str, session: Session, plugin: str = "") -> str | None:
        """The whole text of a skill that an agent's definition names, for the agent's start; nothing is granted by it.

        :param session: the agent's context.
        :param plugin: the plugin that brings the agent; its skills may be named without it.
        :returns: ``None`` where it is not there, is not the model's to use, or cannot be rendered; the debug log says why.
        """
        from kernel_skills.invoke import head
        from kernel_skills.render import SkillError, render

        skill = (self.catalogue.get(f"{plugin}:{name}") if plugin else None) or self.catalogue.get(name)
        if skill is None or not skill.by_model:
            why = "there is no such skill" if skill is None else "it is not for the model"
            session.debug(f"skills: {name} is not preloaded: {why}")
            return None
        try:
            return head(skill) + (await render(skill, "", session)).text
        except SkillError as error:
            session.debug(f"skills: {name} is not preloaded: {error}")
            return None

    # -- what was invoked ------------------------------------------------------------------------------------------------------
    def note(self, name: str, text: str) -> bool:
        """Keep a rendered text; false where the model has exactly this text already."""
        known = self.invoked.pop(name, None) == text and name in self.in_context
        self.invoked[name] = text
        self.in_context.add(name)
        self.used[name] += 1
        return not known

    def again(self) -> list[tuple[str, str]]:
        """After a compaction: the latest texts that fit, newest first, each from its start."""
        room, told = TOGETHER, []
        for name, text in reversed(self.invoked.items()):
            cut = text if len(text) <= PER_SKILL else text[:PER_SKILL - len(CUT)] + CUT
            if len(cut) > room:
                break
            room -= len(cut)
            told.append((name, cut))
        self.in_context = {name for name, text in told if text == self.invoked[name]}
        return told

    def _remember(self) -> None:
        """Skills that ran before the session was resumed, from its history."""
        for role, blocks in self.session.history.messages:
            for block in blocks if role == "user" else ():
                text = block.get("text")
                if isinstance(text, str) and (match := HEAD.match(text)):
                    self.note(match[1], text)


def _is_remark(problem: str) -> bool:
    """Something that was put right, and needs nobody's eye before the work begins."""
    return "was mended" in problem or "so there is no frontmatter" in problem


def _means(pattern: str, *names: str) -> bool:
    """Whether a name of ``disallowed-tools`` means a tool; a ``*`` at the end stands for anything."""
    if pattern == "EndConversation":
        return False
    return any(n.startswith(pattern[:-1]) if pattern.endswith("*") else n == pattern for n in names)


def of(session: Session) -> Skills:
    """The session's state; made at its first use."""
    found: Skills | None = session.plugin_state.get(KEY)
    if found is None:
        found = session.plugin_state[KEY] = Skills(session)
    return found


def hooks_run(harness: Harness) -> bool:
    plugin = harness.plugins.get("command-hooks")
    return plugin is not None and plugin.state == "ready"
