"""Put the recorder around what is about to be opened."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from kernel import Extension, Harness, Registry
from kernel_replay.recorder import RecordedSession, Recorder
from kernel_replay.tape import Tape
from kernel_replay.taps import TapedPart, tap_extensions

SUFFIX = ".jsonl"


class Recording(Extension):
    name = "replay"

    def __init__(self, path: str) -> None:
        self._path = path

    def check(self, harness: Harness) -> None:
        """:raises RecordingError: the recording cannot be written."""
        path = Path(harness.options.cwd, Path(self._path).expanduser())
        if path.is_dir() or self._path.endswith("/"):
            path = path / f"{harness.clock.now():%Y%m%d-%H%M%S}-{harness.clock.new_id()[:8]}{SUFFIX}"
        record(harness, path)


def record(harness: Harness, path: Path) -> Tape:
    """Record the conversation that this harness opens next.

    :raises RecordingError: the file cannot be made, or is there already.
    """
    tape = Tape(harness, path)
    harness.clock = tape.clock
    harness.session_type = partial(RecordedSession, tape)
    harness.middleware(Recorder(tape))
    parts: Registry[TapedPart] = Registry("prompt_parts", harness.settings, harness.options)
    for part in harness.prompt_parts:
        parts.plugin = harness.prompt_parts.owner(part.name) or "kernel"
        parts(TapedPart(part, tape))
    harness.prompt_parts = parts
    tap_extensions(harness, tape)
    return tape
