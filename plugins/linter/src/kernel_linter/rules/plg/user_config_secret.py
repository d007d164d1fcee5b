"""An option whose key or title speaks of a token, key, secret or password is not `sensitive`.

Why: The value is stored in plain settings.

Bad:

    {"api_token": {"type": "string", …}}

Good:

    {"api_token": {"type": "string", "sensitive": true, …}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "PLG041"
SEVERITY = "warning"
FIX = "safe"
ON = "manifest entry"
SINCE = "0.1.0"

WORDS = frozenset(("token", "secret", "password", "passwd", "passphrase", "apikey", "credential", "credentials", "privatekey"))
BEFORE_KEY = frozenset(("api", "access", "private", "secret", "auth", "license", "signing", "encryption"))


def secret(text: str) -> bool:
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())
    return bool(WORDS & set(words)) or any(a in BEFORE_KEY and b == "key" for a, b in pairwise(words)) or words == ["key"]


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    options = target.object.get("userConfig")
    for key, option in options.items() if isinstance(options, dict) else ():
        if (
            isinstance(option, dict)
            and option.get("type") == "string"
            and option.get("sensitive") is not True
            and (secret(key) or secret(str(option.get("title", ""))))
        ):
            fix = (
                target.add_member("sensitive", True, "userConfig", key, message="mark it sensitive")
                if "sensitive" not in option
                else target.set_value(True, "userConfig", key, "sensitive", message="mark it sensitive")
            )
            yield target.at(
                f"userConfig.{key}: speaks of a secret but is not sensitive: its value is stored in plain settings",
                "userConfig",
                key,
                fix=fix,
            )
