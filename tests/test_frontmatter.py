"""The heads of Markdown files: shape, values, mending, limits; and that the short way gives what the parser gives."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from kernel import Frontmatter, parse_frontmatter, read_frontmatter
from kernel.frontmatter import MAX_HEAD, _load, _simple


def fields(head: str) -> dict[str, object]:
    return parse_frontmatter(f"---\n{head}\n---\nText.\n").fields


@pytest.mark.parametrize(("head", "expected"), [
    ("a: yes\nb: on\nc: 2024-01-01\nd: 1:30\ne: 0o17\nf: 010\ng: 1_000\nh: TRUE\ni: ~\nj: 1e3\nk: <<",
     {"a": "yes", "b": "on", "c": "2024-01-01", "d": "1:30", "e": 15, "f": 10, "g": "1_000", "h": True, "i": None, "j": 1000.0,
      "k": "<<"}),
    ("a: 1\na: 2", {"a": 2}),
    ("1: x\ntrue: y\n? z", {"1": "x", "true": "y", "z": None}),
    ("a: !!python/object/apply:os.system [id]\nb: !x text\nc: !!int 3", {"a": ["id"], "b": "text", "c": "3"}),
    ("a: &n [1, 2]\nb: *n", {"a": [1, 2], "b": [1, 2]}),
    ("base: &b {x: 1}\nc:\n  <<: *b", {"base": {"x": 1}, "c": {"<<": {"x": 1}}}),
    ("a: >\n  one\n  two\nb:\n  - x\n  - y: 1", {"a": "one two\n", "b": ["x", {"y": 1}]}),
])
def test_values_are_those_of_yaml_1_2(head: str, expected: dict[str, object]) -> None:
    assert fields(head) == expected


@pytest.mark.parametrize(("head", "expected"), [
    ("description: Use when: books are off\nname: x", {"description": "Use when: books are off", "name": "x"}),
    ("argument-hint: [pr] [branch]", {"argument-hint": "[pr] [branch]"}),
    ("a: @x\nb: `y`\nc: %z\nd: *.py", {"a": "@x", "b": "`y`", "c": "%z", "d": "*.py"}),
    ("name: [unclosed", {"name": "[unclosed"}),
    ("a: it's: so", {"a": "it's: so"}),
    ("a: x: y\nb: [1, 2]\nc: {k: v}", {"a": "x: y", "b": [1, 2], "c": {"k": "v"}}),
])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_plain_value_that_is_no_single_value_is_put_in_quotes(head: str, expected: dict[str, object], newline: str) -> None:
    read = parse_frontmatter(f"---\n{head}\n---\nText.\n".replace("\n", newline))
    assert read.fields == expected and not read.lost and "mended" in read.problem and read.body == "Text.\n"


@pytest.mark.parametrize(("text", "lost", "present", "body", "says"), [
    ("---\nname: x\n\tb: c\n---\nText.\n", True, True, "Text.\n", "does not parse"),
    ("---\na: 'open\n---\nText.\n", True, True, "Text.\n", "does not parse"),
    ("---\na: x: y\nand on\n---\nText.\n", True, True, "Text.\n", "does not parse"),
    ("---\n- a\n---\nText.\n", True, True, "Text.\n", "it is a list"),
    ("---\ntext\n---\nText.\n", True, True, "Text.\n", "a single value"),
    ("---\n---\nText.\n", False, True, "Text.\n", "empty"),
    ("---\nname: x\nText.\n", True, False, "---\nname: x\nText.\n", "no closing line"),
    ("---\n\nA rule, then text.\n", False, False, "---\n\nA rule, then text.\n", "no closing line"),
    ("\n---\nname: x\n---\n", False, False, "\n---\nname: x\n---\n", "before the opening line"),
    ("Text.\n", False, False, "Text.\n", ""),
    ("", False, False, "", ""),
    ("---\n[a]: x\n---\n", True, True, "", "a key must be text"),
    ("---\na: b\n...\nc: d\n---\n", True, True, "", "does not parse"),
])
def test_what_cannot_be_read_keeps_its_text_and_says_why(text: str, lost: bool, present: bool, body: str, says: str) -> None:
    read = parse_frontmatter(text)
    assert (read.fields, read.lost, read.present, read.body) == ({}, lost, present, body)
    assert says in read.problem and bool(says) == bool(read.problem)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_byte_order_mark_and_line_ends_change_nothing(mark: str, newline: str) -> None:
    text = mark + "---\nname: x\nlist:\n  - 'é'\n---\nOne.\nTwo.\n".replace("\n", newline)
    assert parse_frontmatter(text) == Frontmatter(fields={"name": "x", "list": ["é"]}, body="One.\nTwo.\n", present=True)


@pytest.mark.parametrize("head", [
    "a: " + "[" * 100_000, "a: " + "[" * 70 + "]" * 70, "a: " + "x" * 2 * MAX_HEAD + "\nb: [",
    "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "\n".join(
        f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]" for a, b in ["ab", "bc", "cd", "de", "ef", "fg", "gh"]),
    "- " * 5_000, "\n".join(f"k{n}: [" for n in range(500)),
])
def test_bombs_are_refused_within_limits(head: str) -> None:
    read = parse_frontmatter(f"---\n{head}\n---\nText.\n")
    assert len(str(read.fields)) < 2 * len(head), "at most mended to text"
    assert read.problem and read.body == "Text.\n"


def test_files_are_read_within_limits(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    for raw, says in ((b"---\na: b\n---\n" + b"x" * 5_000_000, "is larger than"), (b"\xff\xfea\0b\0", "NUL bytes")):
        path.write_bytes(raw)
        read = read_frontmatter(path)
        assert not read.readable and says in read.problem
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "loop.md").symlink_to("loop.md")
    for name, says in (("pipe.md", "no regular file"), ("loop.md", "cannot be read"), ("none.md", "cannot be read"),
                       (".", "no regular file"), ("a\0b", "cannot be read")):
        read = read_frontmatter(f"{tmp_path}/{name}")
        assert not read.readable and says in read.problem
    path.write_bytes(b"---\na: \xff\n---\nText\n")
    assert read_frontmatter(path).fields == {"a": "\ufffd"}


@pytest.mark.parametrize("size", [10, 8_000, 8_180, 8_191, 8_192, 8_193, 30_000])
def test_the_head_alone_is_the_same_head(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.md"
    path.write_text(f"---\nname: x\ndescription: {'y' * size}\n---\n" + "text\n" * 10_000)
    head, whole = read_frontmatter(path, body=False), read_frontmatter(path)
    assert head.fields == whole.fields and head.fields["name"] == "x" and len(head.body) < len(whole.body)


_KEYS = st.one_of(st.sampled_from(["name", "a-b", "true", "null", "é", "1", "x y", "- a", "#c", '"q"', "...", ""]),
                  st.text(max_size=6))
_VALUES = st.one_of(st.text(max_size=12), st.sampled_from([
    "yes", "true", "~", "12", "1.5", "1:30", "2024-01-01", "a: b", "a #b", "a#b", "a:", ":", "[a]", "'it''s'", '"x"', '"a\\n"',
    "'a' b", "|", ">-", "*a", "&a b", "!t x", "a\tb", "x ", "(a)", ".5", "...", "--- x", "@a", "-", "- x", '"a: b"', "'a # b'",
    "0x1F", "0o8", "+1", "1e5", ".", "/", "a\u2028b", "a\x85b", "", '""', "''", '"a', "nUll"]))
_HEADS = st.lists(st.builds(
    lambda indent, key, colon, value: f"{indent}{key}{colon}{value}", st.sampled_from(["", "", "", " ", "\t"]), _KEYS,
    st.sampled_from([": ", ":  ", ":", " : ", " "]), _VALUES), max_size=4).map("\n".join)


@given(_HEADS)
@example("a: 'x'\n  # note: here\n\nb: y # no")
@example('a: "x" # y\nb: z')
@example("a: x\n...\nb: y")
def test_the_short_way_gives_what_the_parser_gives(head: str) -> None:
    simple = _simple(head)
    if simple is not None:
        assert simple == _load(head)


@given(st.one_of(_HEADS.map(lambda h: f"---\n{h}\n---\nT"), st.text(), st.binary().map(lambda b: b.decode("utf-8", "replace"))))
def test_nothing_raises(text: str) -> None:
    read = parse_frontmatter(text)
    assert isinstance(read.fields, dict) and not (read.lost and read.fields)


def test_aliases_of_a_long_text_count_as_long() -> None:
    """Each would be copied by whoever joins the values."""
    found = parse_frontmatter(f"---\na: &x {'y' * 5_000}\nhint: [{','.join(['*x'] * 1_000)}]\n---\nText.\n")
    assert isinstance(found.fields["hint"], str) and "more than 10,000 values" in found.problem
    assert not parse_frontmatter(f"---\na: |\n  {'y' * 60_000}\n---\n").lost
