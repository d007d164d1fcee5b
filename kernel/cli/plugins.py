"""``kernel plugins list``: what was found, read from manifests; no plugin code runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel.frontend import run_app
from kernel.harness import Harness
from kernel.options import Options

app = typer.Typer(help="The plugins of this harness.", no_args_is_help=True, add_completion=False)


@app.callback()
def root() -> None:
    """The plugins of this harness."""


@app.command("list")
def list_plugins(
    as_json: Annotated[bool, typer.Option("--json", help="one JSON array")] = False,
    plugin_dir: Annotated[list[Path] | None, typer.Option("--plugin-dir", help="a plugin folder for this run")] = None,
    block: Annotated[list[str] | None, typer.Option("--block", help="plugins to leave out")] = None,
    check: Annotated[bool, typer.Option("--check", help="import each plugin's module and compare it with its manifest")] = False,
) -> None:
    """Every plugin with its version, state and what it brings. Exit code 1 where one is broken."""
    harness = Harness(Options(plugin_dirs=plugin_dir or [], block=block or []))
    if check:
        load_all(harness)
    rows = [plugin.row() for plugin in harness.plugins]
    if as_json:
        print(json.dumps(rows, indent=1))
    elif not rows:
        print("No plugins are installed. The default set comes with: pip install -r requirements.txt")
    else:
        width = max(len(r["name"]) for r in rows)
        for r in rows:
            print(f"{r['name']:<{width}}  {r['version']:<9} {r['state']:<8} {_brings(r)}")
            for problem in [*r["errors"], *r["warnings"]]:
                print(f"{'':<{width}}  - {problem}")
    raise typer.Exit(1 if any(r["state"] == "broken" for r in rows) else 0)


def load_all(harness: Harness) -> list[str]:
    """Import every ready plugin; what is wrong with those that cannot be used. They are broken now, and their rows say why."""
    from kernel.errors import KernelError
    from kernel.usable import ensure_usable

    wrong: list[str] = []
    for plugin in harness.plugins.ready:
        try:
            ensure_usable(plugin)
        except KernelError as error:
            wrong.append(str(error))
    return wrong


def _brings(row: dict[str, Any]) -> str:
    """What it registers by kind, and the events that its Python part answers."""
    from kernel.events import EVENTS

    parts = [f"{kind}: {' '.join(names)}" for kind, names in row["provides"].items()]
    answered = [name for name in row["hooks"] if not name.startswith("register_")]
    if answered:
        parts.append("hooks: " + ("every event" if len(answered) == len(EVENTS) else " ".join(answered)))
    return ", ".join(parts) or row["source"]


def main(args: list[str]) -> int:
    if not args or args[0] in ("-h", "--help"):
        from kernel.cli.commands import group

        rows = dict(group("plugins"))
        rows.setdefault("list", "every plugin with its version, state and what it brings")
        width = max(map(len, rows))
        print("\n".join(["usage: kernel plugins COMMAND [arguments]", "",
                         *(f"  {word:<{width}}  {told}" for word, told in sorted(rows.items()))]))
        return 0 if args else 2
    return run_app(app, args, "kernel plugins")
