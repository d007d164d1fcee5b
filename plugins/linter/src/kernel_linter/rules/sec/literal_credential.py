"""A value that looks like a live token or password in any plugin file (known prefixes, high entropy in `env` or `headers` of
key-like names). Documentation samples such as the cloud vendor's `…EXAMPLE` keys are excluded.

Why: Published to every user.

Bad:

    "env": {"API_TOKEN": "a1b2c3…"}

Good:

    "env": {"API_TOKEN": "${user_config.api_token}"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.secrets import credentials, masked
from kernel_linter.source import File

CODE = "SEC001"
SEVERITY = "error"
FIX = "none"
ON = "file"
SINCE = "0.1.0"


def check(file: File) -> Iterator[Diagnostic]:
    if file.problem:
        return
    for start, end, what in credentials(file):
        yield file.at(
            f"looks like a live {what}: {masked(file.text[start:end])}; whoever installs the plugin can read it",
            span=(start, end),
        )
