"""``kernel hooks``: what is configured, what a hook does, what hooks did (hooks contract, section 17)."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kernel import EVENTS, Harness, Options, UsageError
from kernel_command_hooks.hooks import snake

if TYPE_CHECKING:
    from kernel import Plugin
    from kernel_command_hooks.config import Table
    from kernel_command_hooks.handlers import Handler

USAGE = """kernel hooks list [--json] [--settings FILE-OR-JSON] [--plugin-dir DIR ...]
       kernel hooks test EVENT [--tool NAME] [--input JSON] [--json] [--settings FILE-OR-JSON] [--plugin-dir DIR ...]
       kernel hooks trace SESSION [--json]"""


class HooksCommand:
    """``list`` and ``trace`` only show; ``test`` runs the handlers that match."""

    name = "hooks"
    summary = "list configured hooks, try one out, show what hooks did in a session"

    def run(self, args: list[str]) -> int:
        """Exit code 1 where something does not work: in the configuration, or a handler that was tried."""
        try:
            given = _parser().parse_args(args)
        except SystemExit as error:
            if error.code == 0:
                return 0
            raise UsageError("kernel hooks cannot be used that way", hint=USAGE) from None
        show = {"list": _list, "test": _test, "trace": _trace}[given.what]
        report, text, code = show(given)
        print(json.dumps(report, indent=1) if given.json else text)
        return code


def _parser() -> ArgumentParser:
    parser = ArgumentParser(prog="kernel hooks", usage=USAGE)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("list", "test", "trace"):
        command = commands.add_parser(name, usage=USAGE)
        command.add_argument("--json", action="store_true")
        if name == "trace":
            command.add_argument("session")
            continue
        command.add_argument("--settings")
        command.add_argument("--plugin-dir", action="append", type=Path, default=[])
        if name == "test":
            command.add_argument("event")
            command.add_argument("--tool")
            command.add_argument("--input")
    return parser


def _options(given: Namespace) -> Options:
    return Options(settings=given.settings, plugin_dirs=[p.expanduser().absolute() for p in given.plugin_dir], persist=False)


# -- list --------------------------------------------------------------------------------------------------------------
def _list(given: Namespace) -> tuple[dict[str, Any], str, int]:
    from kernel_command_hooks.config import read

    harness = Harness(_options(given))
    stand_in: Any = SimpleNamespace(settings=harness.settings, plugins=harness.plugins, options=harness.options, plugin_state={})
    stand_in.root = stand_in
    table = read(stand_in)  # that is what it reads
    report = _report(table, [*harness.announced, *(p.text for p in table.problems)])
    report["python"] = [row for plugin in harness.plugins.ready for row in _python(plugin)]
    return report, _text(report), 1 if report["problems"] else 0


def _report(table: Table, problems: list[str]) -> dict[str, Any]:
    return {"hooks": [_row(h) for handlers in table.handlers.values() for h in handlers], "problems": problems,
            "remarks": table.remarks}


def _row(handler: Handler) -> dict[str, Any]:
    spec = handler.spec
    row: dict[str, Any] = {"event": handler.event, "matcher": handler.matcher.text or None, "if": spec.rule, "type": spec.type,
                           "source": handler.label.partition("]")[0].lstrip("["), "text": spec.text(),
                           "timeout": spec.timeout, "onFailure": spec.on_failure, "where": handler.where}
    return {key: value for key, value in row.items() if value is not None or key == "matcher"}


def _python(plugin: Plugin) -> list[dict[str, Any]]:
    """The events that a plugin's own code answers, by its manifest; nothing is imported.

    This plugin answers all of them, with the handlers that are listed above.
    """
    if not plugin.module or plugin.manifest is None or plugin.name == "command-hooks":
        return []
    answered = plugin.manifest.kernel.implements
    return [{"event": name, "plugin": plugin.name, "type": "python", "text": f"{plugin.module}.{hook}"}
            for name in EVENTS if (hook := snake(name)) in answered]


def _text(report: dict[str, Any]) -> str:
    lines: list[str] = []
    for row in report["hooks"]:
        extra = f" if {row['if']}" if "if" in row else ""
        lines.append(f"{row['event']:<20} {row['matcher'] or '*':<16}{extra} [{row['source']}] {row['type']}: {row['text']}")
    lines = lines or ["No hooks are configured in settings; plugins answer:" if report["python"] else "No hooks are configured."]
    for row in report["python"]:
        lines.append(f"{row['event']:<20} {'*':<16} [Plugin {row['plugin']}] python: {row['text']}")
    lines += [f"remark:  {text}" for text in report["remarks"]]
    lines += [f"problem: {text}" for text in report["problems"]]
    return "\n".join(lines)


# -- test --------------------------------------------------------------------------------------------------------------
def _test(given: Namespace) -> tuple[dict[str, Any], str, int]:
    import anyio

    from kernel_command_hooks.dry_run import as_text, try_event

    report = anyio.run(try_event, _options(given), given.event, given.tool, _object(given.input))
    failed = bool(report["problems"]) or any("failed" in row for row in report["handlers"])
    return report, as_text(report), 1 if failed else 0


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--input is no JSON: {error}", hint='for example --input \'{"command": "ls"}\'') from None
    if not isinstance(value, dict):
        raise UsageError("--input must be a JSON object", hint='for example --input \'{"command": "ls"}\'')
    return value


# -- trace -------------------------------------------------------------------------------------------------------------
def _trace(given: Namespace) -> tuple[dict[str, Any], str, int]:
    from kernel_command_hooks.trace_show import as_text, find, read

    report = read(find(given.session))
    return report, as_text(report) or "Nothing was traced.", 0
