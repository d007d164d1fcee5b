"""The examples of docs/testing.md are one test file, and it passes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import kernel.testing

PAGE = (Path(__file__).parent.parent / "docs" / "testing.md").read_text("utf-8")


def test_the_examples_pass(tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "test_examples.py").write_text("\n".join(examples), "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p kernel.testing.pytest_plugin -p no:cacheprovider\n")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", str(tmp_path)], cwd=tmp_path, capture_output=True, text=True,
                          timeout=120, check=False)
    shown = sum(line.startswith("def test_") for example in examples for line in example.splitlines())
    assert f"{shown} passed" in done.stdout, done.stdout


def test_every_public_name_is_on_the_page_or_explains_itself() -> None:
    named = set(re.findall(r"\w+", PAGE))
    parts = {"HookRun", "Plugin", "Run", "Scripted", "ScriptedModel", "Skill", "StubPolicy",
             "ask_model", "by_words", "call_of", "golden",
             "installed", "plugin_folder", "provides", "read_skill", "story"}
    assert set(kernel.testing.__all__) - parts <= named
    assert parts <= set(kernel.testing.__all__), "a name that is gone"
