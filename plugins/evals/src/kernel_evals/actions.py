"""What each word behind ``kernel evals`` does. Results on stdout, progress on stderr; 0 green, 1 red, 2 wrong usage."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import msgspec
from typer import Argument, Option

from kernel import UsageError
from kernel_evals import measures
from kernel_evals.calls import one_line
from kernel_evals.play import Setup
from kernel_evals.suite import Suite, built_in, find, load

Json = Annotated[bool, Option("--json", help="JSON instead of a table")]
Suites = Annotated[list[str] | None, Argument(help="files, or names of suites that come along; default: all of those")]
Logs = Annotated[Path | None, Option(help="keep Inspect's logs in that folder; inspect view shows them")]
Cases = Annotated[int, Option(min=1, help="cases at a time")]
Block = Annotated[list[str] | None, Option(help="a plugin to leave out")]


def run_(suites: Suites = None, model: Annotated[str | None, Option(help="a real model instead of the scripts")] = None,
         harness: Annotated[str | None, Option(help="a harness file: run what it locks")] = None, block: Block = None,
         compare: Annotated[str | None, Option(help="a second harness file; the differences are shown")] = None,
         compare_block: Annotated[list[str] | None, Option(help="compare with the same set without that plugin")] = None,
         logs: Logs = None, at_a_time: Cases = 2, report: Annotated[Path | None, Option(help="write a page")] = None,
         json_: Json = False) -> int:
    chosen = _loaded(suites)
    first = Setup(name=_name(harness, block), model=model, harness=_file(harness), block=block or [])
    setups = [first]
    if compare or compare_block:
        second = [*(block or []), *(compare_block or [])]
        setups.append(Setup(name=_name(compare or harness, second), model=model, harness=_file(compare or harness), block=second))
    from kernel_evals.report import page, told

    found = _run([(suite, setup) for setup in setups for suite in chosen], logs, at_a_time)
    sides = [found[n * len(chosen):(n + 1) * len(chosen)] for n in range(len(setups))]
    if report is not None:
        report.write_text(page(chosen, sides), "utf-8")
    if json_:
        print(json.dumps({"sides": [_json(side) for side in sides]}, indent=1, ensure_ascii=False))
    else:
        print(told(sides))
    return 0 if all(item.ok for item in found) else 1


def prove_(suites: Suites = None, logs: Logs = None, at_a_time: Cases = 2, json_: Json = False) -> int:
    chosen = _loaded(suites)
    pairs = [(suite, Setup(name=fault.name if fault else "no fault", fault=fault))
             for suite in chosen for fault in (None, *suite.faults)]
    found = _run(pairs, logs, at_a_time)
    rows: list[dict[str, Any]] = []
    for (suite, setup), ran in zip(pairs, found, strict=True):
        wanted = setup.fault.breaks if setup.fault else []
        missed = [name for name in wanted if name not in ran.red]
        ok = not missed if setup.fault else ran.ok
        rows.append({"suite": suite.name, "fault": setup.name, "ok": ok, "red": ran.red, "missed": missed})
    if json_:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    for row in () if json_ else rows:
        said = "green" if not row["red"] else f"{len(row['red'])} red: {', '.join(row['red'])}"  # names, no text of a run
        print(f"{'ok  ' if row['ok'] else 'BAD '} {row['suite']:<22} {row['fault']:<22} {said}")
        for name in row["missed"]:
            print(f"     {name} did not turn red")
        if not row["ok"] and row["fault"] == "no fault":
            print("\n".join(f"     {name}: {one_line(why)}" for name, why in row["red"].items()))
    return 0 if all(row["ok"] for row in rows) else 1


def list_(json_: Json = False) -> int:
    found = [load(path) for path in built_in()]
    if json_:
        print(json.dumps([_row(suite) for suite in found], indent=1, ensure_ascii=False))
        return 0
    for suite in found:
        print(f"{suite.name:<22} {len(suite.cases)} cases, {len(suite.faults)} faults: {suite.description}")
        for case in suite.cases:
            print(f"  {case.id:<28} {case.description}")
    return 0


def check_(suites: Suites = None, schema: Annotated[bool, Option("--schema", help="print the JSON Schema of a suite")] = False,
           json_: Json = False) -> int:
    if schema:
        print(json.dumps(msgspec.json.schema(Suite), indent=1))
        return 0
    rows = []
    for name in suites or [str(path) for path in built_in()]:
        try:
            load(find(name))
            rows.append({"suite": name, "problem": ""})
        except UsageError as error:
            rows.append({"suite": name, "problem": str(error)})
    print(json.dumps(rows, indent=1) if json_ else "\n".join(r["problem"] or f"{r['suite']}: fits" for r in rows))
    return 1 if any(r["problem"] for r in rows) else 0


def _loaded(names: list[str] | None) -> list[Suite]:
    """The suites, each once."""
    return [load(find(name)) for name in dict.fromkeys(names or [str(path) for path in built_in()])]


def _run(pairs: list[tuple[Suite, Setup]], logs: Path | None, at_a_time: int) -> list[Any]:
    from kernel_evals import inspecting
    from kernel_evals.running import run

    _say_missing([suite for suite, setup in pairs if setup.harness is None])
    total = sum(len(suite.cases) for suite, _ in pairs)
    print(f"evals: {total} runs of {len({s.name for s, _ in pairs})} suites", file=sys.stderr, flush=True)
    played = 0

    def one_more() -> None:
        nonlocal played
        played += 1
        if played % 5 == 0:
            print(f"evals: {played} of {total}", file=sys.stderr, flush=True)

    inspecting.listeners[:] = [one_more]
    with redirect_stdout(sys.stderr):  # what an engine has to say is no result
        return run(pairs, logs=logs, at_a_time=at_a_time)


def _say_missing(suites: list[Suite]) -> None:
    """What a suite needs and the environment has not: its checks will be red for that reason alone."""
    from kernel import Harness, Options

    ready = {plugin.name for plugin in Harness(Options(prompt=None)).plugins.ready}
    for suite in {suite.name: suite for suite in suites}.values():
        missing = sorted(set(suite.needs) - ready)
        if missing:
            print(f"evals: {suite.name} needs {', '.join(missing)}: what is red may mean that it is not there", file=sys.stderr)


def _name(harness: str | None, block: list[str] | None) -> str:
    return (harness or "as installed") + (f" without {', '.join(block)}" if block else "")


def _file(harness: str | None) -> str | None:
    return str(Path(harness).resolve()) if harness else None


def _row(suite: Suite) -> dict[str, Any]:
    return {"name": suite.name, "description": suite.description, "measures": suite.measures,
            "cases": [{"id": c.id, "description": c.description} for c in suite.cases], "faults": [f.name for f in suite.faults]}


def _json(side: list[Any]) -> dict[str, Any]:
    every = [point for item in side for point in item.points]
    return {"setup": side[0].setup if side else "", "ok": all(item.ok for item in side),
            "suites": [{"suite": item.suite, "ok": item.ok, "log": item.log, "cases": [
                {"id": c.id, "ok": c.ok, "checks": c.checks, "answer": c.answer} for c in item.cases]} for item in side],
            "rates": measures.rates(every), "measures": measures.summary(every)}
