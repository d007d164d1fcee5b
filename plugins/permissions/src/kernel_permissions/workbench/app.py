"""The command line of the workbench: arguments in, exit codes out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel import run_app

app = typer.Typer(name="kernel permissions", no_args_is_help=True, add_completion=False, rich_markup_mode=None,
                  pretty_exceptions_enable=False)

AsJson = Annotated[bool, typer.Option("--json", help="print JSON")]
Settings = Annotated[str | None, typer.Option("--settings", metavar="FILE-OR-JSON", help="settings beside those of the scopes")]


@app.callback()
def root() -> None:
    """Permission rules: why a call is decided as it is, and whether rules do what they look like."""


@app.command()
def explain(
    tool: Annotated[str, typer.Option(help="the tool's name")] = "Bash",
    given: Annotated[str | None, typer.Option("--input", metavar="JSON", help="the call's input, one JSON object")] = None,
    command: Annotated[str | None, typer.Option(help="short for --input '{\"command\": ...}'")] = None,
    mode: Annotated[str | None, typer.Option(help="permission mode; the one that a session would start in by default")] = None,
    cwd: Annotated[Path | None, typer.Option(help="working directory; rules are read for it")] = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Decide one call with the rules of this folder and tell every step: the rule, its file and line, each part."""
    from .explain import explanation, text

    if (given is None) == (command is None):
        raise typer.BadParameter("give either --input or --command")
    input = {"command": command} if given is None else _object(given)
    report = explanation(tool, input, mode=mode, cwd=cwd or Path.cwd(), settings=settings)
    print(json.dumps(report, indent=1) if as_json else text(report))


@app.command("test")
def run_examples(
    file: Annotated[Path, typer.Argument(help="rules and examples, YAML or JSON")],
    as_json: AsJson = False,
) -> None:
    """Hold rules against examples that must be allowed, asked or denied. Exit code 1 where one is not."""
    from .examples import play, text

    report = play(file)
    print(json.dumps(report, indent=1) if as_json else text(report))
    raise typer.Exit(1 if report["wrong"] else 0)


@app.command()
def lint(
    cwd: Annotated[Path | None, typer.Option(help="the folder whose rules are looked at")] = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    """Find rules that are shadowed, dead, or mislead, in every scope. Exit code 1 for errors and warnings."""
    from .lint import findings, text

    found = findings(cwd or Path.cwd(), settings)
    print(json.dumps([f.row() for f in found], indent=1) if as_json else text(found))
    raise typer.Exit(1 if any(f.severity != "info" for f in found) else 0)


@app.command()
def check(batch: Annotated[bool, typer.Option("--batch", help="read calls from stdin, one JSON object a line")] = False) -> None:
    """Decide many calls: JSON lines {"id", "tool", "input", "rules", "mode", "cwd"} in, one answer a line out."""
    from .batch import serve

    if not batch:
        raise typer.BadParameter("give --batch; kernel permissions explain decides a single call")
    serve(sys.stdin.buffer, sys.stdout.buffer)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"--input is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise typer.BadParameter("--input must be one JSON object")
    return value


def main(args: list[str]) -> int:
    from .files import Unusable

    try:
        return run_app(app, args, "kernel permissions")
    except Unusable as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
