"""Repairs: edits that do not overlap, files written beside and renamed, nothing outside the paths that were named."""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field

from kernel_linter.rule import Edit, Fix, Report
from kernel_linter.source import File
from kernel_linter.tree import within


class Done(Struct):
    """What one pass did, by file, and what could not be done."""

    files: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(self.files.values())


def chosen(report: Report, *, unsafe: bool) -> Iterator[Fix]:
    for finding in report.findings:
        if finding.fix and (unsafe or finding.fix.kind == "safe"):
            yield finding.fix


def plan(report: Report, *, unsafe: bool) -> dict[str, tuple[File, list[Edit]]]:
    """Edits by file. A repair that overlaps one before it waits for the next pass, as a whole."""
    taken: dict[str, tuple[File, list[Edit]]] = {}
    for fix in chosen(report, unsafe=unsafe):
        if fix.edits and not any(_overlaps(edit, taken) for edit in fix.edits):
            for edit in fix.edits:
                taken.setdefault(os.path.abspath(edit.file.path), (edit.file, []))[1].append(edit)
    return taken


def _overlaps(edit: Edit, taken: dict[str, tuple[File, list[Edit]]]) -> bool:
    others = taken.get(os.path.abspath(edit.file.path), (None, []))[1]
    return any(edit.start <= o.end and o.start <= edit.end for o in others)


def edited(file: File, edits: Iterable[Edit]) -> str:
    text = file.text
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        text = text[:edit.start] + edit.text + text[edit.end:]
    return text


def difference(report: Report, *, unsafe: bool) -> str:
    """The repairs as a unified diff; renames and bits in words."""
    out: list[str] = []
    for file, edits in plan(report, unsafe=unsafe).values():
        out += difflib.unified_diff(file.text.splitlines(True), edited(file, edits).splitlines(True), f"a/{file.shown}",
                                    f"b/{file.shown}")
    for fix in chosen(report, unsafe=unsafe):
        out += [f"chmod +x {path}\n" for path in fix.executable] + [f"rename {a} {b}\n" for a, b in fix.moves]
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in out)


def repair(report: Report, paths: Iterable[Path], *, unsafe: bool) -> Done:
    """Do what can be done without overlap."""
    done = Done()
    roots = [p if p.is_dir() else p.parent for p in paths]
    for file, edits in plan(report, unsafe=unsafe).values():
        if _allowed(file.path, roots, done) and _write(file, edited(file, edits), done):
            done.files[file.shown] = done.files.get(file.shown, 0) + len(edits)
    moved: set[str] = set()
    for fix in chosen(report, unsafe=unsafe):
        for path in fix.executable:
            if _allowed(Path(path), roots, done) and _make_executable(path, done):
                done.files[path] = done.files.get(path, 0) + 1
        for source, target in fix.moves:
            if source not in moved and _allowed(Path(source), roots, done) and _allowed(Path(target).parent, roots, done,
                                                                                        new=True):
                moved.add(source)
                if _move(source, target, done):
                    done.files[target] = done.files.get(target, 0) + 1
    return done


def _allowed(path: Path, roots: list[Path], done: Done, new: bool = False) -> bool:
    while new and not path.exists() and path.parent != path:
        path = path.parent
    if within(path, *roots):
        return True
    done.problems.append(f"{path}: lies outside the paths that were named; not repaired")
    return False


def _write(file: File, text: str, done: Done) -> bool:
    """Write beside the file and rename, with its mode; a file with bytes that are no UTF-8 is left alone."""
    if text == file.text:
        return False
    target = os.path.realpath(file.path)
    if "\ufffd" in file.text and file.text.encode("utf-8", "replace") != file.raw:
        done.problems.append(f"{file.shown}: holds bytes that are not UTF-8; not repaired")
        return False
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode)
        handle, name = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".lint-")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(text.encode("utf-8", "surrogatepass"))
                out.flush()
                os.fsync(out.fileno())
            os.chmod(name, mode)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        done.problems.append(f"{file.shown}: cannot be written: {error.strerror}")
        return False
    return True


def _make_executable(path: str, done: Done) -> bool:
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & 0o111:
            return False
        os.chmod(path, mode | (mode & 0o444) >> 2)
    except OSError as error:
        done.problems.append(f"{path}: cannot be made executable: {error.strerror}")
        return False
    return True


def _move(source: str, target: str, done: Done) -> bool:
    """Rename without replacing anything. A name that differs by letter case only is no other file on some systems."""
    try:
        if os.path.lexists(target) and not (os.path.lexists(source) and os.path.samefile(source, target)):
            done.problems.append(f"{target}: exists already; {source} stays")
            return False
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(source, target)
    except OSError as error:
        done.problems.append(f"{source}: cannot be renamed: {error.strerror}")
        return False
    return True
