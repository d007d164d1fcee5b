"""The random id of an installation: made once, kept beside what is there, whoever else writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernel_telemetry.identity import global_config, user_id

PROGRAM = "from kernel_telemetry.identity import user_id; print(user_id(print))"


def test_many_processes_agree_and_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text(json.dumps({"projects": {"/a": {"x": 1}}}))
    (tmp_path / ".claude.json").chmod(0o640)
    running = [subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True,
                                env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]}) for _ in range(6)]
    said = {process.communicate()[0].strip() for process in running}
    kept = json.loads((tmp_path / ".claude.json").read_text())
    assert said == {kept["userID"]} and len(kept["userID"]) == 64
    assert kept["projects"] == {"/a": {"x": 1}} and (tmp_path / ".claude.json").stat().st_mode & 0o777 == 0o640
    assert {p.name for p in tmp_path.iterdir()} == {".claude.json", ".claude.json.lock"}


@pytest.mark.parametrize("content", ["{", "[1]", "null", "[" * 100_000, '{"userID": 7'])
def test_a_file_that_cannot_be_used_is_left_as_it_is(kernel_home: Path, content: str) -> None:
    global_config().parent.mkdir(parents=True, exist_ok=True)
    global_config().write_text(content)
    lines: list[str] = []
    assert len(user_id(lines.append)) == 64 and "user.id is new for this process" in lines[0]
    assert global_config().read_text() == content


def test_an_id_of_a_wrong_type_is_replaced(kernel_home: Path) -> None:
    global_config().parent.mkdir(parents=True, exist_ok=True)
    global_config().write_text('{"userID": 7, "other": true}')
    mine = user_id(print)
    assert json.loads(global_config().read_text()) == {"userID": mine, "other": True} and user_id(print) == mine
