"""``kernel doctor``: what works, what does not, and what to do. Runs with every plugin blocked, too."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel import CONTRACT, __version__
from kernel.cli.plugins import load_all
from kernel.errors import KernelError
from kernel.frontend import run_app
from kernel.harness import Harness
from kernel.options import Options

app = typer.Typer(add_completion=False)

NEEDED = (
    ("models", "anthropic", "model-anthropic", "no model can be asked"),
    ("policies", "rules", "permissions", "every tool call is refused"),
    ("stores", "files", "sessions", "conversations are not kept and cannot be resumed"),
    ("front_ends", "text", "headless", "kernel -p cannot print an answer"),
    ("tools", "Read", "tools-files", "the model cannot read or change files"),
    ("tools", "Bash", "tools-shell", "the model cannot run commands"),
)
"""(kind, name, the plugin that brings it, what its absence means)."""
PROGRAMS = (("git", "repositories are not described to the model"), ("bash", "the Bash tool falls back to sh"))


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object")] = False,
    block: Annotated[list[str] | None, typer.Option("--block", help="plugins to leave out; 'all' for every one")] = None,
    plugin_dir: Annotated[list[Path] | None, typer.Option("--plugin-dir", help="a plugin folder for this run")] = None,
    load: Annotated[bool, typer.Option("--load/--no-load", help="import every plugin and let it register what it brings")] = True,
) -> None:
    """Check settings, plugins, programs and keys. Exit code 1 where something is missing or broken."""
    report = examine(Options(block=block or [], plugin_dirs=plugin_dir or []), load=load)
    print(json.dumps(report, indent=1) if as_json else _text(report))
    raise typer.Exit(1 if report["problems"] else 0)


def examine(options: Options, *, load: bool = False) -> dict[str, Any]:
    """The report as plain data. ``problems`` are lines that say what is wrong and what to do."""
    problems: list[str] = []
    if "all" in options.block:
        from kernel.plugins import find

        options.block = [p.name for p in find(options.plugin_dirs)]
    try:
        harness = Harness(options)
    except KernelError as error:
        return {"version": __version__, "contract": CONTRACT, "plugins": [], "settings": [], "problems": [str(error)]}
    if load:
        _load_all(harness)
    problems += harness.announced
    for kind, name, plugin, meaning in NEEDED:
        provider = harness.plugins.provider(kind, name)
        if provider is None:
            problems.append(f"no plugin provides {kind} {name!r}: {meaning} (install kernel-{plugin})")
        elif provider.state != "ready":
            problems.append(f"plugin {provider.name} is {provider.state}: {meaning} ({'; '.join(provider.errors)})")
    problems += [f"the program {name!r} is not on PATH: {meaning}" for name, meaning in PROGRAMS if not shutil.which(name)]
    if not any(os.environ.get(n) for n in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "KERNEL_PROVIDER")):
        problems.append("no ANTHROPIC_API_KEY is set: the model cannot be asked (the scripted demo needs none)")
    warnings = [f"plugin {p.name}: {w}" for p in harness.plugins for w in p.warnings]
    return {"version": __version__, "contract": CONTRACT, "python": platform.python_version(),
            "config_dir": str(harness.settings.config_dir), "trusted": harness.settings.trusted,
            "settings": [{"scope": layer.scope, "path": layer.path} for layer in harness.settings.layers],
            "plugins": [p.row() for p in harness.plugins], "warnings": warnings, "problems": list(dict.fromkeys(problems))}


def _load_all(harness: Harness) -> None:
    """Import every plugin and fill every registry: what fails there would fail in a session, some of it without a word."""
    from kernel.manifest import KINDS

    for text in load_all(harness):
        harness.announce(text)
    with contextlib.redirect_stdout(sys.stderr):
        for kind in KINDS:
            harness.filled(kind)


def _text(report: dict[str, Any]) -> str:
    lines = [f"kernel {report['version']}, contract {report['contract']}, Python {report.get('python', '?')}",
             f"settings: {', '.join(s['scope'] + ' ' + s['path'] for s in report['settings']) or 'none'}",
             f"plugins:  {', '.join(p['name'] for p in report['plugins'] if p['state'] == 'ready') or 'none ready'}"]
    lines += [f"warning:  {w}" for w in report.get("warnings", ())]
    lines += [f"problem:  {p}" for p in report["problems"]]
    lines.append(f"{len(report['problems'])} problem(s)" if report["problems"] else "Everything works.")
    return "\n".join(lines)


def main(args: list[str]) -> int:
    return run_app(app, args, "kernel doctor")
