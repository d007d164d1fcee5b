"""A repository that is small to fetch and endless to check out."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any


def test_a_tree_that_names_itself_over_and_over_is_refused_before_it_is_written(world: Any, tmp_path: Path) -> None:
    """Ten objects, a million files."""
    folder = tmp_path / "bomb"
    folder.mkdir()
    world.git(folder, "init", "-q")

    def put(kind: str, data: bytes) -> bytes:
        done = subprocess.run(["git", "hash-object", "-w", "-t", kind, "--stdin"], cwd=folder, input=data, capture_output=True,
                              check=True)
        return bytes.fromhex(done.stdout.decode())

    current = put("tree", b"".join(b"100644 f%d\0" % n + put("blob", b"x") for n in range(10)))
    for _ in range(5):
        current = put("tree", b"".join(b"40000 d%d\0" % n + current for n in range(10)))
    world.git(folder, "update-ref", "HEAD", world.git(folder, "commit-tree", current.hex(), "-m", "x"))
    done = world.refused("unsafe-archive", "install", f"git+file://{folder}")
    assert "its tree holds over" in done.err and str(folder) in done.err


def test_a_tree_of_huge_files_is_refused_before_it_is_written(world: Any, tmp_path: Path, monkeypatch: Any) -> None:
    from kernel_manager import gits

    folder = world.plugin("fmt", folder=tmp_path / "huge", files={"big": "x" * 5000})
    world.commit(folder)
    monkeypatch.setattr(gits, "MAX_BYTES", 4000)
    world.refused("unsafe-archive", "install", f"git+file://{folder}")
    monkeypatch.setattr(gits, "MAX_BYTES", 8000)
    world.ok("install", f"git+file://{folder}")
