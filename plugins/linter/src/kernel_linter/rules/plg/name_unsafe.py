r"""`name` contains `/`, `\`, `..`, `:`, `@`, a control character, or starts with `-` or `.`.

Why: The name becomes part of ids (`name@source`), of command names (`name:skill`) and of cache paths. The reference validator
only warns.

Bad:

    {"name": "../x"}

Good:

    {"name": "x"}
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.manifests import unsafe_name
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "PLG008"
SEVERITY = "error"
FIX = "none"
ON = "manifest"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    name = file.object.get("name")
    if isinstance(name, str) and (why := unsafe_name(name)):
        yield file.at(f"name: {shown(name)} {why}", "name")
