"""Command hooks: outside by the contract, inside where ``kernel.sandbox.hooks`` says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel.testing import Kit, call, text

pytestmark = [pytest.mark.anyio, pytest.mark.real_sandbox]


async def run(work: Path, hooks: dict[str, Any], kernel: dict[str, Any], *commands: str, **sandbox: Any) -> Any:
    kit = Kit(work, [[call("Bash", command=c)] for c in commands] + [text("done")],
              installed=["tools-shell", "permissions", "sandbox", "command-hooks"],
              settings={"sandbox": {"enabled": True, **sandbox}, "kernel": kernel, "hooks": {
                  event: [{"hooks": [{"type": "command", "command": command}]}] for event, command in hooks.items()}})
    ran = await kit.run("go")
    await ran.session.close()
    return ran


@pytest.mark.parametrize(("kernel", "outside"), [
    ({}, True), ({"sandbox": {"hooks": True}}, False), ({"sandbox": {"hooks": False}}, True)])
async def test_hooks_run_inside_only_where_that_is_asked_for(work: Path, kernel: dict[str, Any], outside: bool) -> None:
    await run(work, {"PreToolUse": f"touch {work.parent}/outside; touch inside; cat > event.json"}, kernel, "true")
    assert (work / "inside").exists() and (work / "event.json").read_text().startswith("{")
    assert (work.parent / "outside").exists() is outside


async def test_a_confined_hook_still_decides(work: Path) -> None:
    ran = await run(work, {"PreToolUse": "grep -q forbidden && { echo 'not that' >&2; exit 2; }; exit 0"},
                    {"sandbox": {"hooks": True}}, "echo forbidden > a", "echo fine > b")
    assert not (work / "a").exists() and (work / "b").exists() and "not that" in str(ran.result_of("call_1")["content"])


async def test_a_confined_hook_exports_to_commands_which_cannot_do_so_themselves(work: Path) -> None:
    ran = await run(work, {"SessionStart": 'echo "export GIVEN=yes" >> "$CLAUDE_ENV_FILE"'}, {"sandbox": {"hooks": True}},
                    "echo got $GIVEN; echo 'export GIVEN=evil' >> /tmp/kernel-env-*.sh", "echo then $GIVEN")
    assert "got yes" in str(ran.result_of("call_1")["content"]) and "then yes" in str(ran.result_of("call_2")["content"])
