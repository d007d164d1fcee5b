"""`force-for-plugin: true`.

Why: Overrides the user's choice; several such plugins fight.

Bad:

    force-for-plugin: true

Good:

    let the user choose
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "OST003"
SEVERITY = "info"
FIX = "none"
ON = "style"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.flag("force-for-plugin", False):
        yield text.at("force-for-plugin: overrides the user's choice, and several such plugins fight", "force-for-plugin")
