"""The examples of docs/fleet.md run as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import installed

pytestmark = pytest.mark.skipif(not all(map(installed, ("headless", "model-script", "tools-files", "permissions"))),
                                reason="needs print mode, a scripted model, Write and rules")
PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "fleet.md"


def test_the_page_runs(place: Any) -> None:
    text = PAGE.read_text("utf-8")
    (place.folder / "tasks.jsonl").write_text(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])
    place.turns({"text": "I write it.", "calls": [{"tool": "Write", "input": {"file_path": "hello.txt", "content": "Hello!\n"}}]},
                {"text": "It is there."})
    for line in re.findall(r"```bash\n(.*?)```", text, re.DOTALL)[0].splitlines():
        done = place.kernel(*shlex.split(line)[1:])
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    assert {r["status"] for r in place.results.values()} == {"done"}
    assert "+Hello!" in (place.folder / "tasks.fleet" / "tasks" / "greet" / "changes.patch").read_text()


def test_the_page_names_every_field_flag_and_file() -> None:
    from kernel_fleet import actions, tasks

    text = PAGE.read_text("utf-8")
    fields = tasks.schema()["$defs"]
    for name in [*fields["Task"]["properties"], *fields["RunOptions"]["properties"]]:
        assert f"`{name}`" in text, name
    flags = [name.strip("_").replace("_", "-") for name in actions.run_.__annotations__ if name not in ("tasks", "return")]
    assert len(flags) > 10 and all(f"--{flag}" in text for flag in flags)
