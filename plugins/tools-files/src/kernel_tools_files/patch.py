"""The difference between two texts as hunks, the ``structuredPatch`` of tool results (tools contract, section 5)."""

from __future__ import annotations

from typing import Any

CONTEXT = 3
DIFF_LINES = 20_000
"""With more differing lines than this, the whole stretch is one hunk: a finer difference would take seconds."""

Change = tuple[int, int, int, int]
"""Lines ``old[a:b]`` become ``new[c:d]``."""


def structured_patch(old: str, new: str) -> list[dict[str, Any]]:
    """Hunks ``{oldStart, oldLines, newStart, newLines, lines}``; lines begin with a blank, ``-`` or ``+``, as in a unified diff.

    Line ends are left out; a missing one at the end of a text is the line ``\\ No newline at end of file``.
    """
    if old == new:
        return []
    a, b = _lines(old), _lines(new)
    return [_hunk(a, b, group) for group in _groups(_changes(a, b))]


def _lines(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _changes(a: list[str], b: list[str]) -> list[Change]:
    """The differing stretches. What is common at both ends is taken off first, so that an edit of a large file is cheap."""
    front, shorter = 0, min(len(a), len(b))
    while front < shorter and a[front] == b[front]:
        front += 1
    back = 0
    while back < shorter - front and a[-1 - back] == b[-1 - back]:
        back += 1
    old, new = a[front:len(a) - back], b[front:len(b) - back]
    if not old or not new:
        return [(front, front + len(old), front, front + len(new))]
    if len(old) + len(new) > DIFF_LINES:
        if len(old) != len(new):
            return [(front, front + len(old), front, front + len(new))]
        return [(n, n + 1, n, n + 1) for n, (x, y) in enumerate(zip(old, new, strict=True), front) if x != y]
    from difflib import SequenceMatcher

    return [(front + i, front + j, front + k, front + m)
            for tag, i, j, k, m in SequenceMatcher(None, old, new).get_opcodes() if tag != "equal"]


def _groups(changes: list[Change]) -> list[list[Change]]:
    """Changes that share their context lines form one hunk."""
    groups: list[list[Change]] = []
    for change in changes:
        if groups and change[0] - groups[-1][-1][1] <= 2 * CONTEXT:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _hunk(a: list[str], b: list[str], group: list[Change]) -> dict[str, Any]:
    first, last = group[0], group[-1]
    before = min(CONTEXT, first[0])
    after = min(CONTEXT, len(a) - last[1])
    lines: list[str] = []
    at = first[0] - before
    for i, j, k, m in group:
        lines += _marked(" ", a[at:i]) + _marked("-", a[i:j]) + _marked("+", b[k:m])
        at = j
    lines += _marked(" ", a[at:at + after])
    old_lines = last[1] + after - (first[0] - before)
    new_lines = last[3] + after - (first[2] - before)
    return {"oldStart": first[0] - before + (1 if old_lines else 0), "oldLines": old_lines,
            "newStart": first[2] - before + (1 if new_lines else 0), "newLines": new_lines, "lines": lines}


def _marked(mark: str, lines: list[str]) -> list[str]:
    out = []
    for line in lines:
        out.append(mark + line.rstrip("\n").removesuffix("\r"))
        if not line.endswith("\n"):
            out.append("\\ No newline at end of file")
    return out
