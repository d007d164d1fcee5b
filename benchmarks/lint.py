"""``python -m benchmarks.lint [FOLDER ...]``: what a verdict costs, as a multiple of reading and parsing the same files.

Without folders a catalogue of 100 plugins is made. Processor time, best of ``RUNS``; the yardstick is plain JSON and YAML
loading of every file that is read, in the same process.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import yaml
from kernel_linter.ruleset import everything
from kernel_linter.runner import lint

RUNS = 3
LIMIT_MS = 150
SKILL = (
    "---\nname: {name}\ndescription: Formats SQL files of kind {name}. Use when one is edited\n"
    "allowed-tools: Read, Bash(git *)\n---\n"
    + ("# Steps\n\nRead [the guide](guide.md), then run `sql fmt` on $ARGUMENTS.\n\n```bash\nls -l\n```\n" * 20)
)
HOOKS = {
    "hooks": {
        "PostToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": 'bash "${CLAUDE_PLUGIN_ROOT}"/x.sh'}]}]
    }
}


def catalogue(root: Path, count: int = 100) -> Path:
    entries = [{"name": f"plugin-{i}", "source": f"./plugins/plugin-{i}", "description": "Formats SQL"} for i in range(count)]
    write(
        root / ".claude-plugin" / "marketplace.json",
        {"name": "many", "owner": {"name": "A"}, "description": "d", "plugins": entries},
    )
    for i in range(count):
        home = root / "plugins" / f"plugin-{i}"
        write(
            home / ".claude-plugin" / "plugin.json",
            {"name": f"plugin-{i}", "version": "1.0.0", "description": "d", "author": {"name": "A"}},
        )
        write(home / "hooks" / "hooks.json", HOOKS)
        write(home / "x.sh", "#!/bin/sh\n")
        for name in ("a", "b", "c"):
            write(home / "skills" / name / "SKILL.md", SKILL.format(name=name))
            write(home / "skills" / name / "guide.md", "x\n")
    return root


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")


def plain(folder: Path) -> None:
    """The yardstick: read every JSON file and the frontmatter of every Markdown file."""
    for path in folder.rglob("*.json"):
        json.loads(path.read_bytes().decode("utf-8-sig", "replace") or "null")
    for path in folder.rglob("*.md"):
        parts = path.read_bytes().decode("utf-8", "replace").split("---\n", 2)
        try:
            yaml.safe_load(parts[1] if len(parts) > 2 else "")
        except yaml.YAMLError:
            continue


def best(work: Callable[[Path], object], folder: Path) -> float:
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        work(folder)
        times.append(time.process_time() - start)
    return min(times)


def main(folders: list[Path]) -> int:
    start = time.process_time()
    everything()
    print(f"all rules imported: {(time.process_time() - start) * 1000:.0f} ms")
    rows = [(folder.name, best(lint, folder), best(plain, folder)) for folder in folders]
    for name, verdict, yardstick in rows:
        print(f"{name:<50} {verdict * 1000:7.0f} ms   {verdict / max(yardstick, 1e-6):5.1f} x plain loading")
    print(f"median {median(v for _, v, _ in rows) * 1000:.0f} ms, most {max(v for _, v, _ in rows) * 1000:.0f} ms")
    return 0 if len(rows) == 1 or max(v for _, v, _ in rows) * 1000 <= LIMIT_MS else 1


if __name__ == "__main__":
    given = [Path(a) for a in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(given or [catalogue(Path(temporary))]))
