"""A workflow script without `export const meta` with `name`, or with `import(`.

Why: It does not load or run.

Bad:

    no meta

Good:

    export const meta = {name: "x", description: "…"}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.source import File

CODE = "WFL001"
SEVERITY = "error"
FIX = "none"
ON = "workflow"
SINCE = "0.1.0"

META = re.compile(r"export\s+const\s+meta\s*(?::\s*\w+\s*)?=\s*\{(.*?)\}", re.DOTALL)


def check(file: File) -> Iterator[Diagnostic]:
    if file.problem:
        return
    code = re.sub(r"(?m)(?<![:\"'`])//.*$|/\*.*?\*/", lambda m: " " * len(m[0]), file.text[:500_000])
    found = META.search(code)
    if not found:
        yield file.at("there is no 'export const meta = {name, description}'; the workflow does not load")
    elif not re.search(r"[\"']?\bname\b[\"']?\s*:", found[1]):
        yield file.at("meta has no name; the workflow does not load", span=found.span())
    if dynamic := re.search(r"(?<![\w.])import\s*\(", code):
        yield file.at("import() is refused in a workflow", span=dynamic.span())
