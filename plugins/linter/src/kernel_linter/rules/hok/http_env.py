"""A header uses `$VAR` that `allowedEnvVars` does not list.

Why: Replaced by nothing.

Bad:

    "Bearer $TOKEN"

Good:

    "allowedEnvVars": ["TOKEN"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic

CODE = "HOK030"
SEVERITY = "warning"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    headers = handler.data.get("headers")
    allowed = handler.data.get("allowedEnvVars")
    allowed = allowed if isinstance(allowed, list) else []
    if handler.type == "http" and isinstance(headers, dict):
        for key, value in headers.items():
            for match in re.finditer(r"\$\{?([A-Za-z_]\w*)\}?", value if isinstance(value, str) else ""):
                if match[1] not in allowed and match[1] != "user_config":
                    yield handler.at(f"headers.{key}: ${match[1]} is not in allowedEnvVars and becomes nothing", "headers", key)
