"""``kernel completion``: the scripts, in real shells."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def kernel(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "kernel", *args], capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with this kernel in front."""
    program = tmp_path / "kernel"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m kernel "$@"\n')
    program.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def completed(path: str, *words: str) -> list[str]:
    line = " ".join(f"'{word}'" for word in ("kernel", *words))
    script = (f'eval "$(kernel completion bash)"; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _kernel; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    return subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, timeout=60, check=True,
                          env={**os.environ, "PATH": path}).stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_words_behind_them_and_flags(path: str) -> None:
    assert "doctor" in completed(path, "do")
    assert {"list"} <= set(completed(path, "plugins", "li"))
    assert "--resume" in completed(path, "--res") and "--permission-mode" in completed(path, "-p", "--perm")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_are_well_formed(shell: str) -> None:
    done = kernel("completion", shell)
    assert done.returncode == 0 and "kernel" in done.stdout
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=done.stdout, capture_output=True, text=True, timeout=60, check=False)
        assert checked.stderr == ""


def test_another_shell_is_refused() -> None:
    done = kernel("completion", "tcsh")
    assert done.returncode == 1 and "one of bash, zsh, fish" in done.stderr
