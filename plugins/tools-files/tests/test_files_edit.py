"""Edit: the eight checks in their order, and what stays as it was (tools contract, section 5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, strategies as st
from kernel_tools_files.matching import find, keep_quotes, replace


def edit(bench: Any, path: Path, old: str, new: str, **more: Any) -> Any:
    return bench("Edit", file_path=str(path), old_string=old, new_string=new, **more)


def refused(bench: Any, path: Path | str, old: str, new: str, **more: Any) -> Any:
    return bench.error("Edit", file_path=str(path), old_string=old, new_string=new, **more)


def test_an_edit_and_its_result(bench: Any) -> None:
    path = bench.write("a.txt", "one\ntwo\nthree\n")
    bench.read(path)
    result = edit(bench, path, "two", "2")
    assert path.read_text() == "one\n2\nthree\n"
    assert result.structured == {
        "filePath": str(path), "oldString": "two", "newString": "2", "originalFile": "one\ntwo\nthree\n",
        "structuredPatch": [{"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3,
                             "lines": [" one", "-two", "+2", " three"]}],
        "userModified": False, "replaceAll": False}
    assert str(path) in result.content and "2\t2" in result.content


def test_edits_follow_each_other_without_another_read(bench: Any) -> None:
    path = bench.write("a.txt", "a b c\n")
    bench.read(path)
    edit(bench, path, "a", "1")
    edit(bench, path, "b", "2")
    assert path.read_text() == "1 2 c\n"


# -- the checks in their order --------------------------------------------------------------------------------------------
def test_each_check_comes_before_the_next(bench: Any) -> None:
    """A call that is wrong in every way is told the first thing; put right, the next; until nothing is wrong."""
    path = bench.write("a.txt", "x x y\n")
    assert refused(bench, "no.txt", "same", "same").code == "no_change"                # 2 before 3
    assert refused(bench, "no.ipynb", "a", "b").code == "not_found"                    # 3 before 4
    bench.write("n.ipynb", "{}")
    assert refused(bench, "n.ipynb", "a", "b").code == "is_notebook"                   # 4 before 5
    assert refused(bench, path, "z", "b").code == "not_read"                           # 5 before 6
    bench.read(path)
    path.write_text("x x yy\n")
    bench.decide = lambda name, input: "ask"
    assert refused(bench, path, "z", "b").code == "no_match"                           # 6 before 7
    assert refused(bench, path, "x", "b").code == "many_matches"                       # 7 before 8
    assert refused(bench, path, "yy", "b").code == "stale_file"                        # 8
    bench.decide = lambda name, input: "allow"
    edit(bench, path, "yy", "b")
    assert path.read_text() == "x x b\n"


def test_the_number_of_matches_is_told(bench: Any) -> None:
    path = bench.write("a.txt", "x x x\n")
    bench.read(path)
    assert "3 times" in refused(bench, path, "x", "y").message
    assert edit(bench, path, "x", "y", replace_all=True).structured["replaceAll"] is True
    assert path.read_text() == "y y y\n"


def test_a_match_that_overlaps_itself_is_ambiguous(bench: Any) -> None:
    path = bench.write("a.txt", "aaa\n")
    bench.read(path)
    assert refused(bench, path, "aa", "b").code == "many_matches"


@pytest.mark.parametrize(("old", "hint"), [
    ("  if x:\n      y()", "white space"), ("2\tif x:\n3\t    y()", "line numbers"), ("zzz", "exactly")])
def test_a_missing_match_says_what_may_be_wrong(bench: Any, old: str, hint: str) -> None:
    path = bench.write("a.py", "# head\nif x:\n    y()\n")
    bench.read(path)
    error = refused(bench, path, old, "new")
    assert error.code == "no_match" and hint in error.message


def test_a_missing_file_proposes_near_names(bench: Any) -> None:
    bench.write("model.py", "x")
    assert f"{bench.root}/model.py" in refused(bench, "modle.py", "a", "b").message


def test_a_folder_is_refused(bench: Any) -> None:
    assert refused(bench, bench.root, "a", "b").code == "is_directory"


# -- read before edit -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("flag", "answer", "offered", "code"), [
    (True, "allow", True, None), (True, "ask", True, "not_read"), (True, "deny", True, "not_read"),
    (True, "allow", False, "not_read"), (False, "allow", True, "not_read")])
def test_an_unread_file_needs_the_models_flag_and_a_free_read(bench: Any, flag: bool, answer: str, offered: bool,
                                                              code: str | None) -> None:
    class Info:
        edits_unread = flag

    bench.session.model_info = Info()
    bench.decide = lambda name, input: answer
    if not offered:
        del bench.session.toolbox.by_name["Read"]
    path = bench.write("a.txt", "one\n")
    if code:
        assert refused(bench, path, "one", "1").code == code
    else:
        edit(bench, path, "one", "1")
        assert path.read_text() == "1\n"


def test_a_changed_file_is_still_edited_where_the_place_is_certain(bench: Any) -> None:
    path = bench.write("a.txt", "one\n")
    bench.read(path)
    path.write_text("one\nother\n")
    result = edit(bench, path, "one", "1")
    assert path.read_text() == "1\nother\n" and "other changes" in result.content


@pytest.mark.parametrize(("now", "old", "code"), [
    ("x “one”\n", '"one"', "stale_file"), ("none\n", "two", "no_match"), ("one one\n", "one", "many_matches")])
def test_a_changed_file_is_to_be_read_again_where_it_is_not(bench: Any, now: str, old: str, code: str) -> None:
    path = bench.write("a.txt", "one\n")
    bench.read(path)
    path.write_text(now)
    error = refused(bench, path, old, "1")
    assert error.code == code and "read" in error.message.lower() and path.read_text() == now


def test_replace_all_is_not_certain_in_a_changed_file(bench: Any) -> None:
    path = bench.write("a.txt", "one\n")
    bench.read(path)
    path.write_text("one one\n")
    assert refused(bench, path, "one", "1", replace_all=True).code == "stale_file"


# -- creation -------------------------------------------------------------------------------------------------------------
def test_an_empty_old_string_creates_a_file(bench: Any) -> None:
    path = bench.root / "new" / "a.txt"
    result = edit(bench, path, "", "hello\n")
    assert path.read_text() == "hello\n" and result.structured["originalFile"] is None and "Created" in result.content
    edit(bench, path, "hello", "bye")


def test_an_empty_old_string_fills_an_empty_file_and_no_other(bench: Any) -> None:
    path = bench.write("a.txt", "")
    edit(bench, path, "", "hello\n")
    assert path.read_text() == "hello\n"
    assert refused(bench, path, "", "bye\n").code == "file_exists"


# -- bytes ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("raw", "old", "new", "after"), [
    (b"one\r\ntwo\r\n", "one\ntwo", "1\n2", b"1\r\n2\r\n"),
    (b"one\r\ntwo\r\n", "one", "1\n1.5", b"1\r\n1.5\r\ntwo\r\n"),
    (b"one\r\ntwo\r\n", "\ntwo", "\n2", b"one\r\n2\r\n"),
    (b"one\r\ntwo\r\n", "one\r\ntwo", "1\n2", b"1\r\n2\r\n"),
    (b"one\r\ntwo\nthree\r\n", "two\nthree", "2\n3", b"one\r\n2\n3\r\n"),
    (b"one\ntwo\r\nthree\r\n", "one", "1\n1", b"1\n1\ntwo\r\nthree\r\n"),
    (b"one\ntwo\n", "one\n", "1\r\n", b"1\r\ntwo\n"),
    (b"\xef\xbb\xbfone\n", "one", "\xe9", b"\xef\xbb\xbf\xc3\xa9\n"),
    (b"caf\xe9 one\n", "one", "\xfc", b"caf\xe9 \xfc\n"),
    (b"\xff\xfe" + "one é\n".encode("utf-16-le"), "one", "日", b"\xff\xfe" + "日 é\n".encode("utf-16-le")),
    (b"trailing  \nspaces\t\n", "spaces", "blanks", b"trailing  \nblanks\t\n"),
    (b"no end", "end", "line end", b"no line end"),
    (b"a\x0bb\x85\xe2\x80\xa8c one", "one", "1", b"a\x0bb\x85\xe2\x80\xa8c 1"),
    (b"regex .* (one)\n", ".* (one)", r"\1 \g<0>", b"regex \\1 \\g<0>\n"),
])
def test_line_ends_encoding_and_the_rest_are_kept(bench: Any, raw: bytes, old: str, new: str, after: bytes) -> None:
    path = bench.write("a.md", raw)
    bench.read(path)
    edit(bench, path, old, new)
    assert path.read_bytes() == after


def test_a_character_that_the_encoding_has_not_is_an_error(bench: Any) -> None:
    path = bench.write("a.txt", b"caf\xe9\n")
    bench.read(path)
    error = refused(bench, path, "caf", "日")
    assert error.code == "encoding" and "UTF-8" in error.message and path.read_bytes() == b"caf\xe9\n"


def test_half_a_surrogate_pair_is_an_error(bench: Any) -> None:
    path = bench.write("a.txt", "one\n")
    bench.read(path)
    assert refused(bench, path, "one", "\ud800").code == "invalid_arguments"


@pytest.mark.parametrize(("text", "old", "new", "after"), [
    ("say “hi” to\n", 'say "hi"', 'say "bye"', "say “bye” to\n"),
    ("it’s “so”\n", "it's \"so\"", "it's \"not so\"", "it’s “not so”\n"),
    ("“a” b\n", '"a" b', '"a" "c" b', "“a” “c” b\n"),
    ("don’t\n", "don't", "can't", "can’t\n"),
    ("“a”\n", '"a"', "a", "a\n"),
    ("x “a” \"b\"\n", 'x "a"', "x 'a'", "x 'a' \"b\"\n"),
    ("“a”\r\n“b”\r\n", '"a"\n"b"', '"a"\n"c"', "“a”\r\n“c”\r\n"),
])
def test_curly_quotes_of_the_file_are_kept(bench: Any, text: str, old: str, new: str, after: str) -> None:
    path = bench.write("a.txt", text)
    bench.read(path)
    edit(bench, path, old, new)
    assert path.read_bytes().decode() == after


def test_straight_quotes_win_over_curly_ones(bench: Any) -> None:
    path = bench.write("a.txt", '“a” "a"\n')
    bench.read(path)
    edit(bench, path, '"a"', '"b"')
    assert path.read_text() == '“a” "b"\n'


def test_a_large_original_is_left_out_of_the_structured_result(bench: Any) -> None:
    path = bench.write("a.txt", "x" * 1_000_001 + " one")
    bench.read(path)
    assert edit(bench, path, "one", "1").structured["originalFile"] is None
    assert path.read_bytes().endswith(b" 1")


def test_a_file_over_a_gibibyte_is_refused(bench: Any) -> None:
    path = bench.root / "big.txt"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)
    assert refused(bench, path, "a", "b").code == "too_large"


# -- any text -------------------------------------------------------------------------------------------------------------
LF = st.text(st.sampled_from("ab\n\"' é😀"), max_size=30)


@given(LF, st.text(st.sampled_from("ab\n\"'"), min_size=1, max_size=4), LF)
@example("a\nb", "\n", "")
def test_replacing_all_is_what_str_replace_does(text: str, old: str, new: str) -> None:
    match = find(text, old)
    assert replace(text, match, old, new) == text.replace(old, new)
    assert len(match.spans) == text.count(old)


@given(LF, st.text(st.sampled_from("ab\n"), min_size=1, max_size=4), st.text(st.sampled_from("xy\n"), max_size=5))
def test_with_carriage_returns_it_is_the_same_edit_with_other_line_ends(text: str, old: str, new: str) -> None:
    assume("\n" in text)
    crlf = text.replace("\n", "\r\n")
    match = find(crlf, old)
    assert replace(crlf, match, old, new) == text.replace(old, new).replace("\n", "\r\n")


@given(st.text(st.sampled_from("ab\r\n“”\"'’"), max_size=30), st.text(st.sampled_from("ab\n\"'"), min_size=1, max_size=4),
       st.text(st.sampled_from("xy\n\"'"), max_size=5))
def test_nothing_outside_of_the_places_changes(text: str, old: str, new: str) -> None:
    match = find(text, old)
    after = replace(text, match, old, new)
    at = 0
    for start, end in match.spans:
        outside = text[at:start]
        assert after.startswith(outside)
        rest = after[len(outside):]
        made = next(n for n in range(len(rest) + 1) if _straight(rest[:n]) == _straight(new))
        after, at = rest[made:], end
    assert after == text[at:]


def _straight(text: str) -> str:
    for curly, plain in (("“", '"'), ("”", '"'), ("’", "'"), ("‘", "'"), ("\r\n", "\n")):
        text = text.replace(curly, plain)
    return text


@given(st.text(st.sampled_from("ab“”’\n"), max_size=12), st.text(st.sampled_from("ab\"'\n"), max_size=12))
def test_keeping_quotes_changes_quotes_only(found: str, new: str) -> None:
    assert _straight(keep_quotes(found, _straight(found), new)) == new


@given(st.binary(max_size=60).filter(lambda raw: b"\0" not in raw), st.text(st.sampled_from("aé\n"), min_size=1, max_size=3),
       st.text(st.sampled_from("bü"), max_size=3))
def test_bytes_that_were_not_meant_are_never_touched(raw: bytes, old: str, new: str) -> None:
    """Any file that is text in some encoding: what Edit writes is the old bytes with the places exchanged."""
    from kernel_tools_files.encoding import decode, encode

    from kernel import ToolError

    try:
        text, encoding = decode(raw, "f")
    except ToolError:
        return
    assert encode(text, encoding, "f") == raw
    match = find(text, old)
    if match.spans:
        start, end = match.spans[0]
        once = replace(text, match._replace(spans=[(start, end)]), old, new)
        made = encode(once, encoding, "f")
        front, back = encode(text[:start], encoding, "f"), text[end:].encode(encoding.codec)
        assert made.startswith(front) and made.endswith(back)
