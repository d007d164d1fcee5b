"""Which styles there are and which one a session has (context contract, 1.1; skills contract, section 14)."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kernel import Component, Frontmatter, find_components, inert, read_frontmatter
from kernel_output_styles.builtin import EXPLANATORY, LEARNING

if TYPE_CHECKING:
    from kernel import Session

KEY = "output-styles"
DEFAULT = "default"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
REMIND = "The output style {name} is active: go on answering in the way it asks for. Do not talk about this message."


class Style(Struct, frozen=True, kw_only=True):
    """``text``: what stands at the end of the system prompt. ``coding``: whether the built-in rules for code stay."""

    name: str
    text: str = ""
    coding: bool = True
    source: str = "built-in"


BUILT_IN = {"default": Style(name="Default"), "explanatory": Style(name="Explanatory", text=EXPLANATORY),
            "learning": Style(name="Learning", text=LEARNING)}


class Active(Struct):
    """The style of one conversation, read once at its start. ``due``: a prompt came, and its request will hold a reminder.

    ``asked``: parts of the prompt that were told of it.
    """

    style: Style
    asked: set[str] = field(default_factory=set)
    prompts: int = 0
    due: bool = False
    problems: list[str] = field(default_factory=list)


def of(session: Session) -> Active:
    """Kept for the conversation; agents have none of their own."""
    found: Active | None = session.root.plugin_state.get(KEY)
    if found is None:
        found = session.root.plugin_state[KEY] = choose(session.root)
    return found


def at_start(session: Session, part: str) -> Style:
    """The style for a part of the prompt. A part that asks again stands at the start of another conversation (``/clear``)."""
    active = of(session)
    if part in active.asked:
        active = session.root.plugin_state[KEY] = choose(session.root)
    active.asked.add(part)
    return active.style


def choose(session: Session) -> Active:
    """A plugin's forced style, else the one that the setting names, else the default.

    A name that nothing has is said; the session goes on without a style.
    """
    active = Active(style=BUILT_IN[DEFAULT])
    forced = _forced(session, active)
    wanted = session.settings.get("outputStyle")
    if forced is not None:
        active.style = forced
        session.init_facts["output_style"] = forced.name
    elif isinstance(wanted, str) and wanted.strip():
        found = _named(session, wanted.strip(), active)
        if found is None:
            active.problems.append(f"outputStyle: there is no style {wanted!r}; the default is used")
        active.style = found or active.style
    elif wanted is not None:
        active.problems.append("outputStyle: must be the name of a style; the default is used")
    for problem in active.problems:
        tell = session.harness.announce if session.options.output_format == "text" else session.debug
        tell(f"output-styles: {problem}")
    return active


def _forced(session: Session, active: Active) -> Style | None:
    """The first plugin style that asks for it; the names of further ones are said."""
    styles: list[Style] = []
    for component in find_components(session, "output-styles", ("plugin",)).items:
        head = read_frontmatter(component.path, body=False)
        if head.fields.get("force-for-plugin") is True and (style := _read(component, active)) is not None:
            styles.append(style)
    for other in styles[1:]:
        active.problems.append(f"{other.source}: also asks to be used always; {styles[0].name} was first")
    return styles[0] if styles else None


def _named(session: Session, wanted: str, active: Active) -> Style | None:
    """A file's style of exactly that name wins over a built-in one, and case counts least."""
    if wanted.lower() == DEFAULT:
        return BUILT_IN[DEFAULT]
    found = find_components(session, "output-styles", ("managed", "project", "user", "plugin"))
    active.problems += [str(fault) for fault in found.faults]
    names = [(_names(component, read_frontmatter(component.path, body=False)), component) for component in found.items]
    for fits in (wanted.__eq__, lambda name: name.lower() == wanted.lower()):
        for mine, component in names:
            if any(fits(name) for name in mine) and (style := _read(component, active)) is not None:
                return style
        if wanted in (style.name for style in BUILT_IN.values()):
            break
    return BUILT_IN.get(wanted.lower())


def _names(component: Component, head: Frontmatter) -> list[str]:
    """What a style is called: by itself or its file, and behind its plugin's name."""
    name = head.fields.get("name")
    own = name.strip() if isinstance(name, str) and name.strip() else os.path.basename(component.path)[:-3]
    own = inert(" ".join(_CONTROL.sub(" ", own).split()))  # it stands in a heading and in a reminder
    return [own, f"{component.plugin.name}:{own}"] if component.plugin else [own]


def _read(component: Component, active: Active) -> Style | None:
    """``None`` where the file cannot be used, which is then said."""
    head = read_frontmatter(component.path)
    if head.problem:
        active.problems.append(f"{component.path}: {head.problem}")
    if not head.readable or not head.body.strip():
        if head.readable:
            active.problems.append(f"{component.path}: has no text")
        return None
    keep = head.fields.get("keep-coding-instructions")
    if keep is not None and not isinstance(keep, bool):
        active.problems.append(f"{component.path}: keep-coding-instructions: must be true or false")
    name = _names(component, head)[-1]
    text = inert(head.body.strip())
    return Style(name=name, text=f"# Output style: {name}\n{text}", coding=keep is True or head.lost, source=component.path)
