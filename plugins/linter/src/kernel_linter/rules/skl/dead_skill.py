"""`user-invocable: false` together with `disable-model-invocation: true`.

Why: Nobody can run it.

Bad:

    both set

Good:

    one of them
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic

CODE = "SKL031"
SEVERITY = "error"
FIX = "none"
ON = "skill"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    if "user-invocable" in text.data and not text.flag("user-invocable", True) and text.flag("disable-model-invocation", False):
        yield text.at(
            "user-invocable: false and disable-model-invocation: true together: nobody can run the skill", "user-invocable"
        )
