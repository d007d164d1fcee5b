"""The tool ``Glob`` (tools contract, section 8)."""

from __future__ import annotations

import os
from time import monotonic
from typing import Any, NamedTuple

import anyio

from kernel import Tool, ToolContext, ToolError, ToolResult
from kernel_tools_files import manuals, schemas
from kernel_tools_files.folders import FolderTool
from kernel_tools_files.globs import WILD
from kernel_tools_files.paths import Target, absolute, check_folder, printable
from kernel_tools_files.rules import ReadRules

MAX_FILES = 100
SECONDS = 20.0
WSL_SECONDS = 60.0
ASK_AHEAD = 2_000
"""Up to so many matches the rules are asked about each, so that the total is exact; beyond, only about those that are listed."""


class Listing(NamedTuple):
    """Matches, newest first; ``complete`` is false where the time limit ended the walk."""

    files: list[str]
    complete: bool


class Glob(FolderTool):
    name = "Glob"
    description = "Finds files by a pattern of their names, newest first."
    input_schema = schemas.GLOB
    output_schema = schemas.GLOB_OUTPUT

    def __init__(self, read: Tool) -> None:
        self._read = read

    def prompt(self) -> str:
        return manuals.GLOB

    def prepare_input(self, input: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        prepared = super().prepare_input(input, context)
        prepared["path"], prepared["pattern"] = _split(prepared["pattern"], prepared["path"])
        return prepared

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        from kernel_tools_files.globs import Globs

        try:
            Globs(input["pattern"])
        except ValueError as error:
            raise ToolError("invalid_arguments", f"pattern: {error}") from None

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        target, clock = self.target(input), context.session.clock
        began = clock.monotonic()
        seconds = time_limit()
        listing = await anyio.to_thread.run_sync(_list, target, input["pattern"], seconds, abandon_on_cancel=True)
        rules = ReadRules(context, self._read)
        shown, total = await _allowed(listing.files, rules)
        if not listing.complete and not shown:
            raise ToolError("timeout", f"No file was found within {seconds:g} seconds, and not all folders were looked at. "
                            "Give a narrower path or pattern.")
        truncated = not listing.complete or total is None or total > len(shown)
        structured: dict[str, Any] = {
            "durationMs": round((clock.monotonic() - began) * 1000), "numFiles": len(shown),
            "filenames": [printable(name) for name in shown], "truncated": truncated}
        if truncated:
            structured["countIsComplete"] = listing.complete and total is not None
            structured["totalMatches"] = len(shown) if total is None else total
        return ToolResult(content=self.from_structured(structured), structured=structured, truncated=truncated,
                          status="empty" if not shown else "success" if listing.complete else "partial")

    def from_structured(self, structured: Any) -> str:
        names = structured["filenames"]
        if not names:
            return "No files found"
        lines = list(names)
        if structured["truncated"]:
            total = structured.get("totalMatches", len(names))
            known = f"{total}" if structured.get("countIsComplete") else f"at least {total}, since not all were counted"
            lines.append(f"(The newest {len(names)} are listed; found: {known}. Give a narrower path or pattern to see others.)")
        return "\n".join(lines)


def time_limit() -> float:
    """``CLAUDE_CODE_GLOB_TIMEOUT_SECONDS``, or 20 seconds (60 on WSL, whose file system is slow)."""
    try:
        given = float(os.environ.get("CLAUDE_CODE_GLOB_TIMEOUT_SECONDS", ""))
    except ValueError:
        given = 0.0
    if given > 0:
        return given
    return WSL_SECONDS if "WSL_DISTRO_NAME" in os.environ else SECONDS


def _split(pattern: str, path: str) -> tuple[str, str]:
    """The folder that is really searched, and the pattern below it. An absolute pattern, or one that begins with ``..``, moves
    the folder: rules are applied to ``path``, so it must say the truth."""
    if not pattern.strip() or "\0" in pattern:
        raise ToolError("invalid_arguments", "pattern: expected a glob, received an empty text or one with a NUL byte")
    pattern = os.path.expanduser(pattern) if pattern.startswith("~") else pattern
    parts = pattern.split("/")
    plain = 0
    while plain < len(parts) - 1 and WILD.isdisjoint(parts[plain]) and "\\" not in parts[plain]:
        plain += 1
    if not pattern.startswith("/") and ".." not in parts[:plain]:
        return path, pattern
    rest = "/".join(parts[plain:])
    return absolute("/".join(parts[:plain]) or "/", path, "pattern"), rest if "/" in rest else f"./{rest}"


def _list(target: Target, pattern: str, seconds: float) -> Listing:
    from kernel_tools_files.globs import Globs
    from kernel_tools_files.walk import walk

    check_folder(target)
    deadline = monotonic() + seconds

    def check() -> None:
        anyio.from_thread.check_cancelled()
        if monotonic() > deadline:
            raise TimeoutError

    found: list[tuple[int, str]] = []
    complete = True
    try:
        for entry in walk(target.real, Globs(pattern), check=check, hidden=not _is_off("CLAUDE_CODE_GLOB_HIDDEN"),
                          respect_ignores=_is_off("CLAUDE_CODE_GLOB_NO_IGNORE")):
            found.append((-_mtime(entry), entry.path))
    except TimeoutError:
        complete = False
    found.sort()
    return Listing([target.path + path[len(target.real):] if target.real != "/" else path for _, path in found], complete)


def _mtime(entry: os.DirEntry[str]) -> int:
    for follow in (True, False):
        try:
            return entry.stat(follow_symlinks=follow).st_mtime_ns
        except OSError:
            continue
    return 0


def _is_off(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in ("false", "0")


async def _allowed(files: list[str], rules: ReadRules) -> tuple[list[str], int | None]:
    """The first hundred that may be read, and how many there are in all; ``None`` where that was not counted."""
    from anyio.lowlevel import checkpoint

    count_all = len(files) <= ASK_AHEAD
    shown: list[str] = []
    total = 0
    for number, path in enumerate(files):
        if number % 200 == 199:
            await checkpoint()  # others want to run too
        if rules.denied(path):
            continue
        total += 1
        if len(shown) < MAX_FILES:
            shown.append(path)
        elif not count_all:
            return shown, None
    return shown, total
