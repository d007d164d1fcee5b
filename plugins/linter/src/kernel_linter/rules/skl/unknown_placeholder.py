"""(text) `$SKILL_DIR`, `{skill-dir}`, `PLUGIN_ROOT/…`, `${CLAUDE_SKILL_ROOT}` and the like.

Why: No such variable.

Bad:

    $SKILL_DIR/run.py

Good:

    ${CLAUDE_SKILL_DIR}/run.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SKL048"
SEVERITY = "warning"
FIX = "none"
ON = "text"
SINCE = "0.1.0"

UNKNOWN = re.compile(
    r"\$\{?(?:SKILL_DIR|SKILL_ROOT|SKILL_PATH|PLUGIN_ROOT|PLUGIN_DIR|CLAUDE_SKILL_ROOT|CLAUDE_SKILL_PATH|CLAUDE_PLUGIN_DIR"
    r"|CLAUDE_PLUGIN_PATH|"
    r"CLAUDE_SKILLS_DIR)\b\}?|(?<!\{)\{(?:skill-dir|skill_dir|SKILL_DIR|plugin-root|PLUGIN_ROOT|baseDir)\}(?!\})|(?<![\w$/{])PLUGIN_ROOT/"
)


def check(text: TextFile) -> Iterator[Diagnostic]:
    defined = set(re.findall(r"\b(SKILL_DIR|SKILL_ROOT|SKILL_PATH|PLUGIN_ROOT|PLUGIN_DIR)=", text.body))
    for match in UNKNOWN.finditer(text.text, text.front.body):
        if not any(name in match[0] for name in defined):
            yield text.at(
                f"{shown(match[0])}: there is no such variable; use ${{CLAUDE_SKILL_DIR}} or ${{CLAUDE_PLUGIN_ROOT}}",
                span=match.span(),
            )
