"""A permission rule is not `Tool` or `Tool(specifier)`.

Why: The rule is dropped: what was denied is allowed, what was allowed is asked.

Bad:

    {"permissions": {"deny": ["Bash(rm *"]}}

Good:

    {"permissions": {"deny": ["Bash(rm *)"]}}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.settings_table import wrong_rule
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "SET003"
SEVERITY = "error"
FIX = "none"
ON = "settings"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    permissions = file.object.get("permissions")
    for key in ("allow", "ask", "deny"):
        rules = permissions.get(key) if isinstance(permissions, dict) else None
        for index, rule in enumerate(rules if isinstance(rules, list) else ()):
            if wrong := wrong_rule(rule):
                yield file.at(f"permissions.{key}: {shown(rule)} {wrong}", "permissions", key, index)
