"""The search without ripgrep: reads its options as JSON from stdin and writes what ``rg`` would (see ``engines.py``).

Runs in a process of its own, since a regular expression of Python's can take for ever and cannot be interrupted. Smaller than
ripgrep: Python's syntax; ignore files of the tree and of its repository but not global ones; a short list of file types.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # isolated: nothing else leads here

from kernel_tools_files.globs import Globs
from kernel_tools_files.walk import walk

COLUMNS = 2_000
TYPES = {
    "c": "*.{c,h}", "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h}", "css": "*.{css,scss}", "csharp": "*.cs", "go": "*.go",
    "html": "*.{html,htm}", "java": "*.java", "js": "*.{js,jsx,mjs,cjs,vue}", "json": "*.json", "kotlin": "*.{kt,kts}",
    "lua": "*.lua", "make": "{Makefile,*.mk}", "md": "*.{md,markdown,mdx}", "markdown": "*.{md,markdown,mdx}", "php": "*.php",
    "py": "*.{py,pyi}", "python": "*.{py,pyi}", "ruby": "*.{rb,gemspec}", "rust": "*.rs", "sh": "*.{sh,bash,zsh}", "sql": "*.sql",
    "swift": "*.swift", "toml": "*.toml", "ts": "*.{ts,tsx,mts,cts}", "txt": "*.txt", "xml": "*.xml", "yaml": "*.{yaml,yml}"}


class Refused(Exception):
    """A pattern, glob or type that cannot be used."""


def main() -> int:
    options = json.loads(sys.stdin.buffer.read())
    out = sys.stdout.buffer
    found = False
    try:
        for chunk in search(options):
            found = True
            out.write(chunk)
    except Refused as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 0
    out.flush()
    return 0 if found else 1


def search(options: dict[str, Any]) -> Iterator[bytes]:
    """:raises Refused: the engine's word on a pattern, glob or type."""
    flags = re.MULTILINE | (re.IGNORECASE if options.get("-i") else 0) | (re.DOTALL if options.get("multiline") else 0)
    try:
        pattern = re.compile(options["pattern"], flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise Refused(f"regex parse error: {error}") from None
    mode = options.get("output_mode", "files_with_matches")
    parted = False
    for name in _files(options):
        text = _text(name)
        if text is None:
            continue
        path = name.encode("utf-8", "surrogateescape") + b"\0"
        if mode == "files_with_matches":
            if pattern.search(text) if options.get("multiline") else any(pattern.search(x) for x in _lines(text)):
                yield path
            continue
        if mode == "content" and options.get("-o"):
            for number, part in _parts(pattern, text, bool(options.get("multiline"))):
                yield _line(path, number, ":", part, options)
            continue
        matched = _matched(pattern, text, bool(options.get("multiline")))
        if matched and mode == "count":
            yield b"%b%d\n" % (path, len(matched))
        elif matched:
            for chunk in _content(path, _lines(text), matched, options):
                if chunk != b"--\n" or parted:
                    yield chunk
                parted = True


def _files(options: dict[str, Any]) -> list[str]:
    """Files to search, newest first, as ``./a/b``."""
    entry = options["entry"]
    wanted = [Globs(g) for g in (_glob(options), TYPES.get(options.get("type", ""))) if g]
    if "type" in options and options["type"] not in TYPES:
        raise Refused(f"unrecognized file type: {options['type']} (known without ripgrep: {', '.join(sorted(TYPES))})")
    if os.path.isfile(entry):
        return [entry]
    negated = str(options.get("glob", "")).startswith("!")
    found = []
    for file in walk(".", Globs("**"), respect_ignores=True, hidden=True, check=lambda: None):
        names = file.path.split(os.sep)[1:]
        covered = [g.covers(names) for g in wanted]
        if negated and covered:
            covered[0] = not covered[0]
        if all(covered) and not file.is_symlink():
            found.append((-file.stat().st_mtime_ns, file.path))
    return [path for _, path in sorted(found)]


def _glob(options: dict[str, Any]) -> str:
    return str(options.get("glob", "")).removeprefix("!")


def _text(name: str) -> str | None:
    """The file's text; ``None`` for binary and unreadable ones."""
    try:
        data = Path(name).read_bytes()
    except OSError:
        return None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return None if b"\0" in data else data.decode("utf-8", "surrogateescape")


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _matched(pattern: re.Pattern[str], text: str, multiline: bool) -> list[int]:
    """Numbers of the lines with a match."""
    if not multiline:
        return [number for number, line in enumerate(_lines(text), 1) if pattern.search(line)]
    matched: dict[int, None] = {}
    number, at = 1, 0
    for found in pattern.finditer(text):
        number += text.count("\n", at, found.start())
        at = found.start()
        matched |= dict.fromkeys(range(number, number + found[0].count("\n") + 1))
    return list(matched)


def _parts(pattern: re.Pattern[str], text: str, multiline: bool) -> Iterator[tuple[int, str]]:
    """The matching parts with the numbers of their lines; empty ones are left out."""
    if not multiline:
        for number, line in enumerate(_lines(text), 1):
            yield from ((number, found[0]) for found in pattern.finditer(line) if found[0])
        return
    number, at = 1, 0
    for found in pattern.finditer(text):
        number += text.count("\n", at, found.start())
        at = found.start()
        yield from ((number + offset, part) for offset, part in enumerate(found[0].split("\n")) if part)


def _content(path: bytes, lines: list[str], matched: list[int], options: dict[str, Any]) -> Iterator[bytes]:
    around = options.get("-C", options.get("context"))
    before, after = options.get("-B", around or 0), options.get("-A", around or 0)
    hits = set(matched)
    shown = sorted({n for hit in matched for n in range(max(1, hit - before), min(len(lines), hit + after) + 1)})
    last = -1
    for number in shown:
        if number != last + 1 and (before or after):
            yield b"--\n"  # also ahead of the first group of a file
        yield _line(path, number, ":" if number in hits else "-", lines[number - 1], options)
        last = number


def _line(path: bytes, number: int, mark: str, text: str, options: dict[str, Any]) -> bytes:
    prefix = f"{number}{mark}" if options.get("-n", True) else ""
    return path + f"{prefix}{text[:COLUMNS]}\n".encode("utf-8", "surrogateescape")


if __name__ == "__main__":
    sys.exit(main())
