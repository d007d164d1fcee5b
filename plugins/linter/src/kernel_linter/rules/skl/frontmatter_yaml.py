"""Frontmatter does not parse as YAML. Fix: quote the plain value that broke it. For SKILL.md; commands and agents: CMD001,
AGT001.

Why: Every field is lost: no description, and `disable-model-invocation` is off.

Bad:

    description: Use when: tests fail

Good:

    description: "Use when: tests fail"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import broken_frontmatter

CODE = "SKL001"
SEVERITY = "error"
FIX = "safe"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    yield from broken_frontmatter(text)
