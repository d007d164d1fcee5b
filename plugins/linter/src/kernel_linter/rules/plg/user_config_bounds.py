"""`min`/`max` on a non-number, `multiple` on a non-string, `min` > `max`, or a `default` outside the bounds or of another type.

Why: The dialog cannot be satisfied.

Bad:

    {"type": "number", "min": 5, "max": 1}

Good:

    {"type": "number", "min": 1, "max": 5}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.catalogue import Entry
from kernel_linter.manifests import number
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "PLG040"
SEVERITY = "warning"
FIX = "none"
ON = "manifest entry"
SINCE = "0.1.0"


def check(target: JsonFile | Entry) -> Iterator[Diagnostic]:
    options = target.object.get("userConfig")
    for key, option in options.items() if isinstance(options, dict) else ():
        if not isinstance(option, dict):
            continue
        kind = option.get("type")
        for field, right in (("min", "number"), ("max", "number"), ("multiple", "string")):
            if field in option and kind != right:
                yield target.at(f"userConfig.{key}.{field}: has a meaning for type {right} only", "userConfig", key, field)
        low, high, default = option.get("min"), option.get("max"), option.get("default")
        if number(low) and number(high) and low > high:
            yield target.at(f"userConfig.{key}: min {low} is above max {high}", "userConfig", key, "min")
        if default is None:
            continue
        right_type = {"number": number(default), "boolean": isinstance(default, bool)}.get(
            str(kind), isinstance(default, str) or (bool(option.get("multiple")) and isinstance(default, list))
        )
        if not right_type:
            yield target.at(f"userConfig.{key}.default: {shown(default)} is not of type {kind}", "userConfig", key, "default")
        elif number(default) and ((number(low) and default < low) or (number(high) and default > high)):
            yield target.at(f"userConfig.{key}.default: {default} is outside its bounds", "userConfig", key, "default")
