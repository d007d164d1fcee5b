"""Guards of a settings file that is no valid JSON: its deny and ask rules are kept as far as they can be found.

The run goes on without the file (settings contract, 3.3), so what it allowed does not count. What it denied still does: a
comma too many must not open what was closed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kernel import Settings

Guard = Literal["deny", "ask"]
GUARDS: tuple[Guard, ...] = ("deny", "ask")
MAX_BYTES = 1 << 20
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\]}]')


def broken_files(settings: Settings) -> list[Path]:
    """Settings files that were set aside because they are no JSON, or hold hooks of a wrong shape."""
    loaded = {layer.path for layer in settings.layers}
    paths = dict.fromkeys(p.path for p in settings.problems if p.path not in loaded and p.path.endswith(".json"))
    return [Path(p) for p in paths if Path(p).name in ("settings.json", "settings.local.json")]


def guards(text: str, behavior: Guard) -> list[str]:
    """The strings in every list of that name, whatever stands between them."""
    found: list[str] = []
    for start in re.finditer(rf'"{behavior}"\s*:\s*\[', text):
        for token in _TOKEN.finditer(text, start.end()):
            if not _STRING.fullmatch(token[0]):
                break
            try:
                found.append(json.loads(token[0]))
            except ValueError:
                continue
    return list(dict.fromkeys(found))


def read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8-sig", "replace")
    except OSError:
        return ""
