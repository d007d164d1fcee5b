"""Values of frontmatter fields as skills read them (skills contract, 3.3). What does not fit is named and left out."""

from __future__ import annotations

import re
from typing import Any

from kernel import inert

TRUE = frozenset("true yes on 1".split())
FALSE = frozenset("false no off 0".split())
EFFORTS = ("low", "medium", "high", "xhigh", "max")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Also marks that turn the direction of writing, and what is no character."""


class Fields:
    """The fields of one file; ``problems`` collects what does not fit, each with the field's name."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields
        self.problems: list[str] = []

    def has(self, name: str) -> bool:
        return self._fields.get(name) is not None

    def text(self, name: str) -> str:
        """Text on one line or several; numbers and Booleans are spelt out, a list or map is dropped."""
        value = self._fields.get(name)
        if isinstance(value, list | dict):
            self.problems.append(f"{name}: must be text, it is a {'list' if isinstance(value, list) else 'map'}")
            return ""
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value).strip()

    def flag(self, name: str, default: bool) -> bool:
        value = self._fields.get(name)
        if value is None:
            return default
        word = str(value).strip().lower()
        if word in TRUE or word in FALSE:
            return word in TRUE
        self.problems.append(f"{name}: must be true or false, not {word[:40]!r}; {str(default).lower()} is used")
        return default

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        text = self.text(name)
        if text and text not in allowed:
            self.problems.append(f"{name}: must be one of {', '.join(allowed)}, not {text[:40]!r}")
            return ""
        return text

    def hint(self, name: str) -> str:
        """Text; a list, which is what unquoted brackets make, is written as it was meant."""
        value = self._fields.get(name)
        if isinstance(value, list):
            return " ".join(f"[{', '.join(map(str, v)) if isinstance(v, list) else v}]" for v in value)
        return self.text(name)

    def words(self, name: str) -> list[str]:
        """Text separated by white space, or a list of texts."""
        value = self._fields.get(name)
        if isinstance(value, list):
            return [str(v) for v in value if isinstance(v, str | int | float)]
        return self.text(name).split()

    def globs(self, name: str) -> list[str]:
        """Patterns separated by commas outside braces, or a list."""
        value = self._fields.get(name)
        if isinstance(value, list):
            return [v for v in value if isinstance(v, str) and v]
        return [p.strip() for p in split_outside(self.text(name), ",", "{", "}") if p.strip()]

    def rules(self, name: str) -> list[str]:
        """Tool rules: text split at spaces and commas outside parentheses, or a list of texts."""
        value = self._fields.get(name)
        if isinstance(value, list):
            good = [v.strip() for v in value if isinstance(v, str) and v.strip()]
            if len(good) != len(value):
                self.problems.append(f"{name}: must hold texts only; the other entries are dropped")
            return good
        return [r for r in split_outside(self.text(name), ", \t\n", "(", ")") if r]

    def map(self, name: str) -> dict[str, Any] | None:
        value = self._fields.get(name)
        if value is not None and not isinstance(value, dict):
            self.problems.append(f"{name}: must be a map")
        return value if isinstance(value, dict) else None


def split_outside(text: str, separators: str, opening: str, closing: str) -> list[str]:
    """Split at separators that stand outside brackets. A bracket that never closes holds the rest."""
    parts, part, depth = [], "", 0
    for char in text:
        depth += (char == opening) - (char == closing and depth > 0)
        if depth == 0 and char in separators:
            parts.append(part)
            part = ""
        else:
            part += char
    return [*parts, part]


def one_line(text: str) -> str:
    """Text of a stranger for a place of one line: no line ends, no control characters, nothing that ends a reminder."""
    return inert(" ".join(CONTROL.sub(" ", text).split()))
