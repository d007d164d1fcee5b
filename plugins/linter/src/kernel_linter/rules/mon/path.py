"""Unquoted root variable, or a script that is missing, in a monitor command.

Why: As HOK021, HOK024.

Bad:

    bash ${CLAUDE_PLUGIN_ROOT}/m.sh

Good:

    bash "${CLAUDE_PLUGIN_ROOT}"/m.sh
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_help import writes_to
from kernel_linter.rule import Diagnostic
from kernel_linter.servers import Monitor
from kernel_linter.shell import plugin_paths, quoted_roots

CODE = "MON004"
SEVERITY = "warning"
FIX = "safe"
ON = "monitor"
SINCE = "0.1.0"


def check(monitor: Monitor) -> Iterator[Diagnostic]:
    found = quoted_roots(monitor.command)
    if found:
        first, text = found
        yield monitor.at(
            f"command: {first} is not quoted: it breaks for every path with a space",
            "command",
            fix=monitor.file.set_value(text, *monitor.path, "command", message="quote it"),
        )
    for path, _ in plugin_paths(monitor.command) if monitor.plugin else ():
        if monitor.plugin and not monitor.plugin.exists(path) and not writes_to(monitor.command, path):
            yield monitor.at(f"command: there is no {path} in the plugin", "command", about=path)
