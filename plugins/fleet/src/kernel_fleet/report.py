"""The results as a table and as a page. The page is one file: no script, no font, nothing from elsewhere."""

from __future__ import annotations

import csv
import html
import io
import time
from pathlib import Path
from typing import Any

from kernel_fleet import pictures
from kernel_fleet.journal import Record, RunFolder, replace, row
from kernel_fleet.progress import counts, told_of

COLUMNS = tuple("id status why subtype terminal_reason attempts session_id turns tool_calls refused_calls run_ms wall_ms "
                "around_ms cost_usd input_tokens output_tokens patch_bytes transcript patch result".split())
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write(folder: RunFolder) -> list[Path]:
    """``results.csv`` and ``report.html``, whole or as they were."""
    made = {"results.csv": table(list(folder.records.values())), "report.html": page(folder)}
    for name, text in made.items():
        replace(folder.path / name, text.encode("utf-8", "replace"))
    return [folder.path / name for name in made]


def table(records: list[Record]) -> str:
    """CSV in the order of the tasks. A text that a spreadsheet would take for a formula begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for record in records:
        item = row(record)
        writer.writerow([_plain(item[name]) for name in COLUMNS])
    return out.getvalue()


def _plain(value: Any) -> Any:
    return "'" + value if isinstance(value, str) and value.lstrip(" ").startswith(FORMULA) else value


STYLE = """
:root { color-scheme: light dark; --fg: #1a1c1f; --dim: #5c636b; --bg: #fff; --line: #d9dde1; --mark: #2563a8; --done: #2f7d4f;
  --failed: #b3372d; --rejected: #a05a00; --timeout: #7a4fb0; --crashed: #b3377f; --again: #a8adb3; --stopped: #a8adb3;
  --unfinished: #a8adb3; --waiting: #c9ced3; }
@media (prefers-color-scheme: dark) {
  :root { --fg: #e6e8ea; --dim: #9aa2ab; --bg: #16181b; --line: #343a41; --mark: #7fb2ec; --done: #5fbf86; --failed: #ee7e74;
    --rejected: #e0a552; --timeout: #b998e6; --crashed: #e884bf; --again: #6b737b; --stopped: #6b737b; --unfinished: #6b737b;
    --waiting: #4a5057; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--fg); background: var(--bg); max-width: 72rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
dl { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 1rem 0; } dt { color: var(--dim); font-size: .85rem; }
dd { margin: 0; font-size: 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td.text { max-width: 32rem; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; } svg text { fill: var(--dim); font-size: 11px; }
a { color: var(--mark); } .scroll { overflow-x: auto; } .s { white-space: nowrap; } .s::before { content: "■ "; }
"""
MOST_ROWS = 5000


def page(folder: RunFolder) -> str:
    records = list(folder.records.values())
    found = counts(records)
    overs = [(record, over) for record in records for over in record.over]
    facts = [("tasks", f"{len(records)}"), ("done", f"{found['done']} ({found['done'] / max(1, len(records)):.0%})"),
             ("attempts", f"{sum(len(r.begun) for r in records)}"),
             ("time of the runs", pictures.span(sum(o.run_ms for _, o in overs))),
             ("cost", f"${sum(r.cost_usd for r in records):.4f}"),
             ("tokens", f"{sum(o.input_tokens for _, o in overs):,} in, {sum(o.output_tokens for _, o in overs):,} out"),
             ("tool calls", f"{sum(o.tool_calls for _, o in overs):,}"),
             ("refused calls", f"{sum(o.refused for _, o in overs):,}")]
    e = html.escape
    shown = records[:MOST_ROWS]
    return "\n".join([
        "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>Fleet: {e(Path(folder.about.tasks_file).name)}</title><style>{STYLE}",
        *(f'.{s} {{ fill: var(--{s}); }} .s.{s}::before {{ color: var(--{s}); }}' for s in pictures.STATUSES),
        "</style></head><body>",
        f"<h1>Fleet: {e(Path(folder.about.tasks_file).name)}</h1>",
        f"<p>{e(told_of(found))}. Begun {time.strftime('%Y-%m-%d %H:%M', time.localtime(folder.about.created))}.</p>",
        "<dl>", *(f"<div><dt>{e(name)}</dt><dd>{e(value)}</dd></div>" for name, value in facts), "</dl>",
        "<h2>Who ran what, and when</h2>", pictures.lanes(records),
        "<h2>How long tasks took</h2>", pictures.durations(records),
        "<h2>Tasks</h2>", '<div class="scroll"><table><thead><tr><th>task</th><th>status</th>',
        *(f'<th class="n">{name}</th>' for name in ("attempts", "turns", "calls", "time", "cost")),
        "<th>files</th><th>result</th></tr></thead><tbody>",
        *(_row(row(record)) for record in shown), "</tbody></table></div>",
        f"<p>{len(records) - len(shown)} more are in results.csv.</p>" if len(records) > len(shown) else "",
        "</body></html>"])


def _row(item: dict[str, Any]) -> str:
    e = html.escape
    files = (("transcript", "messages"), ("patch", "changes"))
    links = " ".join(f'<a href="{e(item[name])}">{label}</a>' for name, label in files if item[name])
    text = item["why"] or item["result"]
    numbers = (item["attempts"], item["turns"], item["tool_calls"], pictures.span(item["run_ms"]), f"${item['cost_usd']:.4f}")
    return (f'<tr><td>{e(item["id"])}</td><td class="s {e(item["status"])}">{e(item["status"])}</td>'
            + "".join(f'<td class="n">{number}</td>' for number in numbers)
            + f'<td>{links}</td><td class="text">{e(text[:300])}{"…" if len(text) > 300 else ""}</td></tr>')
