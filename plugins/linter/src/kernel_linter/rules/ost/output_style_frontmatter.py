"""An output style without frontmatter, or with frontmatter that does not parse.

Why: The file name is its name; flags are lost.

Bad:

    # Terse

Good:

    ---
    name: Terse
    ---
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import broken_frontmatter, repair_delimiters

CODE = "OST001"
SEVERITY = "warning"
FIX = "safe"
ON = "style"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if text.front.state == "broken":
        yield from broken_frontmatter(text)
    elif text.front.state != "ok" and text.text.strip():
        yield text.at(
            f"the frontmatter is {'missing' if text.front.state == 'missing' else 'not read: ' + text.front.error}; the file "
            f"name is the name",
            fix=repair_delimiters(text)
            or (
                text.fix_span((0, 0), f"---\nname: {text.path.stem}\n---\n", "add a name")
                if text.front.state == "missing" and not text.bom
                else None
            ),
        )
