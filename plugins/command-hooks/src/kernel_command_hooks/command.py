"""``kernel hooks list``: every configured hook, and what is wrong with the configuration (hooks contract, section 17)."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kernel import Harness, Options, UsageError
from kernel_command_hooks.config import Table, read
from kernel_command_hooks.handlers import Handler

USAGE = "kernel hooks list [--json] [--settings FILE-OR-JSON] [--plugin-dir DIR ...]"


class HooksCommand:
    """Shows; changes nothing and runs no handler."""

    name = "hooks"
    summary = "list every configured hook with event, matcher, type, source and text"

    def run(self, args: list[str]) -> int:
        """Exit code 1 where the configuration holds something that does not work."""
        import argparse

        parser = argparse.ArgumentParser(prog="kernel hooks", usage=USAGE)
        parser.add_argument("what", choices=["list"])
        parser.add_argument("--json", action="store_true")
        parser.add_argument("--settings")
        parser.add_argument("--plugin-dir", action="append", type=Path, default=[])
        try:
            given = parser.parse_args(args)
        except SystemExit as error:
            if error.code == 0:
                return 0
            raise UsageError("kernel hooks cannot be used that way", hint=USAGE) from None
        harness = Harness(Options(settings=given.settings, plugin_dirs=given.plugin_dir))
        table = read(SimpleNamespace(settings=harness.settings, plugins=harness.plugins,  # type: ignore[arg-type]  # what it reads
                                     options=harness.options, plugin_state={}))
        report = _report(table, [*harness.announced, *(p.text for p in table.problems)])
        print(json.dumps(report, indent=1) if given.json else _text(report))
        return 1 if report["problems"] else 0


def _report(table: Table, problems: list[str]) -> dict[str, Any]:
    return {"hooks": [_row(h) for handlers in table.handlers.values() for h in handlers], "problems": problems,
            "remarks": table.remarks}


def _row(handler: Handler) -> dict[str, Any]:
    spec = handler.spec
    row: dict[str, Any] = {"event": handler.event, "matcher": handler.matcher.text or None, "if": spec.rule, "type": spec.type,
                           "source": handler.label.partition("]")[0].lstrip("["), "text": spec.text(),
                           "timeout": spec.timeout, "onFailure": spec.on_failure, "where": handler.where}
    return {key: value for key, value in row.items() if value is not None or key == "matcher"}


def _text(report: dict[str, Any]) -> str:
    lines: list[str] = []
    for row in report["hooks"]:
        extra = f" if {row['if']}" if "if" in row else ""
        lines.append(f"{row['event']:<20} {row['matcher'] or '*':<16}{extra} [{row['source']}] {row['type']}: {row['text']}")
    lines += [f"remark:  {text}" for text in report["remarks"]]
    lines += [f"problem: {text}" for text in report["problems"]]
    return "\n".join(lines or ["No hooks are configured."])
