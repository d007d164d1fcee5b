"""A conversation that cannot be had: a program reads why on stdout, a person on stderr (headless contract, 5.5)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

GONE = "11111111-1111-4111-8111-111111111111"


@pytest.mark.parametrize("flags", [["--output-format", "stream-json", "--verbose"], ["--output-format", "json"], []])
def test_a_refused_resume_is_one_result_and_exit_code_1(flags: list[str], tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "KERNEL_PROVIDER": "script",
           "KERNEL_SCRIPT": "script.yaml"}
    (tmp_path / "script.yaml").write_text("turns:\n  - text: hello\n")
    done = subprocess.run([sys.executable, "-m", "kernel", "-p", "go", f"--resume={GONE}", *flags], cwd=tmp_path, env=env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stderr.startswith("Error: ") and "Traceback" not in done.stderr
    if not flags:
        assert done.stdout == ""
        return
    result, = map(json.loads, done.stdout.splitlines())
    assert result["type"] == "result" and result["is_error"] and result["subtype"] == "error_during_execution"
    assert GONE in result["errors"][0] and result["session_id"] == GONE and "result" not in result


def test_a_line_that_is_no_json_ends_the_run_behind_the_prompts_before_it(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "KERNEL_PROVIDER": "script",
           "KERNEL_SCRIPT": "script.yaml"}
    (tmp_path / "script.yaml").write_text("turns:\n  - text: hello\n")
    flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
    prompt = '{"type":"user","message":{"role":"user","content":"hi"}}\n'
    done = subprocess.run([sys.executable, "-m", "kernel", "-p", *flags], cwd=tmp_path, env=env, input=prompt + "nonsense\n",
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and json.loads(done.stdout.splitlines()[-1])["result"] == "hello"
    assert done.stderr.startswith("Error: line 2 of stdin is not valid JSON") and done.stderr.count("\n") == 1
