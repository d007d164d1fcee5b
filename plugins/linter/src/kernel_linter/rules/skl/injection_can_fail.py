"""(text) An injected command that often exits non-zero and has no `|| true` (linters, `test`, `which`, `diff`).

Why: A non-zero exit aborts the invocation.

Bad:

    !`npm run lint`

Good:

    !`npm run lint || true`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kernel_linter.markdown import TextFile
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "SKL045"
SEVERITY = "info"
FIX = "none"
ON = "skill command"
SINCE = "0.1.0"

FAILS = re.compile(
    r"^(?:(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:lint|test|typecheck|build|check)|npx\s+(?:eslint|tsc|jest|vitest)|eslint|tsc"
    r"|ruff\s+check|"
    r"flake8|mypy|pytest|test\s|\[\s|which\s|diff\s|cargo\s+(?:test|clippy|check)|go\s+(?:test|vet)|make\b|shellcheck)"
)


def check(text: TextFile) -> Iterator[Diagnostic]:
    for command, offset in text.injections:
        if "||" not in command and not re.search(r"\|\s*\w+|;\s*true\s*$", command) and FAILS.match(command.strip()):
            yield text.at(
                f"the injected command {shown(command)} often ends with an error, which aborts the invocation; add '|| true'",
                span=(offset, offset + len(command)),
            )
