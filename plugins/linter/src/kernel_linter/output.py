"""Reports: text, grouped, json, SARIF 2.1.0, GitHub annotations (lint contract, section 5)."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from typing import Any, TextIO

from kernel_linter.rule import Finding, Fix, Report, Severity

VERSION = "0.1.0"
DOCS = "docs/rules"
LEVEL = {"error": "error", "warning": "warning", "info": "note"}
COMMAND = {"error": "error", "warning": "warning", "info": "notice"}
COLOR = {"error": "31", "warning": "33", "info": "36"}
NEWEST = "2.1.240"


def render(report: Report, form: str, *, target: str = "", color: bool = False) -> str:
    if form == "json":
        return json.dumps(as_json(report, target), indent=1, ensure_ascii=False) + "\n"
    if form == "sarif":
        return json.dumps(as_sarif(report), indent=1, ensure_ascii=False) + "\n"
    if form == "github":
        return "".join(annotation(f) for f in report.findings)
    return grouped(report, color) if form == "grouped" else text(report, color)


def wants_color(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


# -- for people ----------------------------------------------------------------------------------------------------------
def line(finding: Finding, color: bool, where: bool = True) -> str:
    severity: str = finding.severity
    if color:
        severity = f"\033[{COLOR[severity]}m{severity}\033[0m"
    place = f"{finding.path}:{finding.line}:{finding.column}: " if where else f"  {finding.line}:{finding.column} "
    return clean(f"{place}{finding.code} ",
                 "") + severity + clean(f" {finding.message}") + (f" [{finding.fix.kind} fix]" if finding.fix else "")


def clean(text: str, strip: str = "\n") -> str:
    """Without control characters: what a stranger wrote cannot steer a terminal."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", "?", text)


def text(report: Report, color: bool = False) -> str:
    lines = [line(f, color) for f in report.findings]
    return "\n".join([*lines, summary(report)]) + "\n"


def summary(report: Report) -> str:
    counts = {s: report.count(s) for s in ("error", "warning", "info")}
    looked = f"{report.files} file(s)" + (f", {report.python} of them Python" if report.python else "")
    if not report.findings:
        return f"Validation passed: {looked}, nothing found"
    verdict = "failed" if counts["error"] else "passed with warnings" if counts["warning"] else "passed"
    fixable = sum(f.fix is not None for f in report.findings)
    said = ", ".join(f"{counts[s]} {s}(s)" for s in counts)
    return f"Validation {verdict}: {said} in {looked}" + (f"; {fixable} with a fix (--fix)" if fixable else "")


def grouped(report: Report, color: bool = False) -> str:
    out: list[str] = []
    plugins = Counter(f.plugin or "" for f in report.findings)
    for plugin in sorted(plugins):
        out.append(f"{clean(plugin) or '(no plugin)'}: {plugins[plugin]}")
        last = ""
        for finding in (f for f in report.findings if (f.plugin or "") == plugin):
            if finding.path != last:
                out.append(f" {clean(finding.path)}")
                last = finding.path
            out.append(line(finding, color, where=False))
    return "\n".join([*out, summary(report)]) + "\n"


def statistics(report: Report) -> str:
    counts = Counter((f.code, f.slug, f.severity) for f in report.findings)
    return "".join(f"{count:6} {code} {severity:<7} {slug}\n" for (code, slug, severity), count in counts.most_common())


# -- for programs --------------------------------------------------------------------------------------------------------
def page(code: str, slug: str) -> str:
    return f"{DOCS}/{code[:3].lower()}/{slug}.md"


def as_json(report: Report, target: str = "") -> dict[str, Any]:
    count: dict[Severity, int] = {s: report.count(s) for s in ("error", "warning", "info")}
    return {
        "version": 1, "tool": {"name": "kernel lint", "version": VERSION, "target": target or NEWEST},
        "summary": {"errors": count["error"], "warnings": count["warning"], "infos": count["info"],
                    "fixable": sum(f.fix is not None for f in report.findings), "files": report.files},
        "findings": [{"code": f.code, "slug": f.slug, "severity": f.severity, "message": f.message, "path": f.path,
                      "line": f.line,
                      "column": f.column, "endLine": f.end_line, "endColumn": f.end_column, "pointer": f.pointer,
                      "plugin": f.plugin,
                      "fix": _fix(f.fix), "docs": page(f.code, f.slug)} for f in report.findings]}


def _fix(fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    out: dict[str, Any] = {"class": fix.kind, "message": fix.message,
                           "edits": [{"path": e.file.shown, "start": e.start, "end": e.end, "text": e.text} for e in fix.edits]}
    if fix.executable:
        out["executable"] = list(fix.executable)
    if fix.moves:
        out["moves"] = [{"from": a, "to": b} for a, b in fix.moves]
    return out


def fingerprint(finding: Finding) -> str:
    """Stays when lines move: rule, file, place in the structure, value."""
    return hashlib.sha256("\0".join((finding.code, finding.path, finding.pointer,
                                     finding.value or finding.message)).encode()).hexdigest()[:32]


def as_sarif(report: Report) -> dict[str, Any]:
    used = sorted({f.code for f in report.findings})
    rules = [_sarif_rule(report.rules[code]) for code in used if code in report.rules]
    index = {rule["id"]: i for i, rule in enumerate(rules)}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "kernel lint", "version": VERSION, "rules": rules}}, "columnKind": "unicodeCodePoints",
            "results": [_sarif_result(f, index) for f in report.findings]}]}


def _sarif_rule(rule: Any) -> dict[str, Any]:
    first = rule.doc.partition("\n\n")[0]
    return {"id": rule.code, "name": rule.slug, "shortDescription": {"text": " ".join(first.split()) or rule.slug},
            "fullDescription": {"text": " ".join(first.split()) or rule.slug}, "help": {"text": rule.doc or rule.slug,
                                                                                        "markdown": rule.doc or rule.slug},
            "defaultConfiguration": {"level": LEVEL[rule.severity]}, "helpUri": page(rule.code, rule.slug)}


def _sarif_result(finding: Finding, index: dict[str, int]) -> dict[str, Any]:
    region = {"startLine": finding.line, "startColumn": finding.column, "endLine": finding.end_line,
              "endColumn": max(finding.end_column, finding.column if finding.end_line == finding.line else 1)}
    out: dict[str, Any] = {
        "ruleId": finding.code, "level": LEVEL[finding.severity], "message": {"text": finding.message},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(finding.path)}, "region": region}}],
        "partialFingerprints": {"kernelLint/v1": fingerprint(finding)}}
    if finding.code in index:
        out["ruleIndex"] = index[finding.code]
    return out


def _uri(path: str) -> str:
    from urllib.parse import quote

    text = quote(path, safe="/._-~()!*'@&=+$,;:")
    return f"file://{text}" if path.startswith("/") else text


def annotation(finding: Finding) -> str:
    def value(text: str) -> str:
        return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace(":", "%3A").replace(",", "%2C")

    message = finding.message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    place = f"file={value(finding.path)},line={finding.line},endLine={finding.end_line},col={finding.column}"
    return f"::{COMMAND[finding.severity]} {place},title={value(f'{finding.code} {finding.slug}')}::{message}\n"
