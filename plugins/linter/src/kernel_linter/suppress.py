"""Suppression in Markdown: ``<!-- kernel-lint: ignore=SKL036 -- the reason -->`` (lint contract, section 4).

Alone on a line it covers the next block (up to an empty line); ``ignore-file=`` covers the file. One that suppresses nothing
is reported, and one without a reason too.
"""

from __future__ import annotations

import re

from msgspec import Struct

from kernel_linter.config import Config, Selection, matches
from kernel_linter.rule import Finding, Rule
from kernel_linter.source import File

_COMMENT = re.compile(r"^[ \t]*<!--\s*kernel-lint:\s*(ignore|ignore-file)\s*=\s*([\w/,\s-]*?)(?:\s+--\s+(.*?)|\s+(?:reason"
                      r"|because)[:=]?\s*(.*?))?\s*-->[ \t]*\r?$",
                      re.MULTILINE)


class Suppression(Struct):
    line: int
    start: int
    end: int
    first: int
    last: int
    words: list[str]
    reason: str
    offset: int
    used: bool = False


def read(file: File) -> list[Suppression]:
    if not file.shown.lower().endswith(".md") or "kernel-lint:" not in file.text:
        return []
    out = []
    for match in _COMMENT.finditer(file.text):
        line, _ = file.position(match.start())
        first, last = (1, 10**9) if match[1] == "ignore-file" else _block(file, line)
        words = [w for w in re.split(r"[,\s]+", match[2]) if w]
        out.append(Suppression(line, match.start(), match.end(), first, last, words, (match[3] or match[4] or "").strip(),
                               match.start()))
    return out


def _block(file: File, line: int) -> tuple[int, int]:
    lines = file.text.split("\n")
    at = line
    while at < len(lines) and not lines[at].strip():
        at += 1
    end = at
    while end < len(lines) and lines[end].strip():
        end += 1
    return at + 1, end


def apply(findings: list[Finding], files: dict[str, File], config: Config, chosen: Selection) -> list[Finding]:
    """The findings that are left, with those about the comments themselves."""
    from kernel_linter.ruleset import of_prefix

    own = {rule.code: rule for rule in of_prefix("lnt")}
    known = {name: found for name, file in files.items() if (found := read(file))}
    kept = []
    for finding in findings:
        for one in known.get(finding.path, ()):
            if one.first <= finding.line <= one.last and any(matches(w, _as_rule(finding)) for w in one.words):
                one.used = True
                break
        else:
            kept.append(finding)
    for path, suppressions in known.items():
        for one in suppressions:
            named = ", ".join(one.words)
            for code, wrong, text in (("LNT004", not one.used, f"the comment suppresses nothing: {named}; remove it"),
                                      ("LNT005", not one.reason, f"the comment gives no reason: write ignore={named} -- why")):
                severity = chosen.severity(own[code], None, path) if wrong else None
                if severity:
                    file = files[path]
                    end_line, end_column = file.position(one.end)
                    kept.append(Finding(code, own[code].slug, severity, text, path, one.line, 1, end_line, end_column, "",
                                        file.plugin.name
                                        if file.plugin else None))
    return kept


def _as_rule(finding: Finding) -> Rule:
    return Rule(finding.code, finding.slug, finding.severity, "", lambda _: iter(()))
