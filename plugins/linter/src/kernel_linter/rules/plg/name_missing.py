"""`name` is missing, empty, null or not a string. Fix: the directory name.

Why: The manifest is rejected.

Bad:

    {"version": "1.0.0"}

Good:

    {"name": "fmt", "version": "1.0.0"}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile

CODE = "PLG005"
SEVERITY = "error"
FIX = "unsafe"
ON = "manifest"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    if not isinstance(file.data, dict):
        return
    name = file.object.get("name")
    if not isinstance(name, str) or not name.strip():
        folder = re.sub(r"[^a-z0-9]+", "-", file.path.absolute().parent.parent.name.lower()).strip("-") or "my-plugin"
        message = f"write the name of the folder: {folder}"
        fix = (
            file.set_value(folder, "name", message=message, kind="unsafe")
            if "name" in file.object
            else file.add_member("name", folder, message=message, kind="unsafe")
        )
        yield file.at("name: required: a non-empty text", *(["name"] if "name" in file.object else []), fix=fix)
