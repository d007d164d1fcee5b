"""What a program reads on stdout is the protocol, whatever a tool prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, subprocess, sys
from kernel import cli
from kernel_tools_tasks import plugin
from kernel import Tool, ToolResult

early = sys.stdout

class Noisy(Tool):
    name = "Noisy"
    description = "Prints."
    permission = "free"
    input_schema = {"type": "object", "properties": {}}

    async def call(self, input, context):
        print("by print")
        early.write("by the first stdout\\n")
        sys.__stdout__.write("by the other name\\n")
        os.write(1, b"by descriptor\\n")
        subprocess.run(["echo", "by a child"])
        return ToolResult(content="done")

real = plugin.register_tools
def register_tools(register):
    real(register)
    register(Noisy())
plugin.register_tools = plugin.hookimpl(register_tools)
code = cli.main(sys.argv[1:])
print("afterwards")
raise SystemExit(code)
"""
NOISE = ["by print", "by the first stdout", "by the other name", "by descriptor", "by a child"]


def run(folder: Path, *flags: str, more: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "script.yaml").write_text("turns:\n  - calls: [{tool: Noisy, input: {}}]\n  - text: finished\n")
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "KERNEL_PROVIDER": "script",
           "KERNEL_SCRIPT": str(folder / "script.yaml")}
    command = [sys.executable, "-c", PROGRAM, "-p", "go", "--allowedTools", "Noisy", *flags]
    return subprocess.run(["bash", "-c", f'exec "$@" {more}', "_", *command], cwd=folder, env=env, capture_output=True, text=True,
                          timeout=60, check=False)


@pytest.mark.parametrize("flags", [["--output-format", "json"], ["--output-format", "stream-json", "--verbose"]])
def test_what_tools_print_stays_out_of_the_protocol(flags: list[str], tmp_path: Path) -> None:
    done = run(tmp_path, *flags)
    *lines, last = done.stdout.splitlines()
    messages = [json.loads(line) for line in lines]
    assert done.returncode == 0 and messages[-1]["type"] == "result" and messages[-1]["result"] == "finished"
    assert last == "afterwards"  # stdout is given back
    assert [n for n in NOISE if n not in done.stderr] == []


def test_without_stderr_it_goes_nowhere(tmp_path: Path) -> None:
    done = run(tmp_path, "--output-format", "json", more="2>&-")
    assert json.loads(done.stdout.splitlines()[0])["result"] == "finished" and not any(n in done.stdout for n in NOISE)


def test_text_is_for_people_and_keeps_it(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert "finished" in done.stdout and "by descriptor" in done.stdout
