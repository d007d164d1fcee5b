"""Commands that change the plugin set."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kernel_manager import removal
from kernel_manager.candidates import Candidate
from kernel_manager.cli.base import (
    AllowBuild,
    DryRun,
    FindLinks,
    Json,
    MaybeScope,
    NoIndex,
    Scope,
    Yes,
    answer,
    application,
    approve,
    failed,
    wanted,
)
from kernel_manager.describe import describe_stored
from kernel_manager.errors import ManagerError
from kernel_manager.operations import Answer, Work, asked_id, install, scope_of, update, working


def install_command(
    plugin: Annotated[str, typer.Argument(help="name@marketplace, ./folder, x.zip, x.whl, owner/repo, git+URL, npm:X, python:X")],
    scope: Scope = "user",
    config: Annotated[list[str] | None, typer.Option("--config", help="an option of the plugin: key=value")] = None,
    find_links: FindLinks = None, no_index: NoIndex = False, allow_build: AllowBuild = False, yes: Yes = False,
    dry_run: DryRun = False, json: Json = False,
) -> int:
    """Install a plugin and what it depends on, and enable it. What it will do is shown first."""
    options = _config(config or [])
    with working() as work:
        work.scopes.file(scope)
        want = wanted(scope, find_links=find_links, no_index=no_index, allow_build=allow_build, yes=yes)
        done = install(work, plugin, want, approve(yes or dry_run, json, _before(work)), config=options, dry_run=dry_run)
    return _tell(done, "installed", json)


def _config(given: list[str]) -> dict[str, str]:
    for item in given:
        if "=" not in item:
            raise ManagerError("bad-option", f"--config {item!r} must be key=value")
    return dict(item.split("=", 1) for item in given)


def _before(work: Work) -> Any:
    """The description of the version that is in use."""
    def found(candidate: Candidate) -> Any:
        record = work.state.find(candidate.id, work.scopes.projects)
        try:
            return describe_stored(work.home.root / record.install_path, work.home.root / record.base) if record else None
        except ManagerError:
            return None

    return found


def _tell(done: Answer, verb: str, json: bool) -> int:
    what = f"{done.id} {done.version} ({done.scope})"
    text = f"{verb.capitalize()} {what}" if done.changed else f"{what} is as it was"
    if done.dry_run:
        text = f"Would have {verb} {what}"
    if done.dependencies:
        text += f", with {', '.join(done.dependencies)}"
    if not json:
        text = "\n".join([text, *(f"  - {w}" for w in done.warnings)])
    answer(done, text, as_json=json)
    return 0


def uninstall_command(plugin: str, scope: MaybeScope = None,
                      keep_data: Annotated[bool, typer.Option("--keep-data", help="keep its data folder")] = False,
                      prune: Annotated[bool, typer.Option("--prune", help="also what only it needed")] = False,
                      yes: Yes = False, json: Json = False) -> int:
    """Take a plugin out of a scope. kernel plugins rollback brings it back."""
    with working() as work:
        id = asked_id(work.state, work.scopes.projects, plugin)
        done = removal.uninstall(work, id, scope, keep_data=keep_data, prune_after=prune)
    return _tell(done, "uninstalled", json)


def enable_command(plugin: str, scope: MaybeScope = None, json: Json = False) -> int:
    """Switch an installed plugin on, with what it depends on. What it will do is shown."""
    from kernel_manager.cli.reading import show_installed

    with working() as work:
        id = asked_id(work.state, work.scopes.projects, plugin)
        show_installed(work, id)
        done = removal.enable(work, id, scope)
    return _tell(done, "enabled", json)


def disable_command(plugin: Annotated[str | None, typer.Argument()] = None, scope: MaybeScope = None,
                    all: Annotated[bool, typer.Option("--all", "-a", help="every installed plugin")] = False,
                    json: Json = False) -> int:
    """Switch an installed plugin off; it stays installed."""
    if (plugin is None) != all or (all and scope is not None):
        raise typer.BadParameter("give a plugin, or --all (without --scope)")
    with working() as work:
        if plugin is not None:
            return _tell(removal.disable(work, asked_id(work.state, work.scopes.projects, plugin), scope), "disabled", json)
        edits: dict[str, dict[str, Any]] = {}
        off: list[str] = []
        for id in work.state.plugins:
            record = work.state.find(id, work.scopes.projects)
            if record is not None and work.scopes.enabled(id)[0] is True and work.scopes.managed(id) is not True:
                edits.setdefault(work.scopes.file(record.scope), {})[f"enabledPlugins/{id}"] = False
                off.append(id)
        if off:
            work.switch(edits, "disable --all", settings_first=True)
    text = f"Disabled {', '.join(off) or 'nothing'}"
    answer({"ok": True, "action": "disable", "ids": off, "changed": bool(off)}, text, as_json=json)
    return 0


def update_command(plugin: Annotated[str | None, typer.Argument(help="all of them by default")] = None, scope: MaybeScope = None,
                   find_links: FindLinks = None, no_index: NoIndex = False, allow_build: AllowBuild = False,
                   no_check: Annotated[bool, typer.Option("--no-check", help="do not import the new version first")] = False,
                   yes: Yes = False, dry_run: DryRun = False, json: Json = False) -> int:
    """Fetch a plugin again from where it came, check that it loads, and switch. A version that does not load is not taken."""
    results: list[Answer] = []
    problems: dict[str, str] = {}
    code = 0
    with working() as work:
        ids = [asked_id(work.state, work.scopes.projects, plugin)] if plugin else _here(work)
        _refresh(work, ids)
    for id in ids:
        try:
            with working() as work:
                if plugin is None and work.state.find(id, work.scopes.projects, scope) is None:
                    continue
                want = wanted(scope_of(work, id, scope), find_links=find_links, no_index=no_index, allow_build=allow_build,
                              yes=yes)
                results.append(update(work, id, want, approve(yes or dry_run, json, _before(work)), dry_run=dry_run,
                                      check=not no_check))
        except ManagerError as error:
            if plugin is not None:
                raise
            code = max(code, failed(error, as_json=False))
            problems[id] = str(error)
            continue
        if plugin is not None or not json:
            _tell(results[-1], "updated", json)
    if plugin is None and json:
        import msgspec

        updates = [msgspec.to_builtins(result) for result in results]
        answer({"ok": not code, "action": "update", "updates": updates, "failed": problems}, "", as_json=True)
    return code


def _here(work: Work) -> list[str]:
    return [id for id in work.state.plugins if work.state.find(id, work.scopes.projects) is not None]


def _refresh(work: Work, ids: list[str]) -> None:
    """The catalogues that the plugins come from, fetched again; one that cannot be keeps what it has."""
    for market in {id.rpartition("@")[2] for id in ids} & set(work.markets.known()):
        try:
            removal.update_marketplaces(work, market)
        except ManagerError as error:
            failed(error, as_json=False)


def outdated_command(find_links: FindLinks = None, no_index: NoIndex = False, json: Json = False) -> int:
    """Plugins that an update would change. Exit code 1 where there are any."""
    rows: list[dict[str, Any]] = []
    code = 0
    with working() as work:
        _refresh(work, _here(work))
        for id in _here(work):
            try:
                want = wanted(scope_of(work, id, None), find_links=find_links, no_index=no_index)
                found = update(work, id, want, lambda candidates: None, dry_run=True)
            except ManagerError as error:
                rows.append({"id": id, "error": str(error)})
                continue
            if found.changed:
                rows.append({"id": id, "version": found.before, "available": found.version, "scope": found.scope})
    code = 1 if rows else 0
    text = "\n".join(f"{r['id']}  {r.get('version', '')} -> {r.get('available', r.get('error'))}" for r in rows)
    answer({"ok": True, "action": "outdated", "plugins": rows}, text or "All plugins are up to date.", as_json=json)
    return code


def prune_command(scope: MaybeScope = None, dry_run: DryRun = False, yes: Yes = False, json: Json = False) -> int:
    """Remove plugins that came as dependencies and are needed no more. Without a terminal: only with --yes."""
    import sys

    only_say = dry_run or not (yes or (sys.stdin.isatty() and not json))
    with working() as work:
        if not only_say and not yes:
            found = removal.unneeded(work.state)
            only_say = not found or not typer.confirm(f"Remove {', '.join(i for i, _ in found)}?", err=True)
        done = removal.prune(work, scope, dry_run=only_say)
    names = done["removed"]
    listed = ", ".join(names) if isinstance(names, list) and names else "nothing"
    answer(done, f"Would remove {listed}" if only_say else f"Removed {listed}", as_json=json)
    return 0


def rollback_command(to: Annotated[int | None, typer.Option("--to", help="the number of an earlier state")] = None,
                     show: Annotated[bool, typer.Option("--list", help="show the earlier states")] = False,
                     dry_run: DryRun = False, json: Json = False) -> int:
    """Go back to the state before the last change, or to an earlier one."""
    with working(damaged=True) as work:
        if show:
            rows = [{"number": work.state.generation, "did": work.state.did, "current": True}]
            rows += [{"number": n, "did": _did(work, f), "current": False} for n, f in work.home.earlier()]
            answer({"ok": True, "states": rows}, "\n".join(f"{r['number']:>5}  {r['did']}" for r in rows), as_json=json)
            return 0
        done = removal.rollback(work, to, dry_run=dry_run)
    answer(done, f"Back at state {done['to']}; undone: {done['undone']}", as_json=json)
    return 0


def _did(work: Work, file: Any) -> str:
    try:
        return work.home.read(file).did or "nothing installed"
    except ManagerError:
        return "cannot be read"


def apps() -> dict[str, typer.Typer]:
    return {name: application(name, function) for name, function in (
        ("install", install_command), ("uninstall", uninstall_command), ("enable", enable_command), ("disable", disable_command),
        ("update", update_command), ("outdated", outdated_command), ("prune", prune_command), ("rollback", rollback_command))}
