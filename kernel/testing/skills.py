"""Trigger tests for skills: is a skill listed, and does its description say enough to be chosen?

No model is asked. What can be checked without one is checked: whether the model would be shown the skill, and whether a
prompt shares words with what it would be shown. A description that has no word in common with a prompt that should
trigger it will not do better with a model. ``ask_model`` puts the same question to a real one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kernel.frontmatter import read_frontmatter

LISTED_CHARS = 1_536
"""Characters of description and when_to_use that the model is shown (skills contract, section 7)."""

_TRUE = ("true", "yes", "on", "1")
_STOP = frozenset("""
    a about after all also am an and any are as at be been but by can could did do does for from get give go has have he
    her his how i if in into is it its just let like make me my need no not of off on one or our out over please put
    should so some such than that the their them then there these they this to up us use used uses using want was we
    were what when where which while who why will with would you your""".split())


class Skill(Struct):
    """A SKILL.md as the model gets to know it. ``listed`` and ``typed``: whether the model, and a person, may call it."""

    name: str
    path: Path
    description: str
    body: str
    listed: bool = True
    typed: bool = True

    @property
    def shown(self) -> str:
        """The entry of the listing."""
        return self.description[:LISTED_CHARS]

    @property
    def words(self) -> dict[str, str]:
        """The words of name and entry that say something, stem -> word."""
        return _words(f"{self.name.replace('-', ' ')} {self.shown}")


def read_skill(path: Path) -> Skill:
    """Read a SKILL.md, or that of a folder.

    :raises AssertionError: its frontmatter is missing, or not read as it was meant; the text says what is wrong.
    """
    path = path / "SKILL.md" if path.is_dir() else path
    read = read_frontmatter(path)
    if read.problem or not read.present:
        raise AssertionError(f"{path}: {read.problem or 'begins with no frontmatter (a line ---, fields, a line ---)'}")
    fields = read.fields
    first = next((p.strip() for p in read.body.split("\n\n") if p.strip() and not p.lstrip().startswith("#")), "")
    told = [str(fields.get(key) or "").strip() for key in ("description", "when_to_use")]
    return Skill(name=str(fields.get("name") or path.parent.name), path=path, body=read.body.strip(),
                 description=" ".join(t for t in (told[0] or first, told[1]) if t),
                 listed=not _flag(fields.get("disable-model-invocation"), False), typed=_flag(fields.get("user-invocable"), True))


def read_skills(root: Path) -> list[Skill]:
    """The skills of a plugin folder: ``skills/*/SKILL.md``, by name."""
    return [read_skill(path) for path in sorted(root.glob("skills/*/SKILL.md"))]


def _flag(value: Any, default: bool) -> bool:
    return default if value is None else str(value).strip().lower() in _TRUE


Chooser = Callable[[Sequence[Skill], str], str | None]
"""Says which of the listed skills a prompt calls for, by name; ``None``: none of them."""


def by_words(skills: Sequence[Skill], prompt: str) -> str | None:
    """The skill whose listing shares most words with the prompt: at least two, or one where the prompt has no more than two.

    Words that say nothing ("please", "the", "make") do not count; endings are cut ("reviewing" counts as "review"). With a tie
    the first by name is chosen, so that the answer is always the same.
    """
    asked = _words(prompt)
    best, most = None, 0
    for skill in sorted(skills, key=lambda s: s.name):
        common = len(asked.keys() & skill.words.keys())
        if common > most:
            best, most = skill.name, common
    return best if most >= min(2, max(1, len(asked) - 1)) else None


def _words(text: str) -> dict[str, str]:
    """The words that say something, stem -> word."""
    words = re.findall(r"[^\W_]{2,}", text.lower())
    return {_stem(w): w for w in words if w not in _STOP}


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "ers", "er", "ies", "es", "ed", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[:-len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word  # running -> runn -> run


def assert_triggers(skills: Sequence[Skill] | Path, should: Mapping[str, Iterable[str]] | None = None,
                    should_not: Iterable[str] = (), *, choose: Chooser = by_words) -> None:
    """Every prompt leads to the skill that it should, and the others to none.

    :param skills: what is listed together, or the plugin's folder.
    :param should: skill name -> prompts that should trigger it.
    :param should_not: prompts that should trigger none of them.
    :param choose: who chooses; ``by_words`` needs no model, ``ask_model(...)`` asks one.
    :raises AssertionError: all that went wrong, a line each.
    """
    known = read_skills(skills) if isinstance(skills, Path) else list(skills)
    listed = [s for s in known if s.listed]
    wrong: list[str] = []
    for name, prompts in (should or {}).items():
        skill = next((s for s in known if s.name == name), None)
        if skill is None:
            wrong.append(f"there is no skill {name!r}; there are {', '.join(s.name for s in known) or 'none'}")
        elif not skill.listed:
            wrong.append(f"{name} is not listed (disable-model-invocation), so no prompt triggers it")
        elif not skill.shown:
            wrong.append(f"{name} has no description, so nothing triggers it")
        else:
            for prompt in prompts:
                got = choose(listed, prompt)
                if got != name:
                    wrong.append(f"{prompt!r} should trigger {name}, and triggers {got or 'nothing'}; "
                                 f"words in common: {_common(skill, prompt)}")
    for prompt in should_not:
        got = choose(listed, prompt)
        if got is not None:
            skill = next((s for s in listed if s.name == got), None)
            wrong.append(f"{prompt!r} should trigger nothing, and triggers {got}"
                         + (f"; words in common: {_common(skill, prompt)}" if skill else ""))
    if wrong:
        raise AssertionError("\n".join(wrong))


def _common(skill: Skill, prompt: str) -> str:
    return ", ".join(word for stem, word in _words(prompt).items() if stem in skill.words) or "none"


def ask_model(model: str, cwd: Path) -> Chooser:
    """Let a real model choose: each prompt is one request with the listing and one tool, ``Skill``. Costs money.

    :param model: as ``--model`` takes it; its provider must be installed and have a key.
    """
    from kernel.harness import Harness
    from kernel.options import Options
    from kernel.plugins import PluginSet, decide, find
    from kernel.testing.stand_ins import StubPolicy, module
    from kernel.tools import Tool, ToolContext, ToolResult

    def choose(skills: Sequence[Skill], prompt: str) -> str | None:
        import anyio

        chosen: list[str] = []

        class SkillTool(Tool):
            name = "Skill"
            description = "Load a skill. Call it before anything else where the request fits a skill of the list, and only then."
            input_schema = {"type": "object", "required": ["skill"], "additionalProperties": False,
                            "properties": {"skill": {"type": "string", "enum": [s.name for s in skills]}}}
            permission = "free"

            async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
                chosen.append(input["skill"])
                context.session.interrupt()
                return ToolResult(content="loaded")

        listing = "Skills:\n" + "\n".join(f"- {s.name}: {s.shown}" for s in skills)
        found = [p for p in find() if p.manifest and "models" in p.manifest.kernel.provides]
        decide(found, ())
        plugins = PluginSet(found)
        plugins.register("trigger-test", module(register_tools=lambda register: register(SkillTool()),
                                                register_policies=lambda register: register(StubPolicy())))
        harness = Harness(Options(cwd=cwd, model=model, max_turns=1, persist=False, tools=["Skill"], setting_sources=(),
                                  append_system_prompt=listing, permission_mode="dontAsk"), plugins=plugins)

        async def go() -> None:
            session = harness.open()
            try:
                await session.submit(prompt)
            finally:
                await session.close()

        anyio.run(go)
        return chosen[0] if chosen else None

    return choose
