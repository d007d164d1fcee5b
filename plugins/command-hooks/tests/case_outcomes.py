"""What the contract's cases for hooks say in words: how to check it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .case_driver import Play


def _announced(*texts: str) -> Any:
    return lambda play: all(any(t in line for line in play.session.harness.announced) for t in texts)


def _file_holds(text: str) -> Any:
    return lambda play: (play.world.cwd / "out.txt").read_text().strip() == text


def _argv(play: Play) -> list[str]:
    found: list[str] = json.loads((play.world.cwd / "argv.json").read_text())
    return found


def _header(name: str, value: str) -> Any:
    return lambda play: play.server.seen[0][1][name] == value


OUTCOMES: dict[str, Any] = {
    "config-unknown-event-skipped": _announced("PreCommit"), "config-matcher-array-rejects-file": _announced("whole file"),
    "config-bad-file-print-mode-is-quiet": lambda p: _announced("settings.json", "matcher")(p) and not p.run.result.is_error,
    "config-prompt-handler-on-sessionstart-refused": _announced("command, mcp_tool"),
    "config-http-handler-on-setup-refused": lambda p: _announced("command, mcp_tool")(p) and not p.run.result.is_error,
    "match-invalid-regex-is-no-match": lambda p: sum("matches nothing" in line for line in p.world.debug) == 2,
    "dup-two-plugins-same-template": lambda p: p.world.env("a")["CLAUDE_PLUGIN_ROOT"] != p.world.env("b")["CLAUDE_PLUGIN_ROOT"],
    "cmd-shell-form-has-shell": _file_holds("ONE"), "cmd-no-controlling-terminal": _file_holds("no-tty"),
    "cmd-exec-form-passes-arguments-verbatim": lambda p: _argv(p) == ["a b", "$HOME", "`id`", "it's", "*"],
    "cmd-empty-args-is-exec-form": lambda p: p.world.ran() == ["a"],
    "cmd-placeholder-plugin-root-and-env": lambda p: Path(p.world.env("a")["CLAUDE_PLUGIN_DATA"]).is_dir(),
    "cmd-user-config-shell-form-refused": lambda p: any(
        "'args'" in n and "CLAUDE_PLUGIN_OPTION_URL" in n for n in p.world.notices()),
    "cmd-user-config-exec-form-and-option-env": lambda p: _argv(p) == ["$(id)"],
    "cmd-large-stdin-and-large-stdout-no-deadlock": lambda p: p.world.ran() == ["a"],
    "http-post-json-body": lambda p: (p.server.seen[0][1]["Content-Type"] == "application/json"
                                      and json.loads(p.server.seen[0][2])["tool_input"] == {"command": "ls"}),
    "http-header-interpolation-limits": lambda p: _header("A", "Bearer t1")(p) and _header("B", "xy")(p),
    "http-env-allowlist-is-intersection": _header("A", ""),
    "async-does-not-wait-and-cannot-deny": lambda p: p.world.ended() == [],
    "grandchild-holding-stdout-does-not-hang": lambda p: p.run.result.duration_ms < 3000,
    "json-hook-specific-output-on-event-without-one": lambda p: (not p.merged.blocked and any(
        "validation failed" in line for line in p.world.debug)),
    "json-empty-object-no-effect": lambda p: "system-reminder" not in p.model_saw,
    "universal-continue-false-after-failed-tool": lambda p: len(p.world.kit.model.requests) == 1,
    "universal-terminal-sequence-not-in-print-mode": lambda p: "\x07" not in p.user_saw,
    "cap-additional-context-at-limit": lambda p: "whole text" not in p.model_saw,
    "cap-additional-context-over-limit": lambda p: "10001 characters in all" in p.model_saw and "x" * 2000 in p.model_saw,
    "cap-huge-plain-stdout": lambda p: len(p.model_saw) < 10_000 and "characters in all" in p.model_saw,
    "merge-deny-does-not-cancel-siblings": lambda p: set(p.world.ended()) == {"d", "log"},
    "merge-handlers-run-in-parallel": lambda p: p.run.result.duration_ms < 4000,
    "merge-updated-input-last-to-finish-wins": lambda p: True,
    "perm-updated-input-replaces-whole-object": lambda p: True,
    "perm-legacy-approve-block": lambda p: p.tools["Read"].inputs and not p.tools["Bash"].inputs and not p.asked,
    "perm-validation-failure-raises-no-hook": lambda p: all(p.run.result_of(f"toolu_0_{n}")["is_error"] for n in range(2)),
    "perm-pre-context-only-in-next-request": lambda p: len(p.world.kit.model.requests) == 2,
    "defer-ignored-in-batch": lambda p: p.tools["Read"].inputs and p.tools["Glob"].inputs and p.world.notices(),
    "defer-ignored-interactively": lambda p: p.world.notices(),
    "permreq-updated-permissions-session-rule": lambda p: len(p.tools["Bash"].inputs) == 2,
    "batch-once-per-message": lambda p: (len(p.world.inputs("b")[0]["tool_calls"]) == 3 and p.model_saw.count("batch-ctx") == 1
                                         and p.world.ran()[-1] == "b"),
    "batch-tool-response-is-model-content": lambda p: isinstance(
        p.world.inputs("b")[0]["tool_calls"][0]["tool_response"], str | list),
    "batch-block-stops-loop": lambda p: len(p.world.kit.model.requests) == 1,
    "prompt-exit-2-reason-to-user-only": lambda p: not p.world.kit.model.requests,
    "start-title-ignored-on-clear": lambda p: p.session.title is None,
    "end-budget-raised-by-settings-timeout": lambda p: True, "end-budget-not-raised-by-plugin-timeout": lambda p: True,
    "teammate-idle-exit-2-and-stop": lambda p: p.merged.blocked and p.merged.block_reason == "build is missing",
    "elicitation-answered-by-hook": lambda p: p.merged.last == {"action": "accept", "content": {"schema": "public"}},
    "elicitation-exit-2-ignores-own-json": lambda p: p.merged.last == {"action": "decline"},
    "elicitation-result-override": lambda p: p.merged.last["action"] == "decline",
    "elicitation-result-exit-2-declines": lambda p: p.merged.last == {"action": "decline"},
    "stream-session-start-events-always": lambda p: [m["hook_name"] for m in p.world.hook_messages()] == [
        "SessionStart:startup"] * 2,
    "sdk-hook-deny-in-permission-denials": lambda p: (
        p.run.result.permission_denials and not p.world.hook_messages("permission_denied")),
    "inproc-input-mutation-has-no-effect": lambda p: p.world.inputs("c")[0]["tool_input"] == {"command": "echo ok"},
}
