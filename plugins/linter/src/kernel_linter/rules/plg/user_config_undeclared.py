"""`${user_config.KEY}` is used but not declared (or declared and never used: info).

Why: The text stays literal or the server fails to start.

Bad:

    "--key=${user_config.tokn}"

Good:

    "--key=${user_config.token}"
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.bundle import Plugin
from kernel_linter.manifests import in_scripts, uses
from kernel_linter.rule import Diagnostic
from kernel_linter.words import OPTION_TOKEN

CODE = "PLG042"
SEVERITY = "error"
FIX = "none"
ON = "plugin"
SINCE = "0.1.0"


def check(plugin: Plugin) -> Iterator[Diagnostic]:
    used: set[str] = set()
    for place, text, say in uses(plugin):
        for match in OPTION_TOKEN.finditer(text):
            used.add(match[1])
            if match[1] not in plugin.options and (plugin.options or place == "config"):
                yield say(f"${{user_config.{match[1]}}} is not declared in userConfig")
    if plugin.options and plugin.manifest and (unused := set(plugin.options) - used - in_scripts(plugin)):
        for key in sorted(unused):
            yield plugin.manifest.at(f"userConfig.{key}: is declared and never used", "userConfig", key, severity="info")
