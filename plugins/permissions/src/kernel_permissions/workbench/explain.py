"""``kernel permissions explain``: one decision, with everything that led to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..rules import Rule
from ..shell import Parser
from .desk import Desk
from .files import place_of, shown
from .weigh import Weighing, parts


def explanation(tool: str, input: dict[str, Any], *, cwd: Path, mode: str | None = None,
                settings: str | None = None) -> dict[str, Any]:
    """The decision about a call under the rules of a folder, as plain data.

    :raises Unusable: there is no such tool, mode, folder or settings file.
    """
    desk = Desk(cwd, settings=settings, mode=mode)
    call = desk.call(desk.tool(tool), input)
    facts, parser = desk.facts, Parser()
    steps: list[str] = []
    decision = Weighing(call, facts, parser, steps.append)
    verdict = decision.run()
    report: dict[str, Any] = {
        "tool": call.tool.name, "input": call.input, "mode": call.mode, "cwd": call.cwd, "decision": verdict.behavior,
        "reason_type": verdict.reason_type, "reason": verdict.message, "rule": rule_row(decision.rule), "parts": [],
        "steps": steps, "suggestions": verdict.suggestions, "warnings": desk.warnings, "hooks_asked": False}
    if decision.judgement is not None and decision.judgement.opaque:
        report["not_understood"] = decision.judgement.opaque
    for part in parts(call, facts, parser):
        report["parts"].append({
            "text": part.text, "decision": part.verdict.behavior, "reason": part.verdict.message, "rule": rule_row(part.rule),
            "forms": {"allow": part.loose, "ask_and_deny": part.strict}})
    return report


def rule_row(rule: Rule | None) -> dict[str, Any] | None:
    """A rule with where it stands. Settings of the machine's owner are told to whoever can read their file."""
    if rule is None:
        return None
    place = place_of(rule)
    return {"text": rule.text, "list": rule.behavior, "scope": rule.source, "file": place.file, "line": place.line}


def rule_text(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    line = f":{row['line']}" if row["line"] else ""
    return f"{row['list']} {shown(row['text'])}  [{row['scope']}]  {shown(row['file'])}{line}"


def text(report: dict[str, Any]) -> str:
    """The report for people."""
    lines = [f"{report['decision'].upper()}  {report['tool']}  (mode {report['mode']})",
             f"  why:   {shown(report['reason'], 400)}"]
    if report["rule"]:
        lines.append(f"  rule:  {rule_text(report['rule'])}")
    if report["parts"]:
        lines += ["", "Parts" if len(report["parts"]) > 1 else "Part"]
        for part in report["parts"]:
            lines.append(f"  {part['decision']:<5}  {shown(part['text'])}")
            lines.append(f"         {rule_text(part['rule']) or shown(part['reason'], 300)}")
            loose, strict = part["forms"]["allow"], part["forms"]["ask_and_deny"]
            if len(loose) > 1:
                lines.append(f"         allow rules also see: {' | '.join(map(shown, loose[1:]))}")
            if more := [form for form in strict if form not in loose]:
                lines.append(f"         ask and deny rules also see: {' | '.join(map(shown, more))}")
    lines += ["", "Steps", *(f"  {shown(step, 300)}" for step in report["steps"])]
    if report["suggestions"]:
        rules = [f"{r['toolName']}({r['ruleContent']})" if "ruleContent" in r else r["toolName"]
                 for update in report["suggestions"] for r in update.get("rules", ())]
        lines += ["", f"To stop being asked: {shown(', '.join(rules))}"] if rules else []
    lines += ["", "These are the rules alone. In a run hooks are asked before them and may refuse or allow the call: "
                  f"kernel hooks test PreToolUse --tool {report['tool']}"]
    if report["warnings"]:
        lines += ["", *(f"warning: {shown(w, 400)}" for w in report["warnings"])]
    return "\n".join(lines)
