"""The sink: in memory while it is small, in a file afterwards, readable at any time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from kernel_tools_shell import sink as module
from kernel_tools_shell.sink import Sink


@given(chunks=st.lists(st.binary(max_size=60), max_size=12), keep_at=st.integers(0, 12), limit=st.integers(1, 200))
def test_head_and_tail_are_those_of_all_that_was_written(tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes],
                                                         keep_at: int, limit: int) -> None:
    sink = Sink(tmp_path_factory.mktemp("sink") / "deep" / "output")
    before, module.IN_MEMORY = module.IN_MEMORY, 100
    try:
        for number, chunk in enumerate(chunks):
            if number == keep_at:
                sink.keep()
            sink.write(chunk)
        written = b"".join(chunks)
        for _ in ("open", "closed"):
            assert (sink.size, sink.head(limit), sink.tail(limit)) == (len(written), written[:limit], written[-limit:])
            sink.close()
        sink.keep()
        assert sink.path.read_bytes() == written
        assert sink.path.stat().st_mode & 0o777 == 0o600
    finally:
        module.IN_MEMORY = before


def test_what_comes_after_the_end_is_counted_and_dropped(tmp_path: Path) -> None:
    sink = Sink(tmp_path / "output")
    sink.write(b"one")
    sink.keep()
    sink.close()
    sink.write(b"two")
    assert sink.head(9) == b"one" and sink.size == 6
    sink.close(remove=True)
    assert not sink.path.exists()


def test_a_place_that_cannot_be_written_keeps_what_fits_in_memory_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    sink = Sink(tmp_path / "file" / "output")
    sink.write(b"one")
    sink.keep()
    sink.write(b"two")
    assert sink.head(9) == b"one" and sink.size == 6 and "cannot be written" in sink.failure


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
def test_a_full_disk_loses_output_and_nothing_else(tmp_path: Path) -> None:
    sink = Sink(tmp_path / "output")
    sink.write(b"one")
    sink.keep()
    sink._file = os.open("/dev/full", os.O_WRONLY)
    sink.write(b"two")
    assert "No space left" in sink.failure and sink.head(9) == b"one"
