"""`${CLAUDE_PLUGIN_ROOT}/…` in a command or `args` names a file that is not in the plugin (build outputs excepted by
`ignore-paths`).

Why: The hook fails on every event, often unseen.

Bad:

    ${CLAUDE_PLUGIN_ROOT}/hooks/chek.sh

Good:

    …/check.sh
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_help import writes_to
from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic
from kernel_linter.shell import plugin_paths

CODE = "HOK021"
SEVERITY = "error"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"


def check(handler: Handler) -> Iterator[Diagnostic]:
    plugin = handler.plugin
    if plugin and handler.type == "command":
        for key, value in ((("command",), handler.command), *((("args", i), a) for i, a in enumerate(handler.args or ()))):
            for path, _ in plugin_paths(value):
                if (
                    not plugin.exists(path)
                    and not re.search(r"(?:^|/)(?:node_modules|\.venv|venv)(?:/|$)", path)
                    and not writes_to(value, path)
                ):
                    yield handler.at(f"{'.'.join(map(str, key))}: there is no {path} in the plugin", *key, about=path)
