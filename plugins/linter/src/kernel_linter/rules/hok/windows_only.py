"""A handler that only works in one shell (`cmd /c`, PowerShell syntax under bash, `.bat` in exec form).

Why: Fails elsewhere.

Bad:

    cmd /c x.bat

Good:

    node script
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.hooks_model import Handler
from kernel_linter.rule import Diagnostic

CODE = "HOK036"
SEVERITY = "info"
FIX = "none"
ON = "handler"
SINCE = "0.1.0"

POWERSHELL = re.compile(r"\$env:\w+|\b(?:Write-Host|Get-Content|Test-Path|Set-Location)\b|-ErrorAction\b")


def check(handler: Handler) -> Iterator[Diagnostic]:
    text = handler.command
    if re.match(r"\s*cmd(?:\.exe)?\s+/[ck]\b", text, re.IGNORECASE):
        yield handler.at("command: cmd exists on Windows only", "command")
    elif (
        handler.data.get("shell") != "powershell"
        and handler.shell_form
        and POWERSHELL.search(text)
        and not re.match(r"\s*(?:pwsh|powershell)", text)
    ):
        yield handler.at('command: is PowerShell, but the shell is bash; set "shell": "powershell"', "command")
    elif handler.args is not None and text.lower().endswith((".bat", ".cmd")):
        yield handler.at("command: a .bat or .cmd file cannot be started in the exec form and exists on Windows only", "command")
