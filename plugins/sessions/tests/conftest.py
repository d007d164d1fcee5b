"""A fresh home for each test, and short names for entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kernel_sessions.store import FileStore
from kernel_sessions.transcript import FileTranscript

from kernel import Clock, Entry, Layer, Options, Settings

_clock = Clock()


class Home:
    """A configuration directory, a working directory, and the store on them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config"
        self.cwd = root / "work"
        self.cwd.mkdir(parents=True)
        self.values: dict[str, Any] = {}

    def open(self, **options: Any) -> FileTranscript:
        options.setdefault("cwd", self.cwd)
        settings = Settings([Layer("cli", "--settings", self.values, "/")], [], config_dir=self.config,
                            project_root=self.cwd, trusted=False)
        return FileStore().open(Options(**options), settings)

    def begin(self, *entries: Entry, **options: Any) -> FileTranscript:
        """A session with these entries, closed."""
        transcript = self.open(**options)
        for entry in entries:
            transcript.append([entry], cwd=str(options.get("cwd", self.cwd)))
        transcript.close()
        return transcript

    def raw(self, transcript: FileTranscript, *entries: dict[str, Any]) -> None:
        """Replace the file of a session by these objects."""
        Path(transcript.path).write_text("".join(json.dumps(e, separators=(",", ":")) + "\n" for e in entries))

    @staticmethod
    def prompt(text: str, **extra: Any) -> Entry:
        return Entry(type="user", uuid=_clock.new_id(), message={"role": "user", "content": text}, extra=extra)

    @staticmethod
    def context(text: str) -> Entry:
        return Home.prompt(f"<system-reminder>\n{text}\n</system-reminder>", isMeta=True)

    @staticmethod
    def answer(*blocks: str | dict[str, Any], **extra: Any) -> Entry:
        content = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
        stop = "tool_use" if any(b["type"] == "tool_use" for b in content) else "end_turn"
        message = {"id": f"msg_{_clock.new_id()}", "type": "message", "role": "assistant", "model": "model-a", "content": content,
                   "stop_reason": stop, **extra.pop("message", {})}
        return Entry(type="assistant", uuid=_clock.new_id(), message=message, extra=extra)

    @staticmethod
    def call(id: str, **input: Any) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": "Bash", "input": input}

    @staticmethod
    def result(id: str, text: str = "ok") -> Entry:
        block = {"type": "tool_result", "tool_use_id": id, "content": text}
        return Entry(type="user", uuid=_clock.new_id(), message={"role": "user", "content": [block]},
                     extra={"toolUseResult": {"stdout": text}})


def lines(transcript: FileTranscript) -> list[dict[str, Any]]:
    """Every line of the file, parsed; a line that does not parse fails the test."""
    return [json.loads(line) for line in Path(transcript.path).read_text("utf-8").split("\n")[:-1]]


def words(transcript: FileTranscript) -> list[str]:
    """What the restored conversation says, one text per message."""
    said = []
    for _, content in transcript.restored.messages:
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        said.append(" ".join(str(b.get("text") or b.get("id") or f"{b.get('tool_use_id')}={b.get('content')}") for b in blocks))
    return said


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("CLAUDE_CODE_PROJECT_DIR_NAME", "CLAUDE_CODE_SKIP_PROMPT_HISTORY", "CLAUDE_CODE_CHILD_SESSION",
                 "CLAUDE_CODE_FORCE_SESSION_PERSISTENCE", "CLAUDE_CODE_ENTRYPOINT"):
        monkeypatch.delenv(name, raising=False)
    place = Home(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place.config))
    return place


@pytest.fixture
def read_lines() -> Any:
    return lines


@pytest.fixture
def said() -> Any:
    return words


@pytest.fixture(scope="session")
def home_class() -> type[Home]:
    """For tests that need a fresh home more than once."""
    return Home
