"""``python -m benchmarks.searches``: Grep and Glob over a large tree beside ``rg`` itself with equal arguments.

Both sides search the same files (``--no-ignore`` for Glob, which does not respect ignore files either), in turns, so that a
busy machine slows both. A ratio is the median of ours by the median of ``rg``. The tools run as in a session: the real
permission policy, with two deny rules about reading, decides about every file that they name.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import anyio

from kernel import Layer, Settings, Tool, ToolContext
from kernel.testing import Kit

BOUND = 1.3
WORDS = "import class return value total order price stock cart user session token error handler result".split()


class Row(NamedTuple):
    what: str
    ours_ms: float
    rg_ms: float
    found: int

    @property
    def ratio(self) -> float:
        return self.ours_ms / self.rg_ms


def plant(root: Path, files: int) -> None:
    """A tree as of a large repository: 50 files a folder, three levels, a kilobyte or two of text each; every hundredth file
    holds the word that is searched for."""
    for number in range(files):
        folder = root / f"part{number // 2500}" / f"module{number // 250 % 10}" / f"unit{number // 50 % 5}"
        if number % 50 == 0:
            folder.mkdir(parents=True)
        lines = [f"{WORDS[(number + n) % len(WORDS)]} {WORDS[(number * n) % len(WORDS)]} = {number * n}"
                 for n in range(20 + number % 40)]
        if number % 100 == 7:
            lines[number % 20] = f"def needle_{number}(haystack):"
        (folder / f"file{number}.{('py', 'ts', 'md', 'go')[number % 4]}").write_text("\n".join(lines) + "\n", "utf-8")


def rg(program: str, root: Path, *arguments: str) -> float:
    began = time.perf_counter()
    subprocess.run([program, "--no-config", *arguments], cwd=root, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began


async def compare(tools: dict[str, Tool], context: ToolContext, root: Path, program: str, runs: int) -> list[Row]:
    listing = ["--files", "--hidden", "--no-ignore", "--sortr=modified"]
    searching = ["--hidden", "--no-require-git", "--sortr=modified"]
    cases: list[tuple[str, str, dict[str, Any], list[str], Callable[[Any], int]]] = [
        ("Grep, files with a rare word", "Grep", {"pattern": "needle_"}, [*searching, "-l", "needle_", "./"],
         lambda s: s["numFiles"]),
        ("Grep, lines, all of them", "Grep", {"pattern": "needle_", "output_mode": "content", "head_limit": 0},
         [*searching, "-n", "needle_", "./"], lambda s: s["numLines"]),
        ("Grep, counts in one type", "Grep", {"pattern": "total", "output_mode": "count", "type": "py"},
         [*searching, "-c", "-t", "py", "total", "./"], lambda s: s["numFiles"]),
        ("Grep, a word that is nowhere", "Grep", {"pattern": "nowhere_at_all"}, [*searching, "-l", "nowhere_at_all", "./"],
         lambda s: s["numFiles"]),
        ("Glob, one file by name", "Glob", {"pattern": "**/file4242.*"}, [*listing, "-g", "**/file4242.*"],
         lambda s: s["numFiles"]),
        ("Glob, a quarter of all files", "Glob", {"pattern": "**/*.py"}, [*listing, "-g", "**/*.py"],
         lambda s: s.get("totalMatches", s["numFiles"])),
        ("Glob, below one folder", "Glob", {"pattern": "part3/**/*.md"}, [*listing, "-g", "part3/**/*.md"],
         lambda s: s.get("totalMatches", s["numFiles"])),
    ]
    rows = []
    for what, name, input, arguments, count in cases:
        ours, theirs, found = [], [], 0
        for _ in range(runs):
            began = time.perf_counter()
            prepared = tools[name].prepare_input(dict(input), context)
            tools[name].validate_input(prepared, context)
            result = await tools[name].call(prepared, context)
            ours.append(time.perf_counter() - began)
            found = count(result.structured)
            theirs.append(rg(program, root, *arguments))
            print(".", end="", file=sys.stderr, flush=True)
        rows.append(Row(what, median(ours) * 1000, median(theirs) * 1000, found))
    return rows


def measure(files: int, runs: int) -> list[Row]:
    from kernel_tools_files.engines import find_rg
    from kernel_tools_files.toolset import file_tools

    program = find_rg()
    if program is None:
        sys.exit("ripgrep is missing: pip install ripgrep")
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve() / "tree"
        plant(root, files)
        tools = {t.name: t for t in file_tools()}
        kit = Kit(root, tools=list(tools.values()), installed=["permissions"])
        layer = Layer("project", "settings.json", {"permissions": {"deny": ["Read(./.env)", "Read(./secrets/**)"]}}, str(root))
        kit.harness.settings = Settings([layer], [], config_dir=Path(place) / "config", project_root=root, trusted=True)
        session = kit.open()
        session.toolbox.by_name.update(tools)
        return anyio.run(compare, tools, ToolContext(session, "call_1", "Grep"), root, program, runs)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.searches", description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = measure(options.files, options.runs)
    print(file=sys.stderr)
    if options.json:
        print(json.dumps([{**r._asdict(), "ratio": round(r.ratio, 2), "files": options.files, "n": options.runs}
                          for r in rows], indent=1))
    else:
        print(f"{options.files} files, medians of n = {options.runs} runs each, in turns; at most {BOUND} times rg")
        for r in rows:
            print(f"{r.what:<32} {r.ours_ms:8.1f} ms   rg {r.rg_ms:8.1f} ms   ratio {r.ratio:5.2f}   found {r.found}"
                  + ("" if r.ratio <= BOUND else "   OVER"))
    return 0 if all(r.ratio <= BOUND for r in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
