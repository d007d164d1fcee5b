"""``kernel memory``: which instruction files a session here has, and whether imports from elsewhere are allowed."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

USAGE = """usage: kernel memory list [--json]
       kernel memory approve [--revoke]

list      the instruction files that a session in this folder begins with, rules that wait for a file, what was skipped and why
approve   let instructions of this project import files from outside the working directory; --revoke takes that back
"""


class MemoryCommand:
    name = "memory"
    summary = "list instruction files and what is wrong with them; approve imports from outside the project"

    def run(self, args: list[str]) -> int:
        import argparse

        parser = argparse.ArgumentParser("kernel memory", usage=USAGE)
        parser.add_argument("what", choices=("list", "approve"))
        parser.add_argument("--json", action="store_true")
        parser.add_argument("--revoke", action="store_true")
        try:
            given = parser.parse_args(args or ["list"])
        except SystemExit as error:
            return int(error.code or 0)
        return _approve(given.revoke) if given.what == "approve" else _list(given.json)


def _approve(revoke: bool) -> int:
    from kernel import Options
    from kernel_memory import approval

    project = Options().cwd
    path = approval.approve(project, not revoke)
    print(f"imports from outside are {'refused' if revoke else 'allowed'} for {approval.key(project)} ({path})")
    return 0


def _list(as_json: bool) -> int:
    from kernel import Harness, Options
    from kernel_memory.loader import Loader

    harness = Harness(Options())
    place: Any = SimpleNamespace(options=harness.options, settings=harness.settings, project_root=str(harness.options.cwd))
    loader = Loader(place)
    files = loader.start()
    rows = [{"path": i.path, "kind": i.kind, "reason": i.reason, "importedBy": i.parent or None, "characters": len(i.text)}
            for i in files]
    waiting = [{"path": r.path, "kind": r.kind, "paths": list(r.globs)} for r in loader.waiting]
    if as_json:
        print(json.dumps({"files": rows, "waiting": waiting, "problems": list(loader.problems),
                          "remarks": list(loader.remarks)}, indent=1))
    else:
        for row in rows:
            print(f"{row['kind']:<7}  {row['characters']:>9,} characters  {row['path']}")
        for rule in waiting:
            print(f"{rule['kind']:<7}  waits for {', '.join(rule['paths'])}  {rule['path']}")
        for problem in [*loader.problems, *loader.remarks]:
            print(problem, file=sys.stderr)
    return 1 if loader.problems else 0
