"""`name` contains white space.

Why: The manifest is rejected; ids cannot be typed.

Bad:

    {"name": "My Plugin"}

Good:

    {"name": "my-plugin", "displayName": "My Plugin"}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import shown

CODE = "PLG006"
SEVERITY = "error"
FIX = "unsafe"
ON = "manifest"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    name = file.object.get("name")
    if isinstance(name, str) and name.strip() and re.search(r"\s", name):
        kebab = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        yield file.at(
            f"name: {shown(name)} contains white space; use kebab-case such as {kebab!r} and displayName for people",
            "name",
            fix=file.set_value(kebab, "name", message=f"write {kebab}", kind="unsafe") if kebab else None,
        )
