"""(text) A relative Markdown link to a file that is not there. Code fences are skipped.

Why: The model looks for a missing file.

Bad:

    [guide](reference.md)

Good:

    existing path
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.manifests import outside
from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.texts import missing_link
from kernel_linter.words import local_link, shown

CODE = "SKL037"
SEVERITY = "warning"
FIX = "none"
ON = "text"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for link, offset in text.links:
        path = local_link(link)
        if path and not path.startswith("/") and not (text.in_plugin and outside(text.rel, path)) and missing_link(text, path):
            yield text.at(f"the link {shown(link)} leads to no file", span=(offset, offset + len(link)), about=path)
