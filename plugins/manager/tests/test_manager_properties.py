"""What holds for any input: nothing outside is written, settings keep what is not ours, undo takes back exactly."""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from kernel_manager import changes, tree
from kernel_manager.errors import ManagerError
from kernel_manager.sources import from_entry, parse
from kernel_manager.unpack import Limits, unpack
from kernel_manager.versions import Range, Version

PIECES = st.sampled_from(["a", "B", "b", "..", ".", "", "con", "x.", "é", "e\u0301", "\u202e", "C:", "\\", "\x00", "~", "-", " ",
                          "a" * 300])
NAMES = st.lists(PIECES, min_size=1, max_size=5).map("/".join)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=20),
                    lambda inner: st.lists(inner,
                                           max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4), max_leaves=12)


def expected(types: str, make: Callable[[], Any]) -> Any:
    """What was made, or ``None`` where it was refused with one of these types; anything else is a fault."""
    try:
        return make()
    except ManagerError as error:
        if error.type not in types.split():
            raise
        return None


def check_unpacked(raw: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "archive").write_bytes(raw)
        try:
            unpack(root / "archive", root / "in" / "target", Limits(total_bytes=1 << 20, files=50))
        except ManagerError:
            assert not (root / "in" / "target").exists()
        assert {p.name for p in root.iterdir()} <= {"archive", "in"} and {p.name for p in (root / "in").glob("*")} <= {"target"}
        assert not any(p.is_symlink() for p in root.rglob("*"))


@given(st.lists(st.tuples(NAMES, KINDS, NAMES), max_size=6))
@settings(deadline=None, max_examples=60)
def test_no_tar_writes_outside(members: list[tuple[str, bytes, str]]) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        for name, kind, link in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, link.replace("\x00", "") if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            info.size = 3 if kind == tarfile.REGTYPE else 0
            file.addfile(info, io.BytesIO(b"abc"))
    check_unpacked(out.getvalue())


@pytest.mark.filterwarnings("ignore:Duplicate name")
@given(st.lists(NAMES, max_size=6, unique=True), st.integers(0, 0xFFFF))
@settings(deadline=None, max_examples=60)
def test_no_zip_writes_outside(names: list[str], mode: int) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name in names:
            info = zipfile.ZipInfo(name)
            info.create_system, info.external_attr = 3, mode << 16
            file.writestr(info, b"abc")
    check_unpacked(out.getvalue())


@given(st.binary(max_size=400))
@settings(deadline=None, max_examples=60)
def test_any_bytes_are_an_archive_or_an_error(raw: bytes) -> None:
    check_unpacked(b"PK\x03\x04" + raw)
    check_unpacked(raw)


@given(st.text(max_size=60) | st.lists(st.sampled_from("a/ @#:.-~[]=<>git+npm:python:https://"), max_size=20).map("".join))
@settings(deadline=None, max_examples=400)
def test_whatever_is_typed_is_a_source_or_an_error(text: str) -> None:
    found = expected("bad-spec unsafe-path", lambda: parse(text, Path("/base")))
    if found is not None:
        for value in (found.url, found.ref, found.subdir, found.package, found.version):
            assert value is None or not value.startswith("-")
        assert found.subdir is None or ".." not in found.subdir.split("/")


KEYS = ("repo", "url", "ref", "sha", "path", "package", "version", "command", "timeout")
SOURCE_KINDS = st.sampled_from(["github", "url", "git-subdir", "npm", "archive", "command", "git", "pip"])


@given(JSON | st.fixed_dictionaries({"source": SOURCE_KINDS}, optional=dict.fromkeys(KEYS, JSON)))
@settings(deadline=None, max_examples=300)
def test_any_source_of_an_entry_is_a_source_or_an_error(value: Any) -> None:
    expected("bad-spec unsafe-path unknown-source", lambda: from_entry(value))


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=5),
       st.dictionaries(st.sampled_from(["a@b", "c@d", "e@f"]), st.booleans() | st.none()))
@settings(deadline=None, max_examples=300)
def test_edits_touch_their_keys_only_and_undo_takes_them_back(data: dict[str, Any], edits: dict[str, bool | None]) -> None:
    data = {k: v for k, v in data.items() if k != "enabledPlugins"}
    raw = json.dumps(data).encode()
    keyed = {f"enabledPlugins/{k}": v for k, v in edits.items()}
    once = changes.edited(raw, keyed, "file")
    got = json.loads(once)
    assert got.pop("enabledPlugins", {}) == {k: v for k, v in edits.items() if v is not None}
    assert got == data and list(got) == list(data)
    assert changes.edited(once, keyed, "file") == once, "twice is once: a recovery may repeat it"
    assert json.loads(changes.edited(once, changes.undo(raw, keyed), "file")) == data


@given(st.text("0123456789.xX*^~<>=|- rc", max_size=24))
@settings(deadline=None, max_examples=400)
def test_any_text_is_a_range_or_an_error(text: str) -> None:
    read = expected("bad-range", lambda: Range(text))
    assert read is None or read.allows("1.2.3") in (True, False)


@given(st.tuples(*[st.integers(0, 30)] * 3), st.tuples(*[st.integers(0, 30)] * 3))
@settings(deadline=None)
def test_a_caret_keeps_the_leftmost_number_that_counts(base: tuple[int, int, int], other: tuple[int, int, int]) -> None:
    range, version = Range("^" + ".".join(map(str, base))), Version(other)
    lead = next((n for n, value in enumerate(base) if value), 2)
    assert range.allows(version) == (other >= base and other[:lead + 1] == base[:lead + 1])


@given(st.dictionaries(st.sampled_from(["a", "b/c", "b/d", "e/f/g"]), st.binary(max_size=20), min_size=1, max_size=4), st.data())
@settings(deadline=None, max_examples=100)
def test_a_digest_sees_every_byte_and_no_date(files: dict[str, bytes], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "one"
        for name, content in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(content)
        first = tree.digest(root)
        tree.copy(root, Path(folder) / "two")
        assert tree.digest(Path(folder) / "two") == first
        name = data.draw(st.sampled_from(sorted(files)))
        (root / name).write_bytes(files[name] + b"!")
        assert tree.digest(root) != first
