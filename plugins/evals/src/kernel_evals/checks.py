"""What must hold behind a run. Pure functions: a check and what was played -> nothing, or why it does not hold."""

from __future__ import annotations

import re
from typing import Any

from kernel_evals.calls import Call, asked, calls, matches, requests, results
from kernel_evals.measures import Point
from kernel_evals.play import Played
from kernel_evals.suite import CallCheck, Check, FileCheck, MeasureCheck, RequestCheck, ResultCheck

CITED = re.compile(r"\[(ev_\d+)\]")


def why_not(check: Check, played: Played, points: list[Point]) -> str:
    """Empty where it holds."""
    if check.file is not None:
        return _file(check.file, played)
    if check.call is not None:
        return _call(check.call, played)
    if check.request is not None:
        return _request(check.request, played)
    if check.result is not None:
        return _result(check.result, played)
    if check.measure is not None:
        return _measure(check.measure, points)
    if check.probe is not None:
        return _probe(check.probe, played)
    return _citations(played)


def _texts(text: str, contains: str | None, lacks: str | None, what: str) -> str:
    if contains is not None and contains not in text:
        return f"{what} does not hold {contains!r}"
    return f"{what} holds {lacks!r}" if lacks is not None and lacks in text else ""


def _file(check: FileCheck, played: Played) -> str:
    text = played.after.get(check.path)
    if check.absent:
        return "" if text is None else f"{check.path} exists"
    if check.unchanged:
        return "" if text == played.before.get(check.path) else f"{check.path} has changed"
    if text is None:
        return f"{check.path} does not exist"
    if check.equals is not None and text != check.equals:
        return f"{check.path} is {text[:200]!r}, expected {check.equals[:200]!r}"
    return _texts(text, check.contains, check.lacks, check.path)


def _call(check: CallCheck, played: Played) -> str:
    found = [call for call in calls(played) if matches(call, check.tool, check.input)]
    what = f"{check.tool} with {check.input!r}" if check.input else check.tool
    if check.outcome == "never":
        return f"{what} was asked for {len(found)} times" if found else ""
    if not found:
        return f"{what} was never asked for"
    if check.outcome == "refused":
        ran = [call for call in found if not call.refused]
        return f"{what} was not refused: {ran[0].status}" if ran else ""
    if check.outcome == "made":
        return "" if any(call.run and not call.failed for call in found) else f"{what} did not go well: {_told(found)}"
    return "" if any((call.failed or call.run is None) and call.error and not call.refused for call in found) \
        else f"the model was told of no failure of {what}: {_told(found)}"


def _told(found: list[Call]) -> str:
    return "; ".join(f"{call.status}: {(call.told or '')[:120]}" for call in found[:3])


def _request(check: RequestCheck, played: Played) -> str:
    every = [r for r in requests(played) if r.get("compacted") or not check.after_compaction]
    if not every:
        return "there is no such request"
    if check.number is not None:
        if not -len(every) <= check.number < len(every):
            return f"there are {len(every)} requests, none of them is number {check.number}"
        return _texts(asked(every[check.number]), check.contains, check.lacks, f"request {check.number}")
    if check.contains is not None and not any(check.contains in asked(r) for r in every):
        return f"no request holds {check.contains!r}"
    wrong = [n for n, r in enumerate(every) if check.lacks is not None and check.lacks in asked(r)]
    return f"request {wrong[0]} holds {check.lacks!r}" if wrong else ""


def _result(check: ResultCheck, played: Played) -> str:
    every = results(played)
    if not every:
        return f"there is no result; exit code {played.exit_code}: {played.stderr.strip()[-300:]}"
    last = every[-1]
    for name in ("subtype", "terminal_reason"):
        wanted = getattr(check, name)
        if wanted is not None and last.get(name) != wanted:
            return f"{name} is {last.get(name)!r}, expected {wanted!r}: {_said(last)[:200]}"
    if check.structured is not None and last.get("structured_output") != check.structured:
        return f"structured_output is {last.get('structured_output')!r}"
    return _texts(_said(last), check.contains, check.lacks, "the result")


def _said(result: dict[str, Any]) -> str:
    text = result.get("result")
    return text if isinstance(text, str) else "; ".join(map(str, result.get("errors") or ()))


def _measure(check: MeasureCheck, points: list[Point]) -> str:
    value = sum(p.value for p in points if p.name == check.name and all(p.attributes.get(k) == v for k, v in check.where.items()))
    if check.at_least is not None and value < check.at_least:
        return f"{check.name} {check.where or ''} is {value:g}, expected at least {check.at_least:g}"
    if check.at_most is not None and value > check.at_most:
        return f"{check.name} {check.where or ''} is {value:g}, expected at most {check.at_most:g}"
    return ""


def _probe(fact: str, played: Played) -> str:
    behind = [r for r in requests(played) if r.get("compacted")]
    if not behind:
        return "there was no compaction"
    lost = [n for n, r in enumerate(behind) if fact not in asked(r)]
    return f"{fact!r} is lost in request {lost[0] + 1} behind the compaction" if lost else ""


def _citations(played: Played) -> str:
    known = {id for line in played.trace for id in line.get("evidence") or ()}
    last = results(played)[-1:]
    cited = [id for result in last for id in CITED.findall(f"{_said(result)} {result.get('structured_output') or ''}")]
    if not results(played):
        return "there is no result"
    invented = [id for id in cited if id not in known]
    return f"{', '.join(invented)}: no tool of this run found that" if invented else ""
