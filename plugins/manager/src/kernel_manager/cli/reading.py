"""Commands that only look: list, info, search."""

from __future__ import annotations

import json as jsons
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel import Plugin
from kernel_manager import listing, show
from kernel_manager.cli.base import AllowBuild, FindLinks, Json, NoIndex, application, wanted
from kernel_manager.describe import Description, describe, describe_stored
from kernel_manager.errors import ManagerError
from kernel_manager.operations import Work, asked_id, working
from kernel_manager.sources import parse
from kernel_manager.wheels import Code


def list_command(
    json: Annotated[bool, typer.Option("--json", help="one JSON array; with --available one object")] = False,
    available: Annotated[bool, typer.Option("--available", help="also what the marketplaces offer (with --json)")] = False,
    plugin_dir: Annotated[list[Path] | None, typer.Option("--plugin-dir", help="a plugin folder for this run")] = None,
    block: Annotated[list[str] | None, typer.Option("--block", help="plugins to leave out")] = None,
    check: Annotated[bool, typer.Option("--check", help="import each plugin's module and compare it with its manifest")] = False,
) -> int:
    """Every plugin with its version, state and what it brings. Exit code 1 where one is broken."""
    if available and not json:
        raise typer.BadParameter("--available needs --json")
    rows = listing.rows(plugin_dir or [], block or [], check=check)
    if available:
        offered = [{k: v for k, v in row.items() if k != "installed"} for row in listing.search("", None) if not row["installed"]]
        print(jsons.dumps({"installed": rows, "available": offered}, indent=1))
    elif json:
        print(jsons.dumps(rows, indent=1))
    elif not rows:
        print("No plugins are installed. The default set comes with: pip install -r requirements.txt")
    else:
        _table(rows)
    return 1 if any(row["state"] == "broken" for row in rows) else 0


def _table(rows: list[dict[str, Any]]) -> None:
    names = [row["id"] if row["source"] == "installed" else row["name"] for row in rows]
    width, versions = max(map(len, names)), max(9, *(len(row["version"]) for row in rows))
    for name, row in zip(names, rows, strict=True):
        scope = f"({row['scope']}) " if row["scope"] else ""
        print(show.plain(f"{name:<{width}}  {row['version']:<{versions}} {row['state']:<8} "
                         f"{scope}{show.brings(row['provides'], row['hooks']) or row['source']}"))
        for problem in dict.fromkeys([*(p["message"] for p in row["problems"]), *row["warnings"]]):
            print(show.plain(f"{'':<{width}}  - {problem}"))


def show_installed(work: Work, id: str) -> None:
    record = work.state.find(id, work.scopes.projects)
    if record is not None:
        found = describe_stored(work.home.root / record.install_path, work.home.root / record.base)
        for line in show.lines(f"{id} {record.version}", found):
            print(line, file=sys.stderr)


def info_command(plugin: Annotated[str, typer.Argument(help="an installed plugin, or any source")], find_links: FindLinks = None,
                 no_index: NoIndex = False, allow_build: AllowBuild = False, json: Json = False) -> int:
    """What a plugin brings, needs and will do, read from its files. A source is fetched, and nothing of it is kept."""
    with working(looking=True) as work:
        data: dict[str, Any]
        try:
            id = asked_id(work.state, work.scopes.projects, plugin)
        except ManagerError as error:
            if error.type == "ambiguous":
                raise
            theirs = listing.of_environment(plugin)
            if theirs is not None:
                return _of_environment(theirs, json)
            source = parse(plugin, work.scopes.cwd)
            want = wanted("user", find_links=find_links, no_index=no_index, allow_build=allow_build)
            candidate = work.resolver(want).add(source)
            found = candidate.description
            data = {"id": candidate.id, "version": candidate.version, "installed": False, "from": str(candidate.fetched.source)}
        else:
            record = work.state.find(id, work.scopes.projects)
            assert record is not None
            found = describe_stored(work.home.root / record.install_path, work.home.root / record.base)
            data = {"id": id, "version": record.version, "installed": True, "from": str(record.source), "scope": record.scope,
                    "enabled": work.scopes.enabled(id)[0] is True, "intact": found.digest == record.digest,
                    "installPath": str(work.home.root / record.install_path), "commit": record.git_commit_sha,
                    "distributions": [f"{d.name} {d.version}" for d in record.distributions]}
        _tell(found, data, json)
    return 0


def _of_environment(plugin: Plugin, json: bool) -> int:
    """A plugin that pip installed: nothing of it is the manager's, and it says who leaves it out."""
    code = Code(name=plugin.name, module=plugin.module) if plugin.module else None
    found = describe(plugin.root, code=code, hashed=False)
    data: dict[str, Any] = {
        "id": plugin.id, "version": plugin.version, "installed": True, "from": f"{plugin.distribution} (pip)",
        "enabled": plugin.state == "ready", "installPath": str(plugin.root), "state": plugin.state, "problems": plugin.errors}
    if not json:
        data["left out with"] = f'--block {plugin.name}, or {{"kernel": {{"blocked": ["{plugin.name}"]}}}} in settings'
    _tell(found, data, json)
    return 0


def _tell(found: Description, data: dict[str, Any], json: bool) -> None:
    if json:
        print(jsons.dumps(show.facts(found) | data, indent=1, default=str))
        return
    print("\n".join(show.lines(f"{data['id']} {data['version']}", found)))
    told = {key: value for key, value in data.items() if key not in ("id", "version") and value}
    print("\n".join(f"  {key}: {show.plain(str(value))}" for key, value in told.items()))


def search_command(text: Annotated[str, typer.Argument(help="words; all must be found")] = "",
                   marketplace: Annotated[str | None, typer.Option("--marketplace", help="only this one")] = None,
                   json: Json = False) -> int:
    """Find plugins in the marketplaces that are known. Exit code 1 where nothing is found."""
    rows = listing.search(text, marketplace)
    if json:
        print(jsons.dumps(rows, indent=1))
    elif not rows:
        print("Nothing was found in the marketplaces that are known (kernel plugins marketplace list).", file=sys.stderr)
    else:
        width = max(len(row["pluginId"]) for row in rows)
        for row in rows:
            mark = "*" if row["installed"] else " "
            print(show.plain(f"{mark} {row['pluginId']:<{width}}  {row['description'] or ''}"))
    return 0 if rows else 1


def apps() -> dict[str, typer.Typer]:
    return {name: application(name, function) for name, function in (
        ("list", list_command), ("info", info_command), ("search", search_command))}
