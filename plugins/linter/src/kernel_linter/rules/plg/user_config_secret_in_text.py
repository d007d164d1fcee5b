"""A `sensitive` option is referenced in skill, command or agent text.

Why: Not substituted there; the model sees the token name.

Bad:

    Use ${user_config.api_token}

Good:

    read it in a script or MCP server
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import OPTION_TOKEN

CODE = "PLG043"
SEVERITY = "warning"
FIX = "none"
ON = "text"
SINCE = "0.1.0"


def check(text: TextFile) -> Iterator[Diagnostic]:
    options = text.plugin.options if text.plugin else {}
    for match in OPTION_TOKEN.finditer(text.text, text.front.body):
        if options.get(match[1], {}).get("sensitive") is True:
            yield text.at(
                f"{match[0]} is sensitive and is not put into text; read it in a script or in an MCP server", span=match.span()
            )
