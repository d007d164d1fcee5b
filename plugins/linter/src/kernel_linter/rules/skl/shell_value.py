"""`shell` is not `bash` or `powershell`.

Why: Injected commands fail.

Bad:

    shell: zsh

Good:

    shell: bash
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.tables import SHELLS
from kernel_linter.words import shown

CODE = "SKL030"
SEVERITY = "error"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    value = text.data.get("shell")
    if value is not None and value not in SHELLS:
        yield text.at(f"shell: {shown(value)} is none of {', '.join(SHELLS)}", "shell")
