"""An exact-list matcher on a tool event names an unknown or removed tool.

Why: That part never matches (harmless next to known ones).

Bad:

    "Edit|MultiEdit"

Good:

    "Edit|Write"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import Group
from kernel_linter.rule import Diagnostic
from kernel_linter.tools import REMOVED, known, near
from kernel_linter.words import shown

CODE = "HOK017"
SEVERITY = "warning"
FIX = "none"
ON = "group"
SINCE = "0.1.0"


def check(group: Group) -> Iterator[Diagnostic]:
    extra = group.plugin.extra_tools if group.plugin else frozenset()
    for name in (group.exact or ()) if group.on_tool else ():
        if name in REMOVED and name not in ("TodoRead",):
            yield group.at(f"matcher: {name} no longer exists; {REMOVED[name]} took its place", "matcher", about=name)
        elif not known(name, extra):
            yield group.at(f"matcher: {shown(name)} names no tool{near(name, extra)}", "matcher", about=name)
