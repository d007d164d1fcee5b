"""`name` is not lower-case letters, digits and single hyphens.

Why: Works locally, but catalogue sync services reject it and users mistype it.

Bad:

    {"name": "My_Plugin"}

Good:

    {"name": "my-plugin"}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.manifests import unsafe_name
from kernel_linter.rule import Diagnostic
from kernel_linter.source import JsonFile
from kernel_linter.words import KEBAB, shown

CODE = "PLG007"
SEVERITY = "warning"
FIX = "none"
ON = "manifest"
SINCE = "0.1.0"


def check(file: JsonFile) -> Iterator[Diagnostic]:
    name = file.object.get("name")
    if isinstance(name, str) and name.strip() and not KEBAB.match(name) and not re.search(r"\s", name) and not unsafe_name(name):
        yield file.at(f"name: {shown(name)} is not kebab-case: lower-case letters, digits and single hyphens", "name")
