"""An option lacks `type`, `title` or `description`, has an unknown `type`, or an unknown key (`enum`, `placeholder`).

Why: The manifest is rejected; the schema is closed.

Bad:

    {"type": "string", "title": "T"}

Good:

    {"type": "string", "title": "T", "description": "D"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.tables import USER_CONFIG, USER_CONFIG_TYPES
from kernel_linter.types import described, fits
from kernel_linter.words import shown

CODE = "PLG039"
SEVERITY = "error"
FIX = "none"
ON = "manifest entry"
SINCE = "0.1.0"


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    options = target.object.get("userConfig")
    for key, option in options.items() if isinstance(options, dict) else ():
        if not isinstance(option, dict):
            yield target.at(f"userConfig.{key}: must be an object", "userConfig", key)
            continue
        for field in ("type", "title", "description"):
            if not isinstance(option.get(field), str):
                yield target.at(
                    f"userConfig.{key}.{field}: required: text", "userConfig", key, *([field] if field in option else [])
                )
        if isinstance(option.get("type"), str) and option["type"] not in USER_CONFIG_TYPES:
            yield target.at(
                f"userConfig.{key}.type: {shown(option['type'])} is none of {', '.join(USER_CONFIG_TYPES)}",
                "userConfig",
                key,
                "type",
            )
        for field, value in option.items():
            if field not in USER_CONFIG:
                yield target.at(f"userConfig.{key}: unknown key {shown(field)}; the schema is closed", "userConfig", key, field)
            elif field not in ("type", "title", "description") and not fits(USER_CONFIG[field], value):
                yield target.at(
                    f"userConfig.{key}.{field}: expected {described(USER_CONFIG[field])}, found {shown(value)}",
                    "userConfig",
                    key,
                    field,
                )
