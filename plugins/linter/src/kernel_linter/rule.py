"""What a rule is and what it says: rules, diagnostics, fixes, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

if TYPE_CHECKING:
    from kernel_linter.source import File

Severity = Literal["error", "warning", "info"]
FixClass = Literal["safe", "unsafe"]


class Edit(Struct, frozen=True):
    """Replace the characters ``start`` to ``end`` of a file's text (byte-order mark counted) by ``text``."""

    file: File
    start: int
    end: int
    text: str


class Fix(Struct, frozen=True):
    """A repair: edits of texts, executable bits to set, files to rename. ``safe`` keeps the meaning."""

    kind: FixClass
    message: str
    edits: tuple[Edit, ...] = ()
    executable: tuple[str, ...] = ()
    moves: tuple[tuple[str, str], ...] = ()


class Diagnostic(Struct):
    """What a rule yields; made by ``at(...)`` of the file it speaks about. ``severity`` overrides the rule's own.

    ``about`` names the path or the tool that is missing, so that ``ignore-paths`` and ``known-tools`` can speak of it; ``host``
    is the first version of the host that takes the thing, so that the finding only counts for an older ``--target``.
    """

    file: File
    message: str
    start: int = 0
    end: int = 0
    pointer: str = ""
    severity: Severity | None = None
    fix: Fix | None = None
    about: str = ""
    host: str = ""


class Rule(Struct):
    """One rule; ``doc`` is its page of the documentation."""

    code: str
    slug: str
    severity: Severity
    on: str
    """One kind of target, or several, separated by spaces."""
    check: Callable[[Any], Iterator[Diagnostic]]
    doc: str = ""
    fix: Literal["safe", "unsafe", "none"] = "none"
    since: str = "0.1.0"
    profile: Literal["default", "spec"] = "default"
    plugin: str = "linter"

    @property
    def id(self) -> str:
        """``PLG/manifest-json``: usable wherever the code is."""
        return f"{self.code[:3]}/{self.slug}"


class Finding(Struct):
    """A diagnostic that is reported. Lines and columns count from 1; paths use ``/`` and are relative where they can be."""

    code: str
    slug: str
    severity: Severity
    message: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    pointer: str
    plugin: str | None
    fix: Fix | None = None
    value: str = ""


class Report(Struct):
    """Everything one run found. ``files`` were looked at, ``python`` of them modules."""

    findings: list[Finding] = field(default_factory=list)
    rules: dict[str, Rule] = field(default_factory=dict)
    files: int = 0
    python: int = 0

    def count(self, severity: Severity) -> int:
        return sum(f.severity == severity for f in self.findings)
