"""Read: text, its limits, its errors, and when a file is not shown again (tools contract, section 4)."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

LIMIT = "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"


def file_of(bench: Any, path: Path, **input: Any) -> dict[str, Any]:
    return bench("Read", file_path=str(path), **input).structured["file"]


def test_lines_are_numbered_with_a_tab(bench: Any) -> None:
    path = bench.write("a.txt", "one\n\n  three\n")
    assert bench.read(path) == "1\tone\n2\t\n3\t  three"


def test_the_structured_result(bench: Any) -> None:
    path = bench.write("a.txt", "one\ntwo\nthree")
    assert bench("Read", file_path=str(path), offset=2).structured == {"type": "text", "file": {
        "filePath": str(path), "content": "two\nthree", "numLines": 2, "startLine": 2, "totalLines": 3}}


@pytest.mark.parametrize(("offset", "limit", "shown"), [
    (0, 1, ["1\ta"]), (1, 2, ["1\ta", "2\tb"]), (3, 1, ["3\tc"]), (3, 9, ["3\tc", "4\td"]), (4, 1, ["4\td"])])
def test_offset_and_limit(bench: Any, offset: int, limit: int, shown: list[str]) -> None:
    path = bench.write("a.txt", "a\nb\nc\nd\n")
    assert bench.read(path, offset=offset, limit=limit).split("\n") == shown


def test_an_offset_behind_the_end_says_how_many_lines_there_are(bench: Any) -> None:
    path = bench.write("a.txt", "a\nb\n")
    assert "has 2 lines" in bench.read(path, offset=3)
    assert bench.error("Edit", file_path=str(path), old_string="a", new_string="b").code == "not_read"


def test_an_empty_file(bench: Any) -> None:
    path = bench.write("a.txt", "")
    assert "empty" in bench.read(path)


@pytest.mark.parametrize(("raw", "shown", "note"), [
    (b"\xef\xbb\xbfna\xc3\xafve\n", "1\tnaïve", ""),
    ("日本語\n".encode(), "1\t日本語", ""),
    (b"one\r\ntwo\r\n", "1\tone\n2\ttwo", ""),
    (b"caf\xe9\n", "1\tcafé", "Latin-1"),
    (b"\xff\xfe" + "hé\nx\n".encode("utf-16-le"), "1\thé\n2\tx", "UTF-16-LE"),
    (b"\xfe\xff" + "hé\n".encode("utf-16-be"), "1\thé", "UTF-16-BE"),
    ("a\u2028b\x0bc\x85d\n".encode(), "1\ta\u2028b\x0bc\x85d", ""),
])
def test_encodings(bench: Any, raw: bytes, shown: str, note: str) -> None:
    """UTF-8 and UTF-16 by their marks, else Latin-1 with a note; only line feeds end a line."""
    text = bench.read(bench.write("a.txt", raw))
    assert text.startswith(shown) and note in text
    assert bool(note) == (text != shown)


def test_an_encoding_that_breaks_late_is_found_out(bench: Any) -> None:
    """Over a mebibyte of ASCII, then one byte that is not UTF-8: shown as Latin-1 from the beginning."""
    path = bench.write("a.txt", b"line\n" * 300_000 + b"\xe9\n")
    assert bench.read(path, offset=300_001).startswith("300001\té\n")


@pytest.mark.parametrize("raw", [
    b"a\0b", b"\0", b"\x7fELF\x02\x01\0", b"\xff\xfe\0\0a\0\0\0", b"\xff\xfea", b"x" * (1 << 20) + b"\0"])
def test_binary_files_are_an_error(bench: Any, raw: bytes) -> None:
    path = bench.write("a.bin", raw)
    assert bench.error("Read", file_path=str(path)).code == "binary_file"


@pytest.mark.parametrize(("chars", "cut"), [(2_000, False), (2_001, True), (3_000_000, True)])
def test_long_lines_are_cut_with_a_mark(bench: Any, chars: int, cut: bool) -> None:
    path = bench.write("a.txt", f"{'x' * chars}\r\nline\r\n")
    text = bench.read(path)
    assert ("line cut" in text) == cut == ("longer than 2,000" in text)
    assert text.count("x") == min(chars, 2_000) and (f"{chars} characters" in text) == cut
    assert "\n2\tline" in text


def sized(chars: int) -> str:
    """A file whose numbered view has that many characters: nine short lines, then one that fills up."""
    head = "".join(f"{n}\n" for n in range(1, 10))
    return head + "x" * (chars - 9 * 4 - 3) + "\n"


@pytest.mark.parametrize("over", [0, 1])
def test_the_token_limit_at_its_edge(bench: Any, monkeypatch: pytest.MonkeyPatch, over: int) -> None:
    """A token is four characters of the view. At the limit everything is shown; one more gives the first page."""
    monkeypatch.setenv(LIMIT, "100")
    path = bench.write("a.txt", sized(400 + over))
    result = bench("Read", file_path=str(path))
    assert result.truncated == bool(over) == ("PARTIAL view: lines 1 to 9 of 10" in result.content)
    assert result.structured["file"].get("truncatedByTokenCap", False) == bool(over)
    assert len(result.content.split("\n\n")[0]) == (36 + (-1) if over else 400)


@pytest.mark.parametrize("over", [0, 1])
def test_a_range_over_the_token_limit_is_an_error(bench: Any, monkeypatch: pytest.MonkeyPatch, over: int) -> None:
    monkeypatch.setenv(LIMIT, "100")
    path = bench.write("a.txt", sized(400 + over))
    if not over:
        assert bench.read(path, limit=10).endswith("x")
        return
    error = bench.error("Read", file_path=str(path), limit=10)
    assert error.code == "too_large" and "limit=9" in error.message


def test_a_range_of_one_line_over_the_limit_points_to_grep(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "10")
    path = bench.write("a.txt", "x" * 100)
    error = bench.error("Read", file_path=str(path), offset=1)
    assert error.code == "too_large" and "Grep" in error.message


def test_the_default_limit_is_25000_tokens(bench: Any) -> None:
    path = bench.write("a.txt", "word\n" * 20_000)
    result = bench("Read", file_path=str(path))
    assert result.truncated and 99_900 < len(result.content.split("\n\n")[0]) <= 100_000


@pytest.mark.parametrize("value", ["", "0", "-5", "many", "²"])
def test_a_senseless_limit_is_the_default(bench: Any, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(LIMIT, value)
    assert not bench("Read", file_path=str(bench.write("a.txt", "x\n" * 5_000))).truncated


def test_a_partial_view_does_not_allow_an_edit_but_its_parts_do(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT, "100")
    path = bench.write("a.txt", "".join(f"line {n}\n" for n in range(200)))
    bench.read(path)
    edit = {"file_path": str(path), "old_string": "line 150\n", "new_string": ""}
    error = bench.error("Edit", **edit)
    assert error.code == "not_read" and "PARTIAL" in error.message
    bench.read(path, offset=150, limit=3)
    bench("Edit", **edit)


# -- unchanged files ------------------------------------------------------------------------------------------------------
def test_an_unchanged_file_is_not_shown_again(bench: Any) -> None:
    path = bench.write("a.txt", "one\ntwo\n")
    bench.read(path)
    again = bench("Read", file_path=str(path))
    assert again.structured == {"type": "file_unchanged", "file": {"filePath": str(path)}}
    assert "not changed" in again.content and "one" not in again.content


def test_a_touched_file_is_unchanged(bench: Any) -> None:
    path = bench.write("a.txt", "one\n")
    bench.read(path)
    os.utime(path, (1, 1))
    assert bench("Read", file_path=str(path)).structured["type"] == "file_unchanged"


@pytest.mark.parametrize("change", ["content", "range", "edit", "compacted"])
def test_it_is_shown_again_where_the_first_copy_is_not_enough(bench: Any, change: str) -> None:
    """After a change, for another range, after an edit of ours, and when a compactor took the lines away."""
    path = bench.write("a.txt", "one\ntwo\n")
    bench.read(path)
    input: dict[str, Any] = {}
    if change == "content":
        path.write_text("one\n2\n")
    elif change == "range":
        input = {"offset": 2}
    elif change == "edit":
        bench("Edit", file_path=str(path), old_string="two", new_string="2")
    else:
        for state in bench.session.read_files.values():
            state.start = state.end = None
    assert bench("Read", file_path=str(path), **input).structured["type"] == "text"


def test_a_range_is_unchanged_too(bench: Any) -> None:
    path = bench.write("a.txt", "a\nb\nc\n")
    bench.read(path, offset=2, limit=1)
    assert bench("Read", file_path=str(path), offset=2, limit=1).structured["type"] == "file_unchanged"
    assert bench("Read", file_path=str(path)).structured["type"] == "text"


def test_two_names_of_one_file_share_their_state(bench: Any) -> None:
    path = bench.write("a.txt", "one\n")
    link = bench.root / "link.txt"
    link.symlink_to(path)
    bench.read(link)
    assert bench("Read", file_path=str(path)).structured["type"] == "file_unchanged"


# -- paths and errors -----------------------------------------------------------------------------------------------------
def test_relative_paths_and_the_home_folder(bench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bench.write("sub/a.txt", "here\n")
    monkeypatch.setenv("HOME", str(bench.root / "sub"))
    assert file_of(bench, Path("sub/../sub/./a.txt"))["filePath"] == str(bench.root / "sub/a.txt")
    assert bench("Read", file_path="~/a.txt").structured["type"] == "file_unchanged"


@pytest.mark.parametrize("path", ["", "  ", "a\0b", "a\ud800b"])
def test_paths_that_cannot_be(bench: Any, path: str) -> None:
    for name, more in (("Read", {}), ("Write", {"content": ""}), ("Edit", {"old_string": "a", "new_string": "b"})):
        assert bench.error(name, file_path=path, **more).code == "invalid_arguments"


@pytest.mark.parametrize(("asked", "hint"), [
    ("readme.txt", "README.md"), ("modle.py", "model.py"), ("/src/deep.py", "src/deep.py"), ("zzz", "")])
def test_a_missing_file_proposes_what_was_meant(bench: Any, asked: str, hint: str) -> None:
    bench.write("README.md", "x")
    bench.write("model.py", "x")
    bench.write("src/deep.py", "x")
    error = bench.error("Read", file_path=asked)
    assert error.code == "not_found" and str(bench.root) in error.message
    assert f"Did you mean {bench.root}/{hint}?" in error.message if hint else "mean" not in error.message


def test_a_file_that_rules_hide_is_not_proposed(bench: Any) -> None:
    bench.write("secret.txt", "x")
    bench.decide = lambda name, input: "deny" if "secret" in input["file_path"] else "allow"
    assert "secret.txt" not in bench.error("Read", file_path="secrt.txt").message


def test_a_folder_is_an_error_that_points_to_ls(bench: Any) -> None:
    error = bench.error("Read", file_path=str(bench.root))
    assert error.code == "is_directory" and "ls" in error.message


def test_a_file_used_as_a_folder_is_not_found(bench: Any) -> None:
    bench.write("a.txt", "x")
    assert bench.error("Read", file_path="a.txt/b").code == "not_found"


def test_devices_pipes_and_sockets_are_refused_and_do_not_block(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(bench.root / "pipe")
    monkeypatch.chdir(bench.root)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for name in ("pipe", "socket", "/dev/zero", "/dev/stdin"):
            error = bench.error("Read", file_path=name)
            assert error.code in ("not_a_file", "io_error"), name


def test_a_circle_of_links_is_an_error(bench: Any) -> None:
    (bench.root / "a").symlink_to("b")
    (bench.root / "b").symlink_to("a")
    assert bench.error("Read", file_path="a").code == "io_error"


def test_a_dangling_link_is_not_found(bench: Any) -> None:
    (bench.root / "a").symlink_to("nowhere")
    assert bench.error("Read", file_path="a").code == "not_found"


@pytest.mark.parametrize("name", ["naïve café.txt", "日本語.txt", "a b'c\n\"d.txt", "-rf", "%s{0}"])
def test_odd_names(bench: Any, name: str) -> None:
    assert bench.read(bench.write(name, "content\n")) == "1\tcontent"


def test_a_name_that_is_no_utf8_can_be_read(bench: Any) -> None:
    raw = os.fsencode(bench.root) + b"/b\xffd.txt"
    with open(raw, "wb") as file:
        file.write(b"content\n")
    assert bench.read(Path(os.fsdecode(raw))) == "1\tcontent"


@pytest.mark.parametrize("megabytes", [10, 30])
def test_a_range_of_a_huge_file_does_not_fill_the_memory(bench: Any, megabytes: int) -> None:
    """Three lines from the middle: what is held meanwhile does not grow with the file, and is a part of the smaller one."""
    import tracemalloc

    lines = megabytes * 10_000
    path = bench.write("huge.txt", "".join(f"{number:07} {'x' * 91}\n" for number in range(lines)))
    bench.read(path, offset=1, limit=1)  # whatever is imported on the way is not what is measured
    tracemalloc.start()
    try:
        content = bench.read(path, offset=lines // 2, limit=3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.stat().st_size == megabytes * 1_000_000
    assert [line.split("\t")[-1][:7] for line in content.splitlines()[:3]] == [f"{lines // 2 - 1 + n:07}" for n in range(3)]
    assert peak < 4_000_000
