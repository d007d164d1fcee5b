"""``kernel`` on a real terminal: one tmux server for each test, a home of its own, and a model that plays a script."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 60.0
LOOK_S = 0.05
_NUMBERS = itertools.count()


class Tmux:
    """A terminal with ``kernel`` in it. What does not come within ``PATIENCE_S`` fails the test and shows the screen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.project = folder / "project"
        self.config = self.home / ".claude"
        for place in (self.config, self.project):
            place.mkdir(parents=True)
        self._name = ""

    def run(self, *args: str) -> str:
        return subprocess.run(["tmux", "-L", self._name, *args], capture_output=True, text=True, timeout=30, check=False,
                              encoding="utf-8", errors="replace").stdout

    def end(self) -> None:
        """End the server, and with it all that runs in the terminal."""
        if self._name:
            self.run("kill-server")
        self._name = f"kernel-test-{os.getpid()}-{next(_NUMBERS)}"  # a server that ends still holds its socket

    def trust(self) -> None:
        (self.config / ".claude.json").write_text(json.dumps({"projects": {str(self.project): {"hasTrustDialogAccepted": True}}}))

    def script(self, *turns: dict[str, Any], **top: Any) -> None:
        (self.project / "talk.yaml").write_text(json.dumps({"name": "talk", **top, "turns": list(turns)}))

    def start(self, *args: str, columns: int = 80, rows: int = 40, **env: str) -> None:
        """Run it in a shell that says with which code it ended. The folder is trusted unless there is a config already."""
        if not (self.config / ".claude.json").exists():
            self.trust()
        more = {"HOME": str(self.home), "CLAUDE_CONFIG_DIR": str(self.config), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **env}
        model = [] if "--model" in args else ["--model", "script:talk.yaml"]
        words = ["env", "-u", "NO_COLOR", *(f"{k}={v}" for k, v in more.items()), sys.executable, "-m", "kernel", *model, *args]
        command = f"cd {shlex.quote(str(self.project))}; {shlex.join(words)}; echo ended with $?; exec sleep 600"
        self.open(command, columns, rows)

    def open(self, command: str, columns: int = 80, rows: int = 40) -> None:
        self.end()
        self.run("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), command)
        self.run("set-option", "-g", "history-limit", "20000")

    def screen(self, *, colours: bool = False) -> str:
        """What is seen now."""
        return self.run("capture-pane", "-p", *(["-e"] if colours else []))

    def everything(self, *, colours: bool = False) -> str:
        """What is seen and what scrolled away, lines that the terminal broke put together."""
        return self.run("capture-pane", "-p", "-J", "-S", "-", *(["-e"] if colours else []))

    def wait(self, *texts: str, gone: str = "") -> str:
        """Until all texts have been shown; ``gone``: and that one is not on the screen."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            shown = self.everything()
            if all(text in shown for text in texts) and not (gone and gone in self.screen()):
                return shown
            time.sleep(LOOK_S)
        pytest.fail(f"not shown within {PATIENCE_S} s: {texts}{f', or still there: {gone}' if gone else ''}\n{self.everything()}")

    def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < end, f"it did not happen within {PATIENCE_S} s\n{self.everything()}"
            time.sleep(LOOK_S)

    def type(self, text: str, *, enter: bool = True) -> None:
        self.run("send-keys", "-l", text)
        if enter:
            self.run("send-keys", "Enter")

    def key(self, *names: str) -> None:
        self.run("send-keys", *names)

    def ready(self) -> None:
        """Until a prompt can be typed."""
        self.wait("kernel 0.1", "> ")


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    made = Tmux(tmp_path)
    yield made
    made.end()
