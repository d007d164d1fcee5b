"""For tests: record what a kit does, and hold that a recording replays without a difference."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import anyio

from kernel import Harness
from kernel_replay.recording import Recording, load
from kernel_replay.replay import PATIENCE_S, Report, replay

K = TypeVar("K", bound="Kit")


class Kit(Protocol):
    """What has a harness: ``kernel.testing.Kit``."""

    harness: Harness


def recorded(kit: K, path: Path) -> K:
    """Record the conversation that the kit opens next; its file is whole when the session is closed.

    :raises RecordingError: the file is there already.
    """
    from kernel_replay.extension import record

    record(kit.harness, path)
    return kit


def assert_replays(path: Path, kit: Kit | None = None, *, live: Iterable[str] = (), cwd: Path | None = None,
                   patience: float = PATIENCE_S, **options: Any) -> Report:
    """Hold that the recording replays to its end without a difference.

    :param kit: replay with what this kit has, in its folder; its model is not asked. Without one the recorded options count,
        with ``options`` in their place: ``block=["guards"]``, ``plugin_dirs=[folder]``.
    :param live: what is done for real: ``tools``, ``hooks``, ``decisions``, ``parts``, ``mcp``.
    :param cwd: replay in that folder.
    :raises AssertionError: the first event that differs, in words.
    :raises RecordingError: the recording cannot be used.
    """
    report = replayed(path, kit, live=live, cwd=cwd, patience=patience, **options)
    assert report.difference is None, "\n".join([*report.changed, *report.difference.lines()])
    return report


def replayed(path: Path, kit: Kit | None = None, *, live: Iterable[str] = (), cwd: Path | None = None,
             patience: float = PATIENCE_S, **options: Any) -> Report:
    """The same without holding anything: the report says what differs."""
    from kernel_replay.setting import harness_of, moved, surroundings

    recording = load(path)
    where = kit.harness.options.cwd if kit is not None else cwd
    if where is not None and str(where) != recording.header.cwd:
        recording = moved(recording, where)

    async def go(make: Callable[[], Any], stand_ins: dict[str, str]) -> Report:
        return await replay(recording, make(), live=live, stand_ins=stand_ins, patience=patience)

    if kit is not None:
        with _spill(recording) as stand_ins:
            return anyio.run(go, lambda: kit.harness, stand_ins)
    with surroundings(recording) as stand_ins:
        return anyio.run(go, lambda: harness_of(recording, options, live=live), stand_ins)


class _spill:
    """A folder in the place of the one that long texts went to."""

    def __init__(self, recording: Recording) -> None:
        self._real = recording.header.spill

    def __enter__(self) -> dict[str, str]:
        self._folder = tempfile.mkdtemp(prefix="kernel-")
        return {self._real: self._folder} if self._real else {}

    def __exit__(self, *raised: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
