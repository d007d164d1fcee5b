"""Changes of files as lines: what an edit would do, and what it did. Readable without colour, and bounded."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

from kernel_terminal.lines import Line
from kernel_terminal.safe import exact_line

MOST_LINES = 60
"""A longer diff is cut; the number of lines that are not shown is said."""
MOST_CHARS = 2_000_000
"""Of a file whose change is shown line by line; of a larger one only the size is told."""
MOST_COMPARED = 4_000_000
"""Pairs of lines: beyond it every line of the changed part counts as changed, because comparing them takes too long."""
LINE_CHARS = 400

_STRAIGHT = str.maketrans("“”„‟‘’‚‛", '""""' + "''''")

Hunk = dict[str, Any]


def of_call(tool: str, input: dict[str, Any], cwd: str) -> list[Hunk] | str | None:
    """What a call of Edit, Write or NotebookEdit would change; a text says why that is not shown, ``None``: no such call."""
    path = input.get("file_path")
    if not isinstance(path, str):
        return None
    before = _before(Path(cwd, path))
    if tool == "Write" and isinstance(input.get("content"), str):
        after = input["content"]
        if before is None:
            return "the file that is there cannot be read as text"
    elif tool == "Edit" and isinstance(input.get("old_string"), str) and isinstance(input.get("new_string"), str):
        if before is None or "\0" in before or "\ufffd" in before:
            return "the file that is there cannot be read as text"
        places = _places(before, input["old_string"])
        wrong = _why_not(before, input["old_string"], len(places), input.get("replace_all") is True)
        if wrong:
            return f"{wrong}, so the call would fail"
        after = before
        for start, end in reversed(places):
            after = after[:start] + input["new_string"] + after[end:]
    else:
        return None
    if len(before) + len(after) > MOST_CHARS:
        return f"{len(before):,} characters become {len(after):,}"
    return hunks(before, after)


def _places(text: str, old: str) -> list[tuple[int, int]]:
    """Where an edit applies; a curly quote counts as the straight one where there is no other place, as for the tool."""
    if not old:
        return [] if text else [(0, 0)]
    old = old.replace("\r\n", "\n")
    if old not in text:
        text, old = text.translate(_STRAIGHT), old.translate(_STRAIGHT)
    found, at = [], text.find(old)
    while at >= 0:
        found.append((at, at + len(old)))
        at = text.find(old, at + len(old))
    return found


def _why_not(text: str, old: str, times: int, every: bool) -> str:
    if not times:
        return ("the file is not empty as it is now, and the old text is" if not old else
                "the old text does not occur in the file as it is now" if text else "the file is empty or not there")
    return f"the old text occurs {times} times in the file as it is now" if times > 1 and not every else ""


def _before(path: Path) -> str | None:
    """The text of a file, empty where there is none; ``None``: it cannot be read as text."""
    try:
        if not path.exists():
            return ""
        if not path.is_file() or path.stat().st_size > MOST_CHARS:
            return None
        return path.read_text("utf-8", "replace")
    except (OSError, ValueError):
        return None


def hunks(before: str, after: str, context: int = 2) -> list[Hunk]:
    """Hunks in the form of a result's ``structuredPatch``."""
    old, new = before.splitlines(), after.splitlines()
    head = tail = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    first = max(head - context, 0)
    tail = max(tail - context, 0)
    old, new = old[first:len(old) - tail], new[first:len(new) - tail]
    if len(old) * len(new) > MOST_COMPARED:
        return [{"oldStart": first + 1, "newStart": first + 1, "lines": [*(f"-{t}" for t in old), *(f"+{t}" for t in new)]}]
    found: list[Hunk] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        lines: list[str] = []
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines += [f" {text}" for text in old[a:b]]
            else:
                lines += [f"-{text}" for text in old[a:b]] + [f"+{text}" for text in new[c:d]]
        found.append({"oldStart": first + group[0][1] + 1, "newStart": first + group[0][3] + 1, "lines": lines})
    return found


def counts(found: list[Hunk]) -> tuple[int, int]:
    """Lines added and removed."""
    lines = [text for hunk in found for text in hunk.get("lines", ()) if isinstance(text, str)]
    return sum(t.startswith("+") for t in lines), sum(t.startswith("-") for t in lines)


def told(found: list[Hunk]) -> str:
    added, removed = counts(found)
    return f"{added} added, {removed} removed"


def shown(found: list[Hunk], most: int = MOST_LINES, *, whole: bool = False) -> list[Line]:
    """The hunks with line numbers and signs. ``whole``: nothing is cut, a long line goes on without a number."""
    out: list[Line] = []
    total = sum(len(hunk.get("lines", ())) for hunk in found)
    done = 0
    for number, hunk in enumerate(found):
        if number:
            out.append([("dim", "       ⋮")])
        old, new = int(hunk.get("oldStart") or 1), int(hunk.get("newStart") or 1)
        for text in hunk.get("lines", ()):
            if done == most and not whole:
                out.append([("warn", f"       … {total - done} more lines of the change that are not shown")])
                return out
            sign = text[0] if text[:1] in ("+", "-") else " "
            content = text.removeprefix(sign)
            style = {"+": "added", "-": "removed"}.get(sign, "dim")
            front = exact_line(content[:LINE_CHARS])
            out.append([("dim", f"{old if sign == '-' else new:>6} "), (style, f"{sign} {front}".rstrip())])
            if whole:
                out += [[(style, f"         {exact_line(content[at:at + LINE_CHARS])}")]
                        for at in range(LINE_CHARS, len(content), LINE_CHARS)]
            elif len(content) > LINE_CHARS:
                left = len(content) - LINE_CHARS
                out.append([("warn", f"         … {left:,} more characters of this line that are not shown")])
            old += sign != "+"
            new += sign != "-"
            done += 1
    return out
