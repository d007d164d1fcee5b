"""Input that is legal and large: what is cut and mended in one pass stays what it was."""

from __future__ import annotations

from hypothesis import given, strategies as st
from kernel_linter.frontmatter import repaired
from kernel_linter.shell import parts


@given(st.text(alphabet="ab \\'\";|&><()\n", max_size=12))
def test_a_line_is_cut_without_losing_anything(text: str) -> None:
    """What is left out are operators and white space, nothing else, in order."""
    rest = text
    for part in parts(text):
        before, found, rest = rest.partition(part)
        assert found and not before.strip(" \n;|&()"), (text, part)


def test_many_broken_values_are_mended_in_their_places() -> None:
    lines = [f"key{n}: [open {n}" for n in range(300)]
    mended = repaired("\n".join(lines) + "\n")
    assert mended == "".join(f'key{n}: "[open {n}"\n' for n in range(300))
