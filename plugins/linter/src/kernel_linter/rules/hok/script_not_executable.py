"""The command starts with a plugin script that lacks the executable bit, or has no shebang.

Why: "Permission denied"; the guard does not guard.

Bad:

    0644 check.sh

Good:

    0755 check.sh, or "bash …/check.sh"
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic, Fix
from kernel_linter.shell import plugin_paths, words

CODE = "HOK022"
SEVERITY = "error"
FIX = "safe"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    plugin = handler.plugin
    if not plugin or os.name == "nt" or not handler.command:
        return
    first = words(handler.command)[:1] if handler.args is None else [handler.command]
    found = next((p for p, _ in plugin_paths(first[0])), "") if first and first[0].startswith("${CLAUDE_PLUGIN_ROOT}") else ""
    if not found or not plugin.is_file(found) or found.lower().endswith((".cmd", ".bat", ".exe", ".ps1")):
        return
    path = plugin.root / found
    if not path.stat().st_mode & 0o111:
        yield handler.at(
            f"command: {found} is not executable (permission denied)",
            "command",
            fix=Fix("safe", "set the executable bit", executable=(str(path),)),
        )
    elif (
        (head := plugin.file(found).raw[:4])
        and head[:2] != b"#!"
        and head not in (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
        and head[:2] != b"MZ"
    ):
        yield handler.at(f"command: {found} has no first line '#!...'", "command")
