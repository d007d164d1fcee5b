"""What each word behind ``kernel sessions`` does. Results on stdout; 0 fine, 1 problems found, 2 wrong usage."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, TextIO

from typer import Argument, Option

from kernel import Clock, SessionError, UsageError
from kernel_sessions import find, keeping
from kernel_sessions.entries import plain_tag
from kernel_sessions.inspecting import Finding, findings, rewritten
from kernel_sessions.listing import listed
from kernel_sessions.paths import all_projects, is_session_id, reading_dirs, transcripts
from kernel_sessions.reader import read

_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
Json = Annotated[bool, Option("--json", help="JSON instead of a table")]
Session = Annotated[str, Argument(help="a session's id, the beginning of one, or its name")]
All = Annotated[bool, Option("--all", help="of all folders")]


def list_(all_: All = False, limit: Annotated[int, Option(help="at most so many, the newest; 0: all")] = 50,
          json_: Json = False) -> int:
    found = listed(_folders(all_))
    shown = found[:limit] if limit > 0 else found
    if json_:
        _say(json.dumps([item.wire() for item in shown], indent=1, ensure_ascii=False))
        return 0
    for item in shown:
        tag = f" [{plain_tag(item.tag)}]" if item.tag else ""
        print(f"{item.session_id}  {item.changed:%Y-%m-%d %H:%M}  {_size(item.size):>8}  {_harmless(item.shown[:80])}{tag}")
    more = len(found) - len(shown)
    print(f"{len(found)} sessions" + (f", {more} older ones not shown (--limit 0)" if more else "") if found
          else "No sessions here; --all looks in every folder.")
    return 0


def show_(session: Session, json_: Json = False) -> int:
    loaded = _loaded(session)
    from kernel_sessions.exporting import as_json, as_text

    _say(as_json(loaded) if json_ else as_text(loaded))
    _warn(loaded.journal.problems())
    return 0


def check_(session: Annotated[str, Argument(help="a session; without one, those of this folder")] = "", all_: All = False,
           json_: Json = False) -> int:
    paths = [_path(session)] if session else [path for folder in _folders(all_) for path, _ in transcripts(folder)]
    found: list[tuple[Path, Finding]] = []
    for number, path in enumerate(paths, 1):
        if len(paths) > 20 and number % 20 == 0:
            print(f"{number} of {len(paths)}", file=sys.stderr)
        found += [(path, finding) for finding in _findings(path)]
    if json_:
        print(json.dumps([{"session": path.stem, "path": str(path), **finding.wire()} for path, finding in found], indent=1))
    else:
        for path, finding in found:
            where = f"{path}:{finding.line}" if finding.line else str(path)
            _say(f"{where}: {finding.kind}: {finding.text}")
        print(f"{len(paths)} sessions looked at, {sum(f.is_problem for _, f in found)} problems.")
    return 1 if any(f.is_problem for _, f in found) else 0


def repair_(session: Session, dry_run: Annotated[bool, Option("--dry-run", help="say what would be done")] = False,
            json_: Json = False) -> int:
    path = _path(session)
    keeping.refuse_running(path.stem)
    new, done = rewritten(read(path), Clock())
    saved = None
    if done and not dry_run:
        saved = keeping.replace(path, new)
    if json_:
        print(json.dumps({"session": path.stem, "done": done, "original": str(saved) if saved else None}, indent=1))
    else:
        _say("\n".join([f"{'would be ' if dry_run else ''}mended: {what}" for what in done] or ["Nothing to mend."]))
        if saved:
            print(f"The file as it was: {saved}")
    return 0


def export_(session: Session, format_: Annotated[str, Option("--format", help="markdown, json or jsonl")] = "markdown",
            output: Annotated[str, Option("--output", "-o", help="a file, instead of stdout")] = "") -> int:
    from kernel_sessions import exporting

    formats = {"markdown": exporting.as_markdown, "json": exporting.as_json, "jsonl": exporting.as_lines}
    if format_ not in formats:
        raise UsageError(f"--format {format_}: expected one of {', '.join(formats)}")
    loaded = _loaded(session)
    text = formats[format_](loaded)
    if output:
        place = Path(output)
        try:
            place.write_text(text, "utf-8", "replace")
            place.chmod(0o600)
        except OSError as error:
            raise UsageError(f"--output {output}: {error.strerror or error}") from None
        print(f"written: {output}", file=sys.stderr)
    else:
        _say(text)
    _warn(loaded.journal.problems())
    return 0


def rename_(session: Session, title: Annotated[str, Argument(help="the name")]) -> int:
    keeping.rename(_path(session), title)
    return 0


def tag_(session: Session, tag: Annotated[str, Argument(help="the tag; none removes it")] = "") -> int:
    keeping.tag(_path(session), tag)
    return 0


def delete_(sessions: Annotated[list[str], Argument(help="ids or names")],
            yes: Annotated[bool, Option("--yes", "-y", help="do not ask")] = False) -> int:
    paths = [_path(session) for session in sessions]
    for path in paths:
        keeping.refuse_running(path.stem)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("nobody can be asked here", hint="--yes removes without asking")
        print("\n".join(str(path) for path in paths), file=sys.stderr)
        if input("Remove for good? [y/N] ").strip().lower() not in ("y", "yes"):
            return 1
    for path in paths:
        print("\n".join(f"removed: {gone}" for gone in keeping.delete(path)))
    return 0


# -- which ones ------------------------------------------------------------------------------------------------------------
def _folders(all_: bool) -> list[Path]:
    return all_projects() if all_ else reading_dirs(str(Path.cwd()))


def _path(name: str) -> Path:
    """The transcript that is meant, readable or not.

    :raises SessionError: none, or several.
    """
    near = find.repository_dirs(str(Path.cwd()))
    folders = [*near, *(d for d in all_projects() if d not in near)]
    every = [path for folder in folders for path, _ in transcripts(folder)]
    if is_session_id(name):
        found = [path for path in every if path.stem.lower() == name.lower()]
    else:
        found = [path for path in every if len(name) >= 6 and path.stem.lower().startswith(name.lower())]
        found = found or [item.path for item in listed(near) if item.title == name]
    if not found:
        raise SessionError(f"No session found: {name}", hint="kernel sessions list --all shows all")
    if len({path.stem for path in found}) > 1:
        raise SessionError(f"{len(found)} sessions are called {name!r}", hint=f"take one: {', '.join(p.stem for p in found[:5])}")
    return found[0]


def _loaded(name: str) -> find.Loaded:
    """:raises SessionError: as ``_path``, or there is no conversation in it."""
    path = _path(name)
    loaded = find.load(path)
    if loaded is None:
        raise SessionError(f"No conversation in {path}", hint="kernel sessions check says why")
    return loaded


def _findings(path: Path) -> list[Finding]:
    try:
        return findings(read(path))
    except OSError as error:
        return [Finding("unreadable", 0, str(error.strerror or error))]


def _warn(problems: list[str]) -> None:
    for problem in problems:
        _say(f"Warning: {problem}", sys.stderr)


def _say(text: str, to: TextIO | None = None) -> None:
    """What others wrote: to a file or a pipe as it is, to a terminal without what would steer it."""
    to = to or sys.stdout
    print(_harmless(text) if to.isatty() else text, file=to)


def _harmless(text: str) -> str:
    """What somebody wrote, without what would steer the terminal."""
    return _STEERS.sub("\ufffd", text)


def _size(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} KB"
