"""Whatever stands in harness.yaml, kernel.lock or a wheel: an error with the file's name, or what it says. Never a traceback."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from kernel_manager.errors import ManagerError
from kernel_manager.harness_file import lockfile, model, wheels
from kernel_manager.harness_file.lockfile import Distribution, From, Lock, Locked

from .case_harness import library_wheel

HERE = Path("/somewhere/harness.yaml")
GOOD = b"""harness: 1
name: team
plugins:
  - kernel-permissions>=0.1
  - path: ./mine
  - {git: 'https://example.org/x.git', ref: v1, folder: sub}
  - notes@team
marketplaces: {team: owner/repo}
settings: {model: sonnet, permissions: {deny: ["Read(./.env)"]}}
order: [permissions]
block: []
"""

names = st.from_regex(r"[a-z][a-z0-9-]{0,12}", fullmatch=True)
hexes = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
paths = st.lists(st.from_regex(r"[A-Za-z0-9_é-][A-Za-z0-9_.é-]{0,8}", fullmatch=True), min_size=1, max_size=4).map("/".join)
files = st.dictionaries(paths, hexes, max_size=6)
values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
                      lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=8)
origins = st.builds(From, kind=st.sampled_from(["index", "folder", "git", "entry", "source"]), spec=st.none() | words,
                    pin=st.none() | words)
distributions = st.builds(Distribution, version=words, source=origins, archive=st.none() | words, sha256=st.none() | hexes,
                          requires=st.lists(names, max_size=3), files=files)


@st.composite
def locks(draw: st.DrawFn) -> Lock:
    have = draw(st.dictionaries(names, distributions, max_size=4))
    owner = st.sampled_from(sorted(have)) if have else None
    installed = st.builds(Locked, version=words, distribution=owner, package=st.just("pkg")) if owner is not None else None
    plain = st.builds(Locked, version=words, source=origins, files=files)
    return Lock(harness=draw(hexes), kernel=draw(words), python=draw(words), platform=draw(words), name=draw(st.none() | words),
                settings=draw(st.dictionaries(words, values, max_size=4)), order=draw(st.lists(names, max_size=3)),
                block=draw(st.lists(names, max_size=3)),
                plugins=draw(st.dictionaries(names, plain if installed is None else installed | plain, max_size=4)),
                distributions=have)


@settings(max_examples=50)
@given(locks())
def test_a_lock_read_and_written_is_the_same_lock(lock: Lock) -> None:
    raw = lockfile.dumps(lock)
    again = lockfile.loads(raw, HERE)
    assert again == lock and lockfile.dumps(again) == raw
    assert lockfile.digest_of_harness(raw) == lockfile.digest_of_harness(raw.replace(b"\n", b"\r\n"))


@settings(max_examples=30)
@given(locks(), st.randoms(use_true_random=False))
def test_the_order_of_tables_does_not_matter(lock: Lock, dice: object) -> None:
    raw = lockfile.dumps(lock)
    data = json.loads(raw)
    for key in ("plugins", "distributions", "settings"):
        items = list(data[key].items())
        dice.shuffle(items)  # type: ignore[attr-defined]
        data[key] = dict(items)
    assert lockfile.dumps(lockfile.loads(json.dumps(data).encode(), HERE)) == raw


def attempt(read: Callable[[], Any]) -> tuple[Any, str]:
    """What was read, or the words of the refusal."""
    try:
        return read(), ""
    except ManagerError as error:
        return None, str(error)


def bent(good: bytes) -> st.SearchStrategy[bytes]:
    """Good text with some bytes removed, replaced or put in."""
    edit = st.tuples(st.integers(0, len(good)), st.integers(0, 40), st.binary(max_size=12) | st.sampled_from(
        [b"*a", b"&a ", b"<<: ", b"!!python/object:x ", b"? ", b"\t", b"[", b"{", b"}", b"null", b"1e999", b"-1", b'"', b"\0",
         b": ", b"\n- "]))
    def apply(edits: list[tuple[int, int, bytes]]) -> bytes:
        raw = good
        for at, length, text in edits:
            raw = raw[:at] + text + raw[at + length:]
        return raw
    return st.lists(edit, min_size=1, max_size=4).map(apply)


@given(bent(GOOD) | st.binary(max_size=200))
@example(GOOD)
@example(b"\xef\xbb\xbf" + GOOD)
@example(b"harness: 1\nplugins: [" + b"{path: a}, " * 3000 + b"]")
@example(b"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nharness: 1\nsettings: {x: *c}")
def test_any_harness_file_is_read_or_refused_by_name(raw: bytes) -> None:
    parsed, said = attempt(lambda: model.from_bytes(HERE, raw))
    if parsed is None:
        assert said.startswith(str(HERE))
    else:
        assert all(line >= 1 for _, line in parsed.wanted)
        json.dumps(parsed.file.settings, allow_nan=False).encode()


LOCK = lockfile.dumps(Lock(
    harness="0" * 64, kernel="0.1.0", python="cpython-311", platform="any", settings={"model": "x"},
    plugins={"greeter": Locked(version="1.0", distribution="greeter", package="greeter_pkg"),
             "notes": Locked(version="", source=From(kind="folder", spec="./notes"), files={"a/b.md": "1" * 64})},
    distributions={"greeter": Distribution(version="1.0", source=From(kind="index"), archive="g.whl", sha256="2" * 64,
                                           requires=[], files={"greeter_pkg/plugin.py": "3" * 64})}))


@settings(max_examples=300)
@given(bent(LOCK) | st.binary(max_size=100) | st.recursive(values, lambda v: st.dictionaries(st.sampled_from(
    ["lock", "plugins", "distributions", "files", "settings", "harness"]), v)).map(lambda v: json.dumps(v).encode()))
@example(LOCK)
@example(LOCK.replace(b"a/b.md", b"../b.md"))
@example(LOCK.replace(b'"greeter_pkg"', b'"../x"'))
@example(b"[" * 100_000)
@example(b'{"lock": NaN}')
def test_any_lock_is_read_or_refused_by_name(raw: bytes) -> None:
    """tests/test_lock.py of the kernel asks the same of the side that runs it."""
    path = Path("/somewhere/kernel.lock")
    lock, said = attempt(lambda: lockfile.loads(raw, path))
    assert said.startswith(str(path)) if lock is None else b"../" not in raw


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_wheel_is_read_or_refused_by_name(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = library_wheel(Path(folder), "x", "1.0")
        path.write_bytes(data.draw(bent(path.read_bytes())))
        for read in (wheels.facts, wheels.digests):
            found, said = attempt(partial(read, path))
            assert found is not None or said.startswith("wheel x-1.0-py3-none-any.whl: ")


def test_a_wheel_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = library_wheel(tmp_path, "x", "1.0")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("x/zeros", b"\0" * 3_000_000)
    monkeypatch.setattr(wheels, "MAX_TOTAL", 2_000_000)
    with pytest.raises(ManagerError, match="over 2000000 bytes"):
        wheels.digests(path)
    monkeypatch.setattr(wheels, "MAX_FILES", 2)
    with pytest.raises(ManagerError, match="more than 2 files"):
        wheels.digests(path)
