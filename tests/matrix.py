"""Every plugin removed alone: ``python tests/matrix.py [--whole] [PLUGIN ...]``.

For each plugin an environment is made that holds everything but that plugin (links into this one: it takes a second), and the
tests that do not say that they need it are run there: the kernel's, with ``--whole`` those of all other plugins too. A test
file needs a plugin when it names it, its package, or something that it provides; tests of the whole set are left out. Exit code 1
where anything fails.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
ABOUT_THE_SET = re.compile(r"""requirements|default set|docs/generate|-m", "kernel|kernel\.cli|subprocess""")
"""Tests of the whole set, of its pages and of its command line in a process of its own: they need what the set has."""


def plugins() -> list[Path]:
    return sorted(p.parent.parent for p in ROOT.glob("plugins/*/.claude-plugin/plugin.json"))


def needs(plugin: Path) -> re.Pattern[str]:
    """What a test file holds that needs the plugin: its package, or in quotes its name or what it provides."""
    manifest = json.loads((plugin / ".claude-plugin" / "plugin.json").read_text("utf-8"))
    provided = [name for names in manifest["metadata"]["kernel"].get("provides", {}).values() for name in names]
    words = "|".join(re.escape(word) for word in {plugin.name, *provided})
    package = f"kernel_{plugin.name.replace('-', '_')}"
    return re.compile(rf"\b{package}\b|[\"'`]({words})[\"'`@:]|plugins/{re.escape(plugin.name)}\b")


def test_files(without: Path, *, whole: bool) -> list[Path]:
    """The test files that do not need the plugin."""
    pattern = needs(without)
    folders = [ROOT / "tests", *(p / "tests" for p in plugins() if p != without)] if whole else [ROOT / "tests"]
    found = [f for folder in folders for f in sorted(folder.glob("test_*.py"))]
    texts = {f: f.read_text("utf-8") for f in found}
    return [f for f, text in texts.items() if not pattern.search(text) and not ABOUT_THE_SET.search(text)]


def environment(without: Path, folder: Path) -> Path:
    """An interpreter that sees what this one sees, but for the plugin."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    here = Path(sysconfig.get_path("purelib"))
    (there,) = folder.glob("lib/python*/site-packages")
    gone = f"kernel_{without.name.replace('-', '_')}"
    for entry in here.iterdir():
        if not entry.name.startswith((f"{gone}-", f"_{gone}.", f"{gone}.", f"__editable__.{gone}")) and entry.name != gone:
            (there / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plugin", nargs="*")
    parser.add_argument("--whole", action="store_true", help="the other plugins' tests as well")
    parser.add_argument("-n", default="auto", help="processes of pytest-xdist")
    options = parser.parse_args()
    chosen = [p for p in plugins() if not options.plugin or p.name in options.plugin]
    failed = []
    for plugin in chosen:
        with tempfile.TemporaryDirectory() as folder:
            python = environment(plugin, Path(folder, "venv"))
            files = test_files(plugin, whole=options.whole)
            began = time.monotonic()
            pytest = [str(python), "-m", "pytest", "-q", "-n", options.n, f"--basetemp={folder}/tmp"]
            done = subprocess.run([*pytest, *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=False)
        last = done.stdout.strip().splitlines()[-1:] or [done.stderr.strip()[-300:]]
        print(f"without {plugin.name:<18} {len(files):>4} files  {last[0]}  {time.monotonic() - began:.0f} s", flush=True)
        if done.returncode:
            failed.append(plugin.name)
            print("\n".join(line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), flush=True)
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
