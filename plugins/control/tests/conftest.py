"""A program that drives ``kernel`` as the SDK does: frames in, frames out, a real process between them."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 40
Frame = dict[str, Any]


class Host:
    """``seen``: all frames so far, in order. Whatever does not come within ``PATIENCE_S`` fails the test.

    :param slowly: one byte at a time, in both directions.
    """

    def __init__(self, folder: Path, script: str, *flags: str, slowly: bool = False, **env: str) -> None:
        (folder / "script.yaml").write_text(script)
        self.folder = folder
        self.slowly = slowly
        self.seen: list[Frame] = []
        self.raw: list[bytes] = []
        self._queue: queue.Queue[bytes | None] = queue.Queue()
        self._count = 0
        home = {"HOME": str(folder / "home"), "CLAUDE_CONFIG_DIR": str(folder / "home" / ".claude")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kernel", "--output-format", "stream-json", "--verbose", *flags,
             "--input-format", "stream-json"],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "KERNEL_PROVIDER": "script", "KERNEL_SCRIPT": "script.yaml",
                 "CLAUDE_CODE_ENTRYPOINT": "sdk-py", **home, **env})
        self._errors: list[bytes] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        rest = b""
        while chunk := os.read(self.process.stdout.fileno(), 1 if self.slowly else 1 << 16):
            *lines, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else (rest + chunk,)
            for line in lines:
                self._queue.put(line + b"\n")
        self._queue.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors += self.process.stderr

    @property
    def stderr(self) -> str:
        return b"".join(self._errors).decode()

    # -- frames ------------------------------------------------------------------------------------------------------------
    def send(self, frame: Frame) -> None:
        self.write(json.dumps(frame).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        for piece in (data[n:n + 1] for n in range(len(data))) if self.slowly else (data,):
            self.process.stdin.write(piece)
            self.process.stdin.flush()

    def next(self) -> Frame:
        line = self._queue.get(timeout=PATIENCE_S)
        assert line is not None, f"stdout ended; stderr: {self.stderr}"
        self.raw.append(line)
        frame: Frame = json.loads(line)
        self.seen.append(frame)
        return frame

    def until(self, fits: Callable[[Frame], Any], begin: int = 0) -> Frame:
        """The first frame that fits, from that number on."""
        for frame in self.seen[begin:]:
            if fits(frame):
                return frame
        while True:
            if fits(frame := self.next()):
                return frame

    def say(self, text: str, **more: Any) -> None:
        self.send({"type": "user", "session_id": "", "parent_tool_use_id": None, **more,
                   "message": {"role": "user", "content": text}})

    def result(self) -> Frame:
        """The next result that was not seen yet."""
        return self.until(lambda f: f["type"] == "result", len(self.seen))

    def ask(self, subtype: str, **fields: Any) -> str:
        self._count += 1
        self.send({"type": "control_request", "request_id": f"r{self._count}", "request": {"subtype": subtype, **fields}})
        return f"r{self._count}"

    def answer(self, id: str) -> Frame:
        found: Frame = self.until(lambda f: f["type"] == "control_response" and f["response"]["request_id"] == id)["response"]
        return found

    def call(self, subtype: str, **fields: Any) -> Frame:
        """Ask and get what a success brings."""
        answer = self.answer(self.ask(subtype, **fields))
        assert answer["subtype"] == "success", answer
        response: Frame = answer["response"]
        return response

    def refusal(self, subtype: str, **fields: Any) -> str:
        answer = self.answer(self.ask(subtype, **fields))
        assert answer["subtype"] == "error", answer
        return str(answer["error"])

    def asked(self, subtype: str, begin: int = 0) -> Frame:
        """A request of the harness."""
        return self.until(lambda f: f["type"] == "control_request" and f["request"]["subtype"] == subtype, begin)

    def reply(self, request: Frame, response: Any) -> None:
        self.send({"type": "control_response",
                   "response": {"subtype": "success", "request_id": request["request_id"], "response": response}})

    def end(self, seconds: float = PATIENCE_S) -> int:
        """Close stdin and read all that still comes; the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        while (line := self._queue.get(timeout=seconds)) is not None:
            self.raw.append(line)
            self.seen.append(json.loads(line))
        return self.process.wait(seconds)

    def kinds(self) -> list[str]:
        return [f.get("subtype") or f["type"] for f in self.seen]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Callable[..., Host]]:
    """Starts hosts: ``host(script, *flags, **environment)``."""
    started: list[Host] = []

    def start(script: str, *flags: str, **env: Any) -> Host:
        started.append(Host(tmp_path, script, *flags, **env))
        return started[-1]

    yield start
    for one in started:
        one.process.kill()
        one.process.wait()
