"""``kernel demo`` through the public door: a real process in a real folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def demo(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    env = {"HOME": str(folder / ".home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    return subprocess.run([sys.executable, "-m", "kernel", "demo", *args], cwd=folder, env=env, capture_output=True, text=True,
                          timeout=60, check=False)


def test_without_a_key_it_announces_the_script_and_does_the_job(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1  # TODO: name it\n")
    (tmp_path / "b.txt").write_text("nothing here\nFIXME later\n")
    done = demo(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("Scripted: no model is asked")
    report = (tmp_path / "TODO-REPORT.md").read_text()
    assert "a.py" in report and "TODO: name it" in report and "FIXME later" in report
    assert "refused" in done.stdout, "a command that nobody allowed is refused"
    assert "hook: TODO-REPORT.md now has" in done.stdout, "the hook of the guide ran"


def test_it_can_be_run_again(tmp_path: Path) -> None:
    demo(tmp_path)
    (tmp_path / "a.py").write_text("# TODO new\n")
    again = demo(tmp_path)
    assert again.returncode == 0 and "TODO new" in (tmp_path / "TODO-REPORT.md").read_text(), again.stdout


def test_a_wrong_argument_is_named(tmp_path: Path) -> None:
    done = demo(tmp_path, "--nonsense")
    assert done.returncode == 1 and "--nonsense" in done.stderr
