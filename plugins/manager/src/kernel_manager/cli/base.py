"""What the commands share: options, answers, questions, progress."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
import typer

from kernel import run_app
from kernel_manager import show
from kernel_manager.candidates import Candidate
from kernel_manager.errors import ManagerError
from kernel_manager.pythons import Index
from kernel_manager.resolve import Wanted

Json = Annotated[bool, typer.Option("--json", help="one JSON object")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="only say what would happen")]
Scope = Annotated[str, typer.Option("--scope", "-s", help="user, project or local")]
MaybeScope = Annotated[str | None, typer.Option("--scope", "-s", help="user, project or local; where it is installed by default")]
FindLinks = Annotated[list[str] | None, typer.Option("--find-links", help="a folder of wheels, or a page that lists them")]
NoIndex = Annotated[bool, typer.Option("--no-index", help="take Python distributions from --find-links only")]
AllowBuild = Annotated[bool, typer.Option("--allow-build", help="build what has no wheel; this runs its code")]
USAGE = frozenset(("bad-spec", "bad-scope", "bad-option", "not-approved"))


def application(name: str, function: Callable[..., Any]) -> typer.Typer:
    app = typer.Typer(name=f"kernel plugins {name}", add_completion=False, rich_markup_mode=None)
    app.command()(function)
    return app


def call(app: typer.Typer, args: list[str]) -> int:
    """Run a typer application. An expected failure is one line, or one JSON object where that was asked for."""
    try:
        return run_app(app, args, str(app.info.name))
    except typer.Abort:
        print("Aborted; nothing was changed.", file=sys.stderr)
        return 1
    except ManagerError as error:
        return failed(error, as_json="--json" in args)


def failed(error: ManagerError, *, as_json: bool) -> int:
    if as_json:
        where = f"{error.context}: " if error.context else ""
        print(json.dumps({"ok": False, "error": {"type": error.type, "message": show.plain(f"{where}{error.message}"),
                                                 "hint": error.hint}}))
    print(f"Error: {show.plain(str(error))}", file=sys.stderr)
    return 2 if error.type in USAGE else 1


def answer(value: Any, text: str, *, as_json: bool) -> None:
    if as_json:
        data = msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value
        print(json.dumps(_camel(data), ensure_ascii=False))
    else:
        print("\n".join(map(show.plain, text.split("\n"))))


def _camel(data: dict[str, Any]) -> dict[str, Any]:
    always: dict[str, Any] = {"dependencies": [], "warnings": []} if data.get("action") in ("install", "update") else {}
    return always | {("dryRun" if key == "dry_run" else key): value for key, value in data.items()}


def say(text: str) -> None:
    """Progress, on standard error."""
    print(f"{show.plain(text)} ...", file=sys.stderr, flush=True)


def wanted(scope: str, *, find_links: list[str] | None = None, no_index: bool = False, allow_build: bool = False,
           yes: bool = False) -> Wanted:
    links = tuple(link if "://" in link else os.path.abspath(os.path.expanduser(link)) for link in find_links or ())
    index = Index(find_links=links, no_index=no_index, allow_build=allow_build)
    return Wanted(scope=scope, index=index, accept_commands=yes, say=say)


def approve(yes: bool, as_json: bool, before: Callable[[Candidate], Any]) -> Callable[[list[Candidate]], None]:
    """Show what plugins will do, and ask before anything of them can run.

    :param as_json: a program is at work, which cannot be asked.
    :param before: the description of the version that is in use, whose rights need no new answer.
    """
    def asked(candidates: list[Candidate]) -> None:
        runs = False
        for candidate in candidates:
            found, old = candidate.description, before(candidate)
            for line in show.lines(f"{candidate.id} {candidate.version}", found):
                print(line, file=sys.stderr)
            runs = runs or bool(found.runs and (old is None or old.runs != found.runs or old.capabilities != found.capabilities))
        if not runs or yes:
            return
        if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise ManagerError("not-approved", "it brings things that run, and nobody is here to ask; nothing was changed",
                               hint="look at what is listed above, then repeat it with --yes")
        if not typer.confirm("Go on?", err=True):
            raise ManagerError("not-approved", "nothing was changed")

    return asked
