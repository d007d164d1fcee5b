"""The kernel cannot use the manifest: `metadata.kernel` has an unknown key, hook or kind, or a value of the wrong form.

Why: The plugin is listed as broken, and what it guards is refused.

Bad:

    {"metadata": {"kernel": {"implement": ["stop"]}}}

Good:

    {"metadata": {"kernel": {"implements": ["stop"]}}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.rule import Diagnostic

CODE = "KRN007"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"

_CLAUSE = re.compile(r"\s*(?:>=|<=|==|!=|>|<)\s*\d+(?:\.\d+)*\s*")
_PLACE = re.compile(r"metadata\.kernel(?:\.\w+)*")


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    metadata = plugin.data.get("metadata")
    if plugin.manifest is None or not isinstance(metadata, dict) or "kernel" not in metadata:
        return
    from kernel import Plugin as Found, PluginSet

    found = Found.at(plugin.root, "inline", module="module")  # reads the manifest as a run does; nothing is imported
    if found.manifest is not None:
        found.manifest.kernel.dependencies = []  # whether they are here is no matter of the plugin's
    PluginSet([found])
    for text in (*found.errors, *(w for w in found.warnings if "metadata.kernel" in w)):
        said = text.partition("plugin.json, ")[2] or text.partition("plugin.json: ")[2] or text
        place = _PLACE.search(said)
        yield plugin.manifest.at(said, *(place[0].split(".") if place else ("metadata", "kernel")))
    part = metadata["kernel"]
    requires = part.get("requires") if isinstance(part, dict) else None
    if isinstance(requires, str) and not all(_CLAUSE.fullmatch(c) for c in requires.split(",") if c.strip()):
        yield plugin.manifest.at(f"metadata.kernel.requires: {requires[:80]!r} is no range such as '>=0.1,<1': no kernel fits it",
                                 "metadata", "kernel", "requires")
