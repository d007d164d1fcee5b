"""Runs of the real command, recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import installed

NEEDED = ("headless", "model-script", "sessions", "tools-files", "tools-shell", "permissions")
needs = pytest.mark.skipif(not all(map(installed, NEEDED)), reason=f"needs the plugins {', '.join(NEEDED)}")


class Place:
    """A folder to run in, with a home of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root / "project"
        self.home = root / "home"
        self.root.mkdir()
        (self.root / "a.txt").write_text("hello\n")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("CLAUDE", "ANTHROPIC", "KERNEL_"))}
        self.env |= {"CLAUDE_CONFIG_DIR": str(self.home), "IS_SANDBOX": "1", "HOME": str(root)}

    def script(self, *turns: dict[str, Any]) -> None:
        (self.root / "talk.yaml").write_text(json.dumps({"name": "talk", "turns": list(turns)}))

    def settings(self, **given: Any) -> None:
        (self.root / ".claude").mkdir(exist_ok=True)
        (self.root / ".claude" / "settings.json").write_text(json.dumps(given))

    def start(self, *args: str, **more: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "kernel", *args]
        return subprocess.Popen(command, cwd=self.root, env=self.env, stdin=more.pop("stdin", subprocess.DEVNULL),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def kernel(self, *args: str, code: int = 0) -> str:
        process = self.start(*args)
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, (out + err).decode()[-3000:]
        return out.decode()

    def record(self, *args: str, name: str = "run.jsonl", code: int = 0) -> tuple[Path, list[str]]:
        """Record a run; its file, and the messages that it wrote."""
        path = self.root.parent / name
        out = self.kernel("-p", *args, "--model", "script:talk.yaml", "--record", str(path), "--output-format", "stream-json",
                          "--verbose", code=code)
        return path, out.splitlines()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def again(place: Place, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Replay in this process: ``again(path, live=..., block=...)``."""
    from kernel_replay.testing import replayed

    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place.home))
    return replayed


def call(tool: str, id: str = "", **input: Any) -> dict[str, Any]:
    return {"tool": tool, "input": input, **({"id": id} if id else {})}
