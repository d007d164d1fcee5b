"""docs/serve.md says what the server does: every route, every option, and commands that work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_serve.api import ROUTES
from kernel_serve.wishes import OPTIONS

from kernel.cli.flags import FLAGS

PAGE = (Path(__file__).parents[3] / "docs" / "serve.md").read_text("utf-8")
ROWS = dict(re.findall(r"^\| `([^`]+)` \| (.+?) \|$", PAGE, re.MULTILINE))


def test_every_route_is_on_the_page() -> None:
    assert {row: text for row, text in ROWS.items() if "/v1/" in row} == {f"{r.method} {r.path}": r.summary for r in ROUTES}


def test_every_option_is_on_the_page_and_is_a_flag() -> None:
    assert {row: text for row, text in ROWS.items() if "/v1/" not in row} == {
        name: f"`{option.flag}` | {option.help}" for name, option in OPTIONS.items()}
    flags = {name: flag for flag in FLAGS for name in flag.names.split()}
    kinds = {"switch": "switch", "integer": "integer", "number": "number", "many": "texts", "each": "texts", "value": "text",
             "maybe": "text"}
    for name, option in OPTIONS.items():
        flag = flags[option.flag]
        assert flag.option.removeprefix("extra.") == name
        assert kinds[flag.kind] == {"json": "text", "jsons": "texts"}.get(option.kind, option.kind), name


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_the_commands_of_the_page_work(world: Any) -> None:
    """The page's shell blocks, one after the other, with a scripted model and ``kernel`` of this environment."""
    del world.env["KERNEL_SERVE"]
    (world.home / "s.yaml").write_text("name: s\nturns:\n- text: a project of one file\n")
    first, second = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    first = first.replace("kernel serve stop\n", second.replace("/srv/project", str(world.project)) + "\nkernel serve stop\n")
    first = re.sub(r"(kernel serve &.*\n)", r"\1until test -S ~/.claude/kernel/serve/socket; do sleep 0.1; done\n", first)
    done = subprocess.run(["sh", "-ec", first], cwd=world.project, capture_output=True, text=True, timeout=60, check=False, env={
        **world.env, "KERNEL_PROVIDER": "script", "KERNEL_SCRIPT": str(world.home / "s.yaml"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    assert ("a project of one file\n" in done.stdout and '"state": "idle"' in done.stdout) or '"state": "running"' in done.stdout
    assert re.search(r"The server \(process \d+\) has ended\.", done.stdout)
