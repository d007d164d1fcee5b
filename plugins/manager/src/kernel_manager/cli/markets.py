"""``kernel plugins marketplace add|list|update|remove``."""

from __future__ import annotations

import json as jsons
import sys
from typing import Annotated

import typer

from kernel_manager import listing, removal, show
from kernel_manager.cli.base import Json, MaybeScope, Scope, answer
from kernel_manager.operations import working

app = typer.Typer(name="kernel plugins marketplace", help="Marketplaces: where plugins are found.", no_args_is_help=True,
                  add_completion=False, rich_markup_mode=None)


@app.command("add")
def add_command(source: Annotated[str, typer.Argument(help="owner/repo[@ref], git URL, URL of a marketplace.json, folder, file")],
                scope: Scope = "user", json: Json = False) -> int:
    """Fetch a marketplace's catalogue and remember it."""
    with working() as work:
        work.scopes.file(scope)
        done = removal.add_marketplace(work, source, scope)
    answer(done, f"Added the marketplace {done['name']} with {done['plugins']} plugins", as_json=json)
    return 0


@app.command("list")
def list_command(json: Json = False) -> int:
    """Every marketplace that is known."""
    rows = listing.marketplaces()
    if json:
        print(jsons.dumps(rows, indent=1))
    elif not rows:
        print("No marketplaces are known. Add one: kernel plugins marketplace add SOURCE", file=sys.stderr)
    for row in rows if not json else ():
        where = row.get("repo") or row.get("url") or row.get("path") or ""
        print(show.plain(f"{row['name']:<24} {row['source']:<10} {where}  {row.get('error') or ''}".rstrip()))
    return 1 if any("error" in row for row in rows) else 0


@app.command("update")
def update_command(name: Annotated[str | None, typer.Argument(help="all by default")] = None, json: Json = False) -> int:
    """Fetch catalogues again. Exit code 1 where one cannot be fetched; it keeps what it had."""
    with working() as work:
        done = removal.update_marketplaces(work, name)
    failed = done["failed"]
    lines = [f"Changed: {', '.join(done['changed']) or 'nothing'}" if isinstance(done["changed"], list) else ""]
    lines += [f"  - {n}: {e}" for n, e in failed.items()] if isinstance(failed, dict) else []
    answer(done, "\n".join(lines), as_json=json)
    return 0 if done["ok"] else 1


@app.command("remove")
def remove_command(name: str, scope: MaybeScope = None,
                   keep_data: Annotated[bool, typer.Option("--keep-data", help="keep the data of its plugins")] = False,
                   json: Json = False) -> int:
    """Forget a marketplace; from its last scope its plugins are uninstalled, too."""
    with working() as work:
        done = removal.remove_marketplace(work, name, scope, keep_data=keep_data)
    gone = done["uninstalled"]
    answer(done, f"Removed {name}" + (f" and {', '.join(gone)}" if isinstance(gone, list) and gone else ""), as_json=json)
    return 0


app.command("rm", hidden=True)(remove_command)


def apps() -> dict[str, typer.Typer]:
    return {"marketplace": app}
