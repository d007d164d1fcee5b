"""``python -m benchmarks.people``: what a start costs more with much that people wrote: skills, agents, rules, instructions, git.

The real command from its start to the first byte of its first request. The cases take turns within one run, so that a busy
machine slows all of them; the difference of the fastest runs is what counts. Shown beside it are the median of the
differences and the processor time of the least busy run, which says more on a machine that does other things as well. The
listing of skills is compared with its budget.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.__main__ import environment
from benchmarks.server import model_server

BOUND_MS = 100.0
SKILLS, AGENTS, RULES, FOLDERS = 300, 60, 60, 20


class Case(NamedTuple):
    """``against``: the case that it is compared with; ``bound``: milliseconds it may take more, if that is limited."""

    name: str
    plant: Callable[[Path], None]
    arguments: tuple[str, ...] = ()
    against: str = ""
    bound: float | None = None


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, "utf-8")


def nothing(root: Path) -> None:
    """An empty folder."""


def skills_and_agents(root: Path) -> None:
    about = "does something of its own to a certain kind of file, in this and in no other way, and says what it did " * 2
    for n in range(SKILLS):
        write(root, f".claude/skills/skill-{n:03}/SKILL.md",
              f"---\nname: skill-{n:03}\ndescription: Number {n} {about}\n---\n# Steps\n" + "step\n" * 60)
    for n in range(AGENTS):
        write(root, f".claude/agents/agent-{n:02}.md",
              f"---\nname: agent-{n:02}\ndescription: Agent {n} {about}\ntools: Read, Grep\n---\n" + "line\n" * 60)


def instructions(root: Path) -> None:
    write(root, "CLAUDE.md", "# Project\n" + "A line of instructions that a person wrote.\n" * 200 + "@docs/a.md\n")
    write(root, "docs/a.md", "Imported line.\n" * 50)
    for n in range(RULES):
        write(root, f".claude/rules/rule-{n:02}.md", f"---\npaths: 'part{n}/**/*.{{ts,tsx}}'\n---\nRule {n}.\n")


def repository(root: Path) -> None:
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com"]
    for n in range(1_000):
        write(root, f"part{n % FOLDERS}/file{n}.txt", f"{n}\n")
    for args in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *args], cwd=root, check=True)


def everything(root: Path) -> None:
    repository(root)
    skills_and_agents(root)
    instructions(root)


WITHOUT = ("--block", "memory", "--block", "output-styles")
CASES = (
    Case("an empty folder", nothing),
    Case(f"{SKILLS} skills and {AGENTS} agents", skills_and_agents, against="an empty folder", bound=BOUND_MS),
    Case(f"a long CLAUDE.md and {RULES} rules", instructions, against="an empty folder"),
    Case("a repository of 1,000 files", repository, against="an empty folder"),
    Case("all of it", everything, against="an empty folder"),
    Case("an empty folder, without memory and output-styles", nothing, WITHOUT))


class Start(NamedTuple):
    """``ms`` to the first request; ``cpu``: milliseconds of processor time of the whole run with its children."""

    ms: float
    cpu: float
    size: int


def start(case: Case, root: Path, home: str) -> Start:
    with model_server(0, 1) as server:
        command = [sys.executable, "-m", "kernel", "-p", "go", "--no-session-persistence", *case.arguments]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.monotonic()
        done = subprocess.run(command, cwd=root, env=environment(server.url, home), capture_output=True, text=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            sys.exit(f"{case.name} failed ({done.returncode}):\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        times = server.times()
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Start((times.first_byte[0] - began) * 1000, cpu * 1000, times.sizes[0])


def listing(root: Path, home: str) -> dict[str, Any]:
    """The parts of a first request that list skills and agents, as ``kernel context show`` sees them."""
    command = [sys.executable, "-m", "kernel", "context", "show", "--json"]
    shown = json.loads(subprocess.run(command, cwd=root, env=environment("http://127.0.0.1:9", home), capture_output=True,
                                      check=True).stdout)
    sizes = {p["source"]: p["characters"] for p in shown["parts"] if p["group"] == "first message"}
    return {"window": shown["window"], "skills": sizes["skills"], "agents": sizes["subagents"]}


def measure(runs: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        home = f"{folder}/home"
        Path(home).mkdir()
        roots: dict[str, Path] = {}
        for number, case in enumerate(CASES):
            roots[case.name] = Path(folder, str(number))
            roots[case.name].mkdir()
            case.plant(roots[case.name])
            start(case, roots[case.name], home)
        taken: dict[str, list[Start]] = {case.name: [] for case in CASES}
        for _ in range(runs):
            for case in CASES:
                taken[case.name].append(start(case, roots[case.name], home))
            print(".", end="", file=sys.stderr, flush=True)
        told = listing(roots[CASES[1].name], home)
    rows = []
    for case in CASES:
        mine, used = [s.ms for s in taken[case.name]], min(s.cpu for s in taken[case.name])
        row: dict[str, Any] = {"what": case.name, "runs": runs, "fastest": round(min(mine), 1), "median": round(median(mine), 1),
                               "cpu": round(used, 1), "bytes": taken[case.name][-1].size}
        if case.against:
            other = [s.ms for s in taken[case.against]]
            row["moreCpu"] = round(used - min(s.cpu for s in taken[case.against]), 1)
            row["more"] = round(min(mine) - min(other), 1)
            row["moreByMedian"] = round(median(a - b for a, b in zip(mine, other, strict=True)), 1)
            row["within"] = case.bound is None or row["more"] <= case.bound
        rows.append(row)
    return rows, told


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.people", description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows, told = measure(options.runs)
    print(file=sys.stderr)
    if options.json:
        print(json.dumps({"rows": rows, "listing": told}, indent=1))
        return
    for r in rows:
        more = f"{r['more']:+8.1f} ms (median {r['moreByMedian']:+.1f}, processor {r['moreCpu']:+.1f})" if "more" in r else ""
        print(f"{r['what']:<50} fastest {r['fastest']:>7.1f} ms  median {r['median']:>7.1f}  processor {r['cpu']:>7.1f}  {more}")
    budget = int(told["window"] * 4 * 0.01)
    print(f"listing of {SKILLS} skills: {told['skills']:,} of {budget:,} characters; of {AGENTS} agents: {told['agents']:,}")
    held = "held" if rows[1]["within"] else "MISSED"
    print(f"bound: at most {BOUND_MS:g} ms more for {CASES[1].name}: {held} (n={options.runs})")


if __name__ == "__main__":
    main()
