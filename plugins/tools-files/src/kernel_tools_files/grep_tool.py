"""The tool ``Grep`` (tools contract, section 9)."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Any

import anyio

from kernel import Tool, ToolContext, ToolError, ToolResult
from kernel_tools_files import manuals, schemas
from kernel_tools_files.folders import FolderTool
from kernel_tools_files.paths import Target, check_regular, check_same, io_error, printable
from kernel_tools_files.rules import ReadRules

if TYPE_CHECKING:
    from kernel_tools_files.programs import Ended

LIMIT = 250
LINE_CHARS = 500
SECONDS = 20.0
ASK_AHEAD = 2_000
"""Up to so many files or lines the rules are asked about each, so that totals are exact; beyond the page and these the search
ends, and no total is told."""
MAX_CHARS = 2_000_000
"""Of collected lines, for calls without a limit."""

_BINARY = re.compile(r"(.*): (?:binary file matches|WARNING: stopped searching binary file).*", re.DOTALL)
_LINE = re.compile(r"(\d+)([:-])(.*)", re.DOTALL)


class Grep(FolderTool):
    name = "Grep"
    description = "Searches the content of files with a regular expression."
    input_schema = schemas.GREP
    output_schema = schemas.GREP_OUTPUT

    def __init__(self, read: Tool) -> None:
        self._read = read

    def prompt(self) -> str:
        return manuals.GREP

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        for field in ("pattern", "glob", "type"):
            value = input.get(field, "")
            if "\0" in value:
                raise ToolError("invalid_arguments", f"{field}: holds a NUL byte; write it as \\x00 in a pattern")
            if any(0xD800 <= ord(c) <= 0xDFFF for c in value):
                raise ToolError("invalid_arguments", f"{field}: holds half of a surrogate pair")

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        from kernel_tools_files import engines, programs

        target = self.target(input)
        folder, entry = await anyio.to_thread.run_sync(_place, target)
        found = Collector(input, target.path, entry == "./", context.cwd, ReadRules(context, self._read))
        engine = engines.engine_for(input, entry)
        try:
            ended = await programs.run_program(engine.command, found.take, seconds=SECONDS, cwd=folder, stdin=engine.stdin,
                                               separator=found.separator)
        except OSError as error:
            raise io_error(f"The search could not be started ({engine.command[0]})", error) from None
        if not found.seen:
            _check(ended)
        structured = found.structured(complete=ended.code is not None)
        notes = [engine.note] if engine.note else []
        if ended.timed_out:
            notes.append(f"(Stopped after {SECONDS:g} seconds; not all files were searched.)")
        content = "\n".join([self.from_structured(structured), *notes])
        return ToolResult(content=content, structured=structured, truncated=found.truncated or ended.timed_out,
                          status="partial" if ended.timed_out else "success" if found.seen else "empty")

    def from_structured(self, structured: Any) -> str:
        mode = structured.get("mode", "files_with_matches")
        listed = structured.get("content", "") if mode != "files_with_matches" else "\n".join(structured["filenames"])
        if not listed:
            if structured.get("totalFiles") or structured.get("totalLines"):
                return "No entries at this offset"
            return "No files found" if mode == "files_with_matches" else "No matches found"
        lines = [listed]
        if mode == "count":
            files, whole = structured.get("totalFiles"), "files in all"
            if files is None:
                files, whole = structured["numFiles"], "files that are listed; there are more"
            lines.append(f"({structured.get('numMatches', 0)} matching lines in {files} {whole})")
        if "appliedLimit" in structured:
            start, limit = structured.get("appliedOffset", 0), structured["appliedLimit"]
            total = f" of {structured['totalFiles']}" if "totalFiles" in structured and mode != "content" else ""
            lines.append(f"(Cut: {'lines' if mode == 'content' else 'entries'} {start + 1} to {start + limit}{total}. Go on with "
                         f"offset={start + limit}, or narrow the search.)")
        return "\n".join(lines)


def _place(target: Target) -> tuple[str, str]:
    """The working directory of the engine and the entry that it searches. Ignore files do not hide an entry that is named."""
    try:
        found = os.stat(target.path)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError("not_found", f"{target.shown} does not exist.") from None
    except OSError as error:
        raise io_error(f"{target.shown} cannot be searched", error) from None
    check_same(target, found)
    if stat.S_ISDIR(found.st_mode):
        return target.real, "./"
    check_regular(target.shown, found)
    folder, name = os.path.split(target.real)
    return folder, f"./{name}"


def _check(ended: Ended) -> None:
    """Why an engine may have found nothing. ``rg`` ends with 2 and no word where it could not read some file; that is no failure.

    :raises ToolError: ``timeout``, ``invalid_arguments``, ``search_failed``.
    """
    said = ended.stderr.strip()
    if ended.timed_out:
        raise ToolError("timeout", f"Nothing was found within {SECONDS:g} seconds, and not all files were searched. "
                        "Give a narrower path, glob or type.")
    if ended.code == 2 and said:
        raise ToolError("invalid_arguments", f"The search engine refused the call: {said}")
    if ended.code not in (0, 1, 2, None):
        raise ToolError("search_failed", f"The search engine ended with code {ended.code}: {said or 'it said nothing'}")


class Collector:
    """Takes the engine's output piece by piece: drops what may not be read, counts, and keeps the page that was asked for.

    ``seen``: entries (files, or lines in content mode) that were allowed, also those outside of the page.

    :param root: the folder or the one file that is searched, as it was asked for.
    """

    def __init__(self, input: dict[str, Any], root: str, is_folder: bool, cwd: str, rules: ReadRules) -> None:
        self.mode: str = input.get("output_mode", "files_with_matches")
        self.separator = b"\0" if self.mode == "files_with_matches" else b"\n"
        self.limit: int = input.get("head_limit", LIMIT)
        self.offset: int = input.get("offset", 0)
        self.seen = 0
        self.truncated = False
        self._root, self._is_folder, self._cwd, self._rules = root, is_folder, cwd, rules
        self._numbered: bool = input.get("-n", True)
        self._rest = b""            # of a file name with line breaks
        self._files: dict[str, int] = {}
        self._lines: list[str] = []
        self._chars = 0
        self._matches = 0
        self._gap = False

    def take(self, piece: bytes) -> bool:
        """False as soon as the page is full and more has come."""
        if self.mode == "files_with_matches":
            return self._take_file(piece, 1)
        piece = self._rest + piece.removesuffix(b"\r")  # rg ends its own lines so when it was told of such files
        self._rest = b""
        name, nul, text = piece.partition(b"\0")
        if nul:
            if self.mode == "count":
                return self._take_file(name, int(text) if text.isdigit() else 0)
            return self._take_line(name, text.decode("utf-8", "replace"))
        if piece == b"--":
            self._gap = True
        elif binary := _BINARY.fullmatch(os.fsdecode(piece)):
            if self.mode == "content":
                return self._take_line(os.fsencode(binary[1]), None)
        elif piece:
            self._rest = piece + b"\n"
        return True

    def _path(self, name: bytes) -> str | None:
        """The file's path; ``None`` if a rule hides it."""
        path = os.path.join(self._root, os.fsdecode(name.removeprefix(b"./"))) if self._is_folder else self._root
        return None if self._rules.denied(path) else path

    def _take_file(self, name: bytes, count: int) -> bool:
        path = self._path(name)
        if path is None:
            return True
        self.seen += 1
        self._matches += count
        if self.seen > self.offset and (not self.limit or len(self._files) < self.limit):
            self._files[printable(path)] = count
        elif self.seen > self.offset:
            self.truncated = True
            if self.seen >= ASK_AHEAD and self.seen > self.offset + self.limit:
                return False
        return True

    def _take_line(self, name: bytes, text: str | None) -> bool:
        path = self._path(name)
        if path is None:
            return True
        if (self.limit and len(self._lines) >= self.limit) or self._chars > MAX_CHARS:
            self.truncated = True
            return False
        self.seen += 1
        if self.seen <= self.offset:
            self._gap = False
            return True
        line = f"{self._shown(path)}{self._body(text)}"
        if self._gap and self._lines:
            line = f"--\n{line}"
        self._gap = False
        self._lines.append(line)
        self._chars += len(line)
        self._files[printable(path)] = self._files.get(printable(path), 0) + 1
        return True

    def _body(self, text: str | None) -> str:
        if text is None:
            return ": a binary file with a match"
        found = _LINE.fullmatch(text) if self._numbered else None
        prefix, line = (f"{found[2]}{found[1]}{found[2]}", found[3]) if found else (":", text)
        return f"{prefix}{line if len(line) <= LINE_CHARS else f'{line[:LINE_CHARS]}… (line cut)'}"

    def _shown(self, path: str) -> str:
        """In lines of content a path below the working directory is shortened: it stands in front of every line."""
        root = self._cwd.rstrip("/") + "/"
        return printable(path.removeprefix(root))

    def structured(self, *, complete: bool) -> dict[str, Any]:
        """The output object. Totals are given where the engine came to its end."""
        out: dict[str, Any] = {"mode": self.mode, "numFiles": len(self._files), "filenames": list(self._files)}
        if self.mode == "content":
            out |= {"content": "\n".join(self._lines), "numLines": len(self._lines)}
            if complete:
                out["totalLines"] = self.seen
        else:
            if complete:
                out["totalFiles"] = self.seen
            if self.mode == "count":
                out["content"] = "\n".join(f"{path}:{count}" for path, count in self._files.items())
                out["numMatches"] = self._matches if complete else sum(self._files.values())
        if self.truncated:
            out["appliedLimit"] = len(self._lines) if self.mode == "content" else len(self._files)
        if self.offset:
            out["appliedOffset"] = self.offset
        return out
