"""(text) Injected commands that are not read-only and no `allowed-tools` Bash rule covers them. Fix: add the rule.

Why: Permission is not asked: the whole invocation aborts.

Bad:

    !`npm test` without a grant

Good:

    allowed-tools: Bash(npm test *)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.shell import commands, read_only
from kernel_linter.texts import add_grant, covered
from kernel_linter.words import shown

CODE = "SKL044"
SEVERITY = "warning"
FIX = "unsafe"
ON = "skill command"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    rules = [e.specifier for e in text.granted if e.name == "Bash"]
    for command, offset in text.injections:
        if None in rules or "*" in rules or read_only(command) or not command.strip():
            continue
        plain = re.sub(r"\$\{CLAUDE_\w+\}", "x", command)
        lines = [" ".join(part) for part in commands(plain)]
        bare = [line for line in lines if not read_only(line) and not covered(line, [r for r in rules if r])]
        if bare:
            first = bare[0].split()[0]
            yield text.at(
                f"the injected command {shown(command)} needs a grant: allowed-tools has no Bash rule for it, so the "
                f"invocation aborts",
                span=(offset, offset + len(command)),
                fix=add_grant(text, f"Bash({first} *)"),
            )
