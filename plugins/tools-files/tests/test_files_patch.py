"""The structured patch of Write and Edit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from kernel_tools_files import patch
from kernel_tools_files.patch import structured_patch

TEXTS = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=25).map("\n".join)


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def applied(old: str, hunks: list[dict[str, Any]]) -> list[str]:
    """A plain reader of the format: context and removed lines must be there, with the numbers that the hunk says."""
    lines, out, at = lines_of(old), [], 0
    for hunk in hunks:
        start = hunk["oldStart"] - (1 if hunk["oldLines"] else 0)
        out += lines[at:start]
        at, first = start, len(out)
        assert first == hunk["newStart"] - (1 if hunk["newLines"] else 0)
        for line in hunk["lines"]:
            if line[0] in " -":
                assert lines[at] == line[1:]
                at += 1
            if line[0] in " +":
                out.append(line[1:])
        assert (at - start, len(out) - first) == (hunk["oldLines"], hunk["newLines"])
    return out + lines[at:]


@given(TEXTS, TEXTS)
def test_applying_the_patch_gives_the_new_text(old: str, new: str) -> None:
    hunks = structured_patch(old, new)
    assert applied(old, hunks) == lines_of(new)
    assert bool(hunks) == (old != new)


@pytest.mark.parametrize(("old", "new", "lines"), [
    ("", "a\n", ["+a"]), ("a\n", "", ["-a"]), ("a", "a\n", ["-a", "\\ No newline at end of file", "+a"]),
    ("a\r\nb\r\n", "a\r\nc\r\n", [" a", "-b", "+c"]), ("a\n", "a\n", [])])
def test_edges(old: str, new: str, lines: list[str]) -> None:
    assert [line for hunk in structured_patch(old, new) for line in hunk["lines"]] == lines


def test_far_changes_are_hunks_of_their_own() -> None:
    old = "".join(f"{n}\n" for n in range(100))
    hunks = structured_patch(old, old.replace("10\n", "x\n", 1).replace("90\n", "y\n", 1))
    assert [(h["oldStart"], h["oldLines"]) for h in hunks] == [(8, 7), (88, 7)]


def test_a_huge_rewrite_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit no fine difference is looked for: line by line, or one hunk."""
    monkeypatch.setattr(patch, "DIFF_LINES", 10)
    old = "".join(f"{n}\n" for n in range(50))
    assert len(structured_patch(old, old.replace("5", "x"))) > 1
    assert len(structured_patch(old, "new\n" * 30)) == 1
    assert applied(old, structured_patch(old, old.replace("5", "x"))) == lines_of(old.replace("5", "x"))
