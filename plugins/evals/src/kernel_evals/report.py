"""What was found, for people: lines on a terminal, and a page that needs nothing from elsewhere."""

from __future__ import annotations

import html
from typing import Any

from kernel_evals import measures
from kernel_evals.calls import one_line
from kernel_evals.running import SuiteReport
from kernel_evals.suite import Suite

Side = list[SuiteReport]


def told(sides: list[Side]) -> str:
    """Cases with what does not hold, the shares, and with two sides what is different."""
    lines = []
    for side in sides:
        if len(sides) > 1:
            lines.append(f"== {side[0].setup}")
        for item in side:
            good = sum(case.ok for case in item.cases)
            lines.append(f"{'ok  ' if item.ok else 'RED '} {item.suite:<22} {good} of {len(item.cases)} cases")
            lines += [f"     {name}: {one_line(why)}" for name, why in item.red.items()]
        lines += [f"     {name}: {value:.1%}" for name, value in rates_of(side).items() if value is not None]
    if len(sides) > 1:
        found = differences(sides[0], sides[1])
        lines.append("== different" if found else "== no difference")
        lines += [f"     {what}: {one_line(a)} -> {one_line(b)}" for what, a, b in found]
    return "\n".join(lines)


def rates_of(side: Side) -> dict[str, float | None]:
    return measures.rates([point for item in side for point in item.points])


def differences(a: Side, b: Side) -> list[tuple[str, str, str]]:
    """Checks and shares that are not the same: what, on the one side, on the other."""
    found = []
    for one, other in zip(a, b, strict=True):
        for left, right in zip(one.cases, other.cases, strict=True):
            for name in left.checks:
                if bool(left.checks[name]) != bool(right.checks[name]):
                    found.append((f"{one.suite}, {left.id}: {name}", _holds(left.checks[name]), _holds(right.checks[name])))
    left_rates, right_rates = rates_of(a), rates_of(b)
    return found + [(name, _share(left_rates[name]), _share(right_rates[name])) for name in left_rates
                    if left_rates[name] != right_rates[name]]


def _holds(why: str) -> str:
    return f"red ({why})" if why else "holds"


def _share(value: float | None) -> str:
    return "nothing to share" if value is None else f"{value:.1%}"


STYLE = """
:root { color-scheme: light dark; --fg: #1a1c1f; --dim: #5c636b; --bg: #fff; --line: #d9dde1; --good: #2f7d4f; --bad: #b3372d; }
@media (prefers-color-scheme: dark) {
  :root { --fg: #e6e8ea; --dim: #9aa2ab; --bg: #16181b; --line: #343a41; --good: #5fbf86; --bad: #ee7e74; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg); max-width: 64rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
.good { color: var(--good); } .bad { color: var(--bad); } .dim { color: var(--dim); } .scroll { overflow-x: auto; }
"""


def page(suites: list[Suite], sides: list[Side]) -> str:
    e = html.escape
    names = [e(side[0].setup) for side in sides if side]
    out = ["<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
           '<meta name="viewport" content="width=device-width, initial-scale=1">',
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
           f"<title>Evaluations</title><style>{STYLE}</style></head><body><h1>Evaluations</h1>", f"<p>{' and '.join(names)}</p>"]
    for n, suite in enumerate(suites):
        out += [f'<h2>{e(suite.name)}</h2><p class="dim">{e(suite.description)}</p>', _head("case", "check", *names)]
        for m, case in enumerate(suite.cases):
            for check in case.checks:
                cells = [_cell(side[n].cases[m].checks[check.name]) for side in sides]
                out.append(f"<tr><td>{e(case.id)}</td><td>{e(check.name)}</td>{''.join(cells)}</tr>")
        out.append("</table></div>")
    rates = [rates_of(side) for side in sides]
    out += ["<h2>Shares</h2>", _head("measure", *names)]
    out += [f"<tr><td>{e(name)}</td>{''.join(f'<td>{_share(side[name])}</td>' for side in rates)}</tr>" for name in rates[0]]
    out.append("</table></div>")
    for name, side in zip(names, sides, strict=True):
        rows = measures.summary([point for item in side for point in item.points])
        out += [f"<h2>Measures: {name}</h2>", _head("metric", "attributes", "value"), *map(_measure, rows), "</table></div>"]
    return "\n".join([*out, "</body></html>"])


def _head(*names: str) -> str:
    """The beginning of a table; the names are HTML already."""
    return f"<div class=\"scroll\"><table><tr>{''.join(f'<th>{name}</th>' for name in names)}</tr>"


def _cell(why: str) -> str:
    return f'<td class="bad">✗ {html.escape(why)}</td>' if why else '<td class="good">✓ holds</td>'


def _measure(row: dict[str, Any]) -> str:
    values: dict[str, Any] = {k: row[k] for k in ("sum", "n", "median", "max") if k in row}
    rest = {k: v for k, v in row.items() if k not in (*values, "metric")}
    cells = (row["metric"], *(", ".join(f"{k} {v}" for k, v in facts.items()) for facts in (rest, values)))
    return f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
