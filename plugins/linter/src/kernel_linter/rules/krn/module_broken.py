"""The module of the entry point is not there, or is no Python.

Why: The plugin is broken from its first hook on.

Bad:

    plugin.py with `def stop(event`

Good:

    plugin.py that compiles
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.module_side import implements
from kernel_linter.python_side import distribution, parse, source_of
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "KRN008"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    project = distribution(plugin)
    for value in project.points.values() if project else ():
        name = value.split(":")[0]
        file = source_of(plugin, name)
        tree = parse(file) if file else None
        if file is not None and isinstance(tree, SyntaxError):
            at = file.line_start((tree.lineno or 1) - 1) + max((tree.offset or 1) - 1, 0)
            yield file.at(f"is no Python: {tree.msg}", span=(at, at + 1))
        elif file is None and implements(plugin) and not _elsewhere(plugin, name):
            yield plugin.file("pyproject.toml").at(
                f"the entry point names the module {shown(name)}, which is not there: expected src/{name.replace('.', '/')}.py")


def _elsewhere(plugin: Plugin, name: str) -> bool:
    """Whether a build back end might find the module in another folder."""
    path = name.replace(".", "/")
    return any(rel.endswith((f"{path}.py", f"{path}/__init__.py")) for rel in plugin.tree.files)
