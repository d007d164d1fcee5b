"""`name` has upper case, spaces or characters outside letters, digits, hyphens; double or outer hyphen; over 64.

Why: `/plugin:My Skill` cannot be typed; other hosts refuse it.

Bad:

    name: Writing Rules

Good:

    name: writing-rules
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SKL012"
SEVERITY = "warning"
FIX = "unsafe"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    name = text.data.get("name")
    if isinstance(name, str) and name:
        folded = unicodedata.normalize("NFKC", name)
        spec = (
            folded == folded.lower()
            and all(c.isalnum() or c == "-" for c in folded)
            and not re.search(r"^-|-$|--", folded)
            and len(folded) <= 64
        )
        if not spec:
            right = re.sub(r"-+", "-", re.sub(r"[^a-z0-9]+", "-", name.lower())).strip("-")[:64]
            yield text.at(
                f"name: {shown(name)} should be lower-case letters, digits and single hyphens, at most 64",
                "name",
                fix=text.set_field("name", right, f"write {right}", "unsafe") if right else None,
            )
