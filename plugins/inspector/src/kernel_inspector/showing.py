"""``kernel inspect``: find the session, then show it: as a page that is served, as a file, or as JSON."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from kernel import EntryStore, Harness, ModelInfo, Options, SessionError, UsageError
from kernel_inspector.model import SessionModel, encoded
from kernel_inspector.requests import Facts
from kernel_inspector.views import MOST_ROWS, requests, rows, summary

SLOW = 20_000_000
"""Bytes of a transcript that take half a second."""


def inspect(session: Annotated[str, Argument(help="a session's id, the beginning of one, its name, or a transcript file; "
                                                  "without one, the newest of this folder")] = "",
            port: Annotated[int, Option(help="of the local server; 0: any that is free")] = 0,
            no_open: Annotated[bool, Option("--no-open", help="open no browser")] = False,
            export: Annotated[Path | None, Option(help="write one file that needs no server, and end")] = None,
            json_: Annotated[bool, Option("--json", help="print what the page shows, and end")] = False) -> int:
    """Show a session as a local page, live while it runs."""
    model = find(session, Path.cwd())
    if sys.stderr.isatty() and model.path.is_file() and (size := model.path.stat().st_size) > SLOW:
        print(f"Reading {size / 1e6:.0f} MB ...", file=sys.stderr)
    model.poll()
    if json_:
        lanes = [{"id": lane.id, "rows": rows(lane, 0, MOST_ROWS), "requests": requests(lane)} for lane in model.lanes.values()]
        print(encoded({**summary(model), "content": lanes}).decode())
        return 0
    if export is not None:
        from kernel_inspector.exporting import export_page

        try:
            size = export_page(model, export)
        except OSError as error:
            raise UsageError(f"it cannot be written: {error.strerror or error}", context=f"--export {export}") from error
        print(f"{export}: {size / 1e6:.1f} MB, opens without a server", file=sys.stderr)
        return 0
    from kernel_inspector.serving import serve

    return serve(model, port, open_browser=not no_open)


def find(session: str, cwd: Path) -> SessionModel:
    """The session that is meant.

    :raises SessionError: there is none, or several begin so.
    """
    harness = Harness(Options(cwd=cwd, persist=False))
    facts = _facts(harness)
    if session.endswith(".jsonl"):
        path = Path(session).absolute()
        if not path.is_file():
            raise SessionError(f"there is no file {session}", context="kernel inspect")
        return SessionModel(path, facts=facts)
    store = harness.one("stores", str(harness.settings.own("kernel.store") or "files"))
    entries = store if isinstance(store, EntryStore) else None
    path = Path(harness.open_transcript(harness.options).path)
    if session and entries is None and (exact := _beginning(session.lower(), path.parent)):
        return SessionModel(exact, facts=facts)
    wanted = Options(cwd=cwd, persist=False, resume=session or None, continue_session=not session, print_mode=True)
    transcript = harness.open_transcript(wanted)
    if transcript.source != "resume" or not transcript.path:
        raise SessionError("there is no session of this folder", context="kernel inspect",
                           hint="kernel sessions list --all shows those of all folders")
    return SessionModel(Path(transcript.path), entries, facts)


def _facts(harness: Harness) -> Facts:
    """Window and prices of models, as far as a provider of this harness knows them."""
    @cache
    def facts(model: str) -> ModelInfo | None:
        try:
            return harness.provider_of(model)[1] if model else None
        except Exception:  # a provider may say anything about a model that it does not serve
            return None

    return facts


def _beginning(session: str, project: Path) -> Path | None:
    """The transcript whose id begins so: of this folder, else of all. Ids are hexadecimal (sessions contract, section 1)."""
    if len(session) < 6 or set(session) - set("0123456789abcdef-"):
        return None
    for folders in ([project], sorted(project.parent.glob("*"))):
        found = sorted({p for folder in folders for p in folder.glob(f"{session}*.jsonl") if p.stat().st_size})
        if len(found) > 1:
            raise UsageError(f"{len(found)} sessions begin with {session}", context="kernel inspect",
                             hint=f"give more of the id: {', '.join(p.stem for p in found[:5])}")
        if found:
            return found[0]
    return None
