"""Start to green, as the README says it: a fresh environment, the ordinary tools, every kind.

The kinds share one environment, which is made once; each has the whole sequence of commands for itself. It takes about a minute
and a half, and needs an index with hatchling; without one it is skipped.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernel_scaffold.kinds import KINDS

ROOT = Path(__file__).parents[3]
FOLDERS = (".", "plugins/linter", "plugins/command-hooks", "plugins/skills")
NO_INDEX = re.compile("No matching distribution|Could not find a version|Connection|Temporary failure|timed out", re.IGNORECASE)


class Fresh:
    """A new environment in a folder. ``run`` runs a command in it as a person's shell would."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "ANTHROPIC", "KERNEL_", "PYTEST", "COV_"))}
        self.env = {**kept, "PATH": f"{self.bin}:{kept['PATH']}", "VIRTUAL_ENV": str(folder), "PYTHONDONTWRITEBYTECODE": "1",
                    "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.env.pop("PYTHONPATH", None)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)

    def run(self, cwd: Path, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(self.bin / command[0]), *command[1:]], cwd=cwd, env=self.env, capture_output=True, text=True,
                              timeout=300, check=False)


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    made = Fresh(tmp_path / "environment")
    made.env["HOME"] = str(tmp_path)
    done = made.run(tmp_path, "pip", "install", "-q", "hatchling", "editables")
    if done.returncode and NO_INDEX.search(done.stderr):
        pytest.skip(f"no index to install from: {done.stderr.strip().splitlines()[-1]}")
    # The project itself is installed the quick way; the new plugins below are not. The scaffold is a wheel, templates included.
    folders = [part for name in FOLDERS for part in ("-e", str(ROOT / name))]
    done = made.run(tmp_path, "pip", "install", "-q", "--no-build-isolation", *folders, str(ROOT / "plugins/scaffold"))
    assert done.returncode == 0, done.stderr
    return made


def test_every_kind_is_green(fresh: Fresh, tmp_path: Path) -> None:
    wrong: list[str] = []
    for kind in KINDS:
        name, began = f"my-{kind}", time.monotonic()
        for folder, command in ((tmp_path, ("kernel", "plugins", "new", name, "--kind", kind)),
                                (tmp_path / name, ("pip", "install", "-q", "-e", ".")),
                                (tmp_path / name, ("pytest", "-q", "-rs")),
                                (tmp_path / name, ("kernel", "plugins", "validate", "."))):
            done = fresh.run(folder, *command)
            if done.returncode or "skipped" in done.stdout:
                wrong.append(f"{kind}: {' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
                break
        print(f"{kind}: {time.monotonic() - began:.1f} s")  # pytest -s shows it; a busy machine is no failure
    assert not wrong, "\n".join(wrong)
    _installed_as_wheels(fresh, tmp_path)


def _installed_as_wheels(fresh: Fresh, tmp_path: Path) -> None:
    """What works from a folder works from a wheel: manifest and parts are in it, and the tests of the folder pass with it."""
    for kind in ("tool", "claude"):
        done = fresh.run(tmp_path, "pip", "install", "-q", "--no-deps", "--force-reinstall", str(tmp_path / f"my-{kind}"))
        assert done.returncode == 0, done.stderr
        done = fresh.run(tmp_path / f"my-{kind}", "pytest", "-q")
        assert done.returncode == 0, done.stdout
    rows = {row["name"]: row for row in json.loads(fresh.run(tmp_path, "kernel", "plugins", "list", "--json").stdout)}
    for kind in KINDS:
        row = rows[f"my-{kind}"]
        assert (row["state"], row["errors"], row["warnings"]) == ("ready", [], []), row
        assert ("site-packages" in row["path"]) is (kind in ("tool", "claude"))
