"""The programs of ``examples/python`` and of the documentation run, from outside, with a scripted model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.testing import installed

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "python"
pytestmark = pytest.mark.skipif(not (EXAMPLES.exists() and installed("model-script")),
                                reason="needs the examples and the plugin model-script")
COUNTS = """turns:
  - calls: [{tool: line_count, input: {path: poem.txt}}]
  - text: 'It has {{last_result}} lines.'
"""


def run(folder: Path, script: str, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "talk.yaml").write_text(script)
    env = {"HOME": str(folder / ".home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "KERNEL_PROVIDER": "script",
           "KERNEL_SCRIPT": str(folder / "talk.yaml")}
    return subprocess.run([sys.executable, *command], cwd=folder, input=stdin, capture_output=True, text=True, timeout=90,
                          check=False, env=env)


def test_ask(tmp_path: Path) -> None:
    (tmp_path / "poem.txt").write_text("a\nb\nc\n")
    done = run(tmp_path, COUNTS, str(EXAMPLES / "ask.py"), "How long is poem.txt?")
    assert done.stdout == "It has 3 lines.\n" and "2 requests" in done.stderr, done.stderr
    failed = run(tmp_path, "turns:\n  - fail: {status: 400, message: bad}\n", str(EXAMPLES / "ask.py"))
    assert failed.returncode == 1 and "no answer (api_error)" in failed.stderr and "Traceback" not in failed.stderr


@pytest.mark.skipif(not installed("structured-output") or not installed("tools-shell"), reason="needs both plugins")
def test_review(tmp_path: Path) -> None:
    script = """turns:
  - calls: [{tool: Bash, input: {command: git push}}, {tool: Bash, input: {command: touch made}}]
  - calls: [{tool: StructuredOutput, input: {risk: high, findings: [{file: a.py, line: 3, problem: "{{last_result}}"}]}}]
"""
    done = run(tmp_path, script, str(EXAMPLES / "review.py"))
    assert done.returncode == 0 and done.stdout.startswith("risk: high\na.py:3: "), done.stderr
    assert "nobody is there to ask" in done.stdout and "... Bash" in done.stderr and not (tmp_path / "made").exists()


@pytest.mark.skipif(not installed("sessions"), reason="needs the plugin sessions")
def test_chat(tmp_path: Path) -> None:
    script = "turns:\n  - {text: 'You said: {{last_prompt}}', repeat: true}\n"
    done = run(tmp_path, script, str(EXAMPLES / "chat.py"), stdin="hello\nbye\n")
    assert done.stdout == "You said: hello\n\n[$0.0000]\nYou said: bye\n\n[$0.0000]\n", done.stderr
    first = (tmp_path / ".chat-session").read_text()
    again = run(tmp_path, script, str(EXAMPLES / "chat.py"), stdin="again\n")
    assert "You said: again" in again.stdout and (tmp_path / ".chat-session").read_text() == first, again.stderr


def test_together(tmp_path: Path) -> None:
    for name in ("web", "server"):
        (tmp_path / name).mkdir()
    done = run(tmp_path, "turns:\n  - {text: fine, repeat: true}\n", str(EXAMPLES / "together.py"), "web", "server", "How?")
    assert done.stdout == "web: fine\nserver: fine\n", done.stderr


PAGES = [p for p in (ROOT / "docs" / "python.md", ROOT / "plugins" / "embed" / "README.md") if p.exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_examples_of_the_pages_run(page: Path, tmp_path: Path) -> None:
    """Every block of a page is a program of its own; a script answers whatever it asks."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert blocks
    (tmp_path / "README.md").write_text("some words\n")
    for number, block in enumerate(blocks):
        (tmp_path / "program.py").write_text(block)
        turns = re.findall(r"^# script: (.*)$", block, re.MULTILINE) or ["{text: fine, repeat: true}"]
        done = run(tmp_path, "turns:\n" + "".join(f"  - {turn}\n" for turn in turns), "program.py")
        assert done.returncode == 0 and "Traceback" not in done.stderr, f"block {number}:\n{block}\n{done.stdout}{done.stderr}"
