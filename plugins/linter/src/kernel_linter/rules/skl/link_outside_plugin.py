"""(text) A relative link that leaves the plugin root.

Why: Not in the installed copy.

Bad:

    [x](../../../rules.md)

Good:

    file inside the plugin
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.manifests import outside
from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import local_link, shown

CODE = "SKL038"
SEVERITY = "warning"
FIX = "none"
ON = "text"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    for link, offset in text.links:
        if text.in_plugin and text.plugin and outside(text.rel, local_link(link)):
            yield text.at(
                f"the link {shown(link)} leaves the plugin; the installed copy does not hold its target",
                span=(offset, offset + len(link)),
            )
