"""What looks like a secret."""

from __future__ import annotations

import re
from typing import Any

_SECRETS = {"a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
            "an access key": re.compile(r"\bAKIA[0-9A-Z]{16}\b")}


def secret_in(tool_input: dict[str, Any]) -> str | None:
    """The first kind of secret in the text that would be written."""
    text = str(tool_input.get("content", "")) + str(tool_input.get("new_string", ""))
    return next((name for name, pattern in _SECRETS.items() if pattern.search(text)), None)
