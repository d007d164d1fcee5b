"""The shortest run: one prompt, one answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel.testing import Kit, text


def test_one_prompt(tmp_path: Path, told: Any) -> None:
    Kit(tmp_path, [text("hi")], installed=["telemetry"]).play("hello")
    assert [e["event.name"] for e in told.events if e["event.name"] in ("user_prompt", "api_request", "assistant_response")] == [
        "user_prompt", "api_request", "assistant_response"]
    assert {s.name for s in told.spans} == {"claude_code.interaction", "claude_code.llm_request"}
    assert {"claude_code.session.count", "claude_code.token.usage", "kernel.run.count"} <= {m.name for m in told.metrics}
    assert [e["event.sequence"] for e in told.events] == list(range(1, len(told.events) + 1))
