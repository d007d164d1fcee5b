"""The examples of docs/replay.md are run."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel.testing import Kit

PAGE = Path(__file__).parents[3] / "docs" / "replay.md"


def test_the_examples(kernel_kit: Callable[..., Kit], tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 1
    names: dict[str, Any] = {"__name__": "docs_replay"}
    exec(compile(blocks[0], str(PAGE), "exec", dont_inherit=True), names)  # our own page
    names["test_a_recording_replays"](kernel_kit, tmp_path)
