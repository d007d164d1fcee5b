"""What the README promises, through the public door."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
SCRIPT = "turns:\n  - {text: It does nothing yet., repeat: true}\n"


def run(folder: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False, env={
        "HOME": str(folder / ".home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **env})


def test_the_python_example_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (tmp_path / "example.py").write_text(example)
    done = run(tmp_path, sys.executable, "example.py", KERNEL_PROVIDER="script", KERNEL_SCRIPT=str(tmp_path / "script.yaml"))
    assert done.stdout.splitlines() == ["It does nothing yet. 0.0", "It does nothing yet."], done.stderr


def test_every_command_of_the_readme_exists(tmp_path: Path) -> None:
    from kernel.cli import COMMANDS
    from kernel.cli.commands import summaries
    from kernel.cli.flags import FLAGS

    flags = {name for flag in FLAGS for name in flag.names.split()}
    for line in re.findall(r"(?:^|\| |&& )kernel ([^\s#][^\n]*?)(?= && |\n)", README, re.MULTILINE):
        first, two = line.split()[0], " ".join(line.split()[:2])
        assert first in flags or first in COMMANDS or first in summaries() or two in summaries(), line
        if first in flags:
            for flag in re.findall(r"(?<!\S)--[a-zA-Z-]+", line.split("#")[0]):
                assert flag in flags, line


def test_a_folder_with_a_manifest_and_hooks_is_a_plugin(tmp_path: Path) -> None:
    folder = tmp_path / "plugin"
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / "hooks").mkdir()
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": "says-hello"}')
    (folder / "hooks" / "hooks.json").write_text(
        '{"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch \\"$CLAUDE_PROJECT_DIR/started\\""}]}]}}')
    (tmp_path / "script.yaml").write_text(SCRIPT)
    done = run(tmp_path, sys.executable, "-m", "kernel", "-p", "hello", "--plugin-dir", str(folder),
               KERNEL_PROVIDER="script", KERNEL_SCRIPT=str(tmp_path / "script.yaml"))
    assert done.returncode == 0 and (tmp_path / "started").exists(), done.stderr
