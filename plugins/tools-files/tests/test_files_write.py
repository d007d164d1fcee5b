"""Write, and how a file is replaced: whole or not at all (tools contract, sections 3.2 and 6)."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from kernel_tools_files import writing


def write(bench: Any, path: Path | str, content: str) -> Any:
    return bench("Write", file_path=str(path), content=content)


def refused(bench: Any, path: Path | str, content: str = "new\n") -> Any:
    return bench.error("Write", file_path=str(path), content=content)


def leftovers(folder: Path) -> list[str]:
    return [p.name for p in folder.iterdir() if p.name.startswith(".kernel-")]


def test_a_new_file_in_missing_folders(bench: Any) -> None:
    path = bench.root / "a" / "b" / "c.txt"
    result = write(bench, path, "one\ntwo\n")
    assert path.read_bytes() == b"one\ntwo\n" and leftovers(path.parent) == []
    assert result.structured == {"type": "create", "filePath": str(path), "content": "one\ntwo\n", "structuredPatch": [],
                                 "originalFile": None}
    assert str(path) in result.content and "2 lines" in result.content


def test_an_update(bench: Any) -> None:
    path = bench.write("a.txt", "one\ntwo\n")
    bench.read(path)
    result = write(bench, path, "one\n2\n")
    assert result.structured["type"] == "update" and result.structured["originalFile"] == "one\ntwo\n"
    assert result.structured["structuredPatch"][0]["lines"] == [" one", "-two", "+2"]


def test_a_written_file_may_be_written_and_edited_again(bench: Any) -> None:
    path = bench.root / "a.txt"
    write(bench, path, "one\n")
    write(bench, path, "two\n")
    bench("Edit", file_path=str(path), old_string="two", new_string="three")
    assert path.read_text() == "three\n"


def test_an_unread_file_is_not_overwritten_an_empty_one_is(bench: Any) -> None:
    path = bench.write("a.txt", "precious\n")
    assert refused(bench, path).code == "not_read" and path.read_text() == "precious\n"
    write(bench, bench.write("empty.txt", ""), "new\n")


@pytest.mark.parametrize("same", [True, False])
def test_a_changed_file_is_not_overwritten_a_touched_one_is(bench: Any, same: bool) -> None:
    path = bench.write("a.txt", "one\n")
    bench.read(path)
    path.write_text("one\n" if same else "two\n")
    os.utime(path, (1, 1))
    if same:
        write(bench, path, "new\n")
    else:
        assert refused(bench, path).code == "stale_file" and path.read_text() == "two\n"


def test_a_file_that_was_removed_is_made_anew(bench: Any) -> None:
    path = bench.write("a.txt", "one\n")
    bench.read(path)
    path.unlink()
    assert write(bench, path, "new\n").structured["type"] == "create"


@pytest.mark.parametrize(("raw", "content", "after"), [
    (b"one\r\ntwo\r\n", "1\n2\n", b"1\r\n2\r\n"),
    (b"one\r\ntwo\r\n", "1\r\n2\n", b"1\r\n2\r\n"),
    (b"one\r\ntwo\n", "1\n2\n", b"1\n2\n"),
    (b"one\n", "1\r\n2\n", b"1\r\n2\n"),
    (b"\xef\xbb\xbfone\n", "1\n", b"\xef\xbb\xbf1\n"),
    (b"\xfe\xff" + "é\n".encode("utf-16-be"), "1\n", b"\xfe\xff" + "1\n".encode("utf-16-be")),
    (b"caf\xe9\n", "th\xe9\n", b"th\xe9\n"),
    (b"caf\xe9\n", "日\n", "日\n".encode()),
    (b"one\n", "", b""),
])
def test_encoding_and_line_ends_of_an_existing_file_are_kept(bench: Any, raw: bytes, content: str, after: bytes) -> None:
    """A file that is not mixed keeps its line ends; an encoding that cannot hold the text gives way to UTF-8, with a note."""
    path = bench.write("a.txt", raw)
    bench.read(path)
    result = write(bench, path, content)
    assert path.read_bytes() == after
    assert ("UTF-8 now" in result.content) == ("日" in content)


def test_a_new_file_is_written_as_given(bench: Any) -> None:
    write(bench, bench.root / "a.txt", "one\r\ntwo\n\u2028日")
    assert (bench.root / "a.txt").read_bytes() == "one\r\ntwo\n\u2028日".encode()


def test_the_mode_is_kept_and_a_new_file_follows_the_umask(bench: Any) -> None:
    path = bench.write("a.sh", "one\n")
    path.chmod(0o4751)
    bench.read(path)
    write(bench, path, "two\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o4751
    before = os.umask(0o027)
    try:
        write(bench, bench.root / "d" / "new.txt", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((bench.root / "d" / "new.txt").stat().st_mode) == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_is_kept(bench: Any) -> None:
    path = bench.write("a.txt", "one\n")
    os.chown(path, 1234, 4321)
    bench.read(path)
    write(bench, path, "two\n")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_without_folder_descriptors_full_paths_are_used(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_AT", False)
    path = bench.root / "a" / "b.txt"
    write(bench, path, "one\n")
    write(bench, path, "two\n")
    assert path.read_text() == "two\n" and leftovers(path.parent) == []


def test_a_link_is_written_through_and_stays_a_link(bench: Any) -> None:
    path = bench.write("sub/a.txt", "one\n")
    link, dangling = bench.root / "link", bench.root / "dangling"
    link.symlink_to("sub/a.txt")
    dangling.symlink_to("sub/new.txt")
    bench.read(link)
    write(bench, link, "two\n")
    write(bench, dangling, "three\n")
    assert link.is_symlink() and path.read_text() == "two\n"
    assert dangling.is_symlink() and (bench.root / "sub/new.txt").read_text() == "three\n"


@pytest.mark.parametrize(("path", "code"), [
    (".", "is_directory"), ("file/below", "not_a_directory"), ("file/below/deep", "not_a_directory"), ("pipe", "not_a_file"),
    ("x" * 300, "io_error"), ("loop", "io_error")])
def test_places_where_no_file_can_be(bench: Any, path: str, code: str) -> None:
    bench.write("file", "x")
    os.mkfifo(bench.root / "pipe")
    (bench.root / "loop").symlink_to("loop")
    assert refused(bench, bench.root / path).code == code


def test_half_a_surrogate_pair_is_refused(bench: Any) -> None:
    error = refused(bench, bench.root / "a.txt", "x\udc80y")
    assert error.code == "invalid_arguments" and "content" in error.message and not (bench.root / "a.txt").exists()


# -- failures leave the old file whole ------------------------------------------------------------------------------------
@pytest.mark.parametrize("function", ["replace", "open", "fdopen"])
@pytest.mark.parametrize("kind", ["Write", "Edit"])
def test_a_failed_write_leaves_the_old_file_whole(bench: Any, monkeypatch: pytest.MonkeyPatch, function: str, kind: str) -> None:
    """The disk is full, or the folder cannot be written: at the temporary file, while it is filled, at the rename."""
    path = bench.write("a.txt", "old\n")
    bench.read(path)
    real = getattr(os, function)

    def fails(*args: Any, **more: Any) -> Any:
        if function == "open" and not args[1] & os.O_CREAT:
            return real(*args, **more)
        if function == "fdopen" and args[1] != "wb":
            return real(*args, **more)
        if function == "fdopen":
            os.close(args[0])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writing.os, function, fails)
    input = {"content": "new\n"} if kind == "Write" else {"old_string": "old", "new_string": "new"}
    error = bench.error(kind, file_path=str(path), **input)
    assert error.code == "io_error" and "unchanged" in error.message and "No space" in error.message
    assert path.read_text() == "old\n" and leftovers(bench.root) == []


def test_an_interrupted_write_leaves_nothing_behind(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.write("a.txt", "old\n")
    bench.read(path)

    def interrupted(*args: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writing.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(bench, path, "new\n")
    assert path.read_text() == "old\n" and leftovers(bench.root) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_a_read_only_folder(bench: Any) -> None:
    path = bench.write("sub/a.txt", "old\n")
    bench.read(path)
    path.parent.chmod(0o555)
    try:
        assert refused(bench, path).code == "io_error" and path.read_text() == "old\n"
    finally:
        path.parent.chmod(0o755)


# -- links and files that are exchanged ------------------------------------------------------------------------------------
SWAPS = ["link", "folder", "file to link", "new file to link"]


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("kind", ["Read", "Write", "Edit"])
def test_what_is_swapped_after_the_decision_is_not_opened(bench: Any, tmp_path: Path, swap: str, kind: str) -> None:
    """Permission was given for a file in the workspace; then its name leads to another one outside."""
    import anyio

    from kernel import ToolError

    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "a.txt"
    secret.write_text("secret one\n")
    path = bench.write("sub/a.txt", "one\n")
    if swap == "link":
        given = bench.root / "link"
        given.symlink_to(path)
    elif swap == "new file to link":
        given = bench.root / "sub" / "new.txt"
    else:
        given = path
    if given.exists():
        bench.read(given)

    def exchange() -> None:
        if swap == "link":
            given.unlink()
            given.symlink_to(secret)
        elif swap == "folder":
            path.parent.rename(bench.root / "moved")
            (bench.root / "sub").symlink_to(outside)
        else:
            given.unlink(missing_ok=True)
            given.symlink_to(secret)

    input = {"Read": {}, "Write": {"content": "new\n"}, "Edit": {"old_string": "one", "new_string": "1"}}[kind]

    async def run() -> Any:
        return await bench.call(kind, {"file_path": str(given), **input}, exchange)

    if swap == "link":  # the file that permission was given for is still there, and is what is used
        assert "secret" not in str(anyio.run(run).content)
    else:
        with pytest.raises(ToolError) as caught:
            anyio.run(run)
        assert caught.value.code in ("path_changed", "not_found")
    assert secret.read_text() == "secret one\n"


def test_a_change_between_reading_and_renaming_is_noticed(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look before the rename: somebody wrote the file while we prepared ours."""
    path = bench.write("a.txt", "old\n")
    bench.read(path)
    real = writing._keep_mode

    def slow(fd: int, old: os.stat_result) -> None:
        path.write_text("theirs\n")
        real(fd, old)

    monkeypatch.setattr(writing, "_keep_mode", slow)
    assert refused(bench, path).code == "stale_file"
    assert path.read_text() == "theirs\n" and leftovers(bench.root) == []


def test_agents_that_edit_one_file_at_once_lose_nothing(bench: Any) -> None:
    """Two sessions of one process: every edit is applied to the content that the one before left."""
    import anyio

    from kernel import ToolContext

    path = bench.write("a.txt", "".join(f"<{n}>\n" for n in range(40)))
    other = type(bench)(bench.root)
    other.session.toolbox.by_name = bench.session.toolbox.by_name
    bench.read(path)
    other.read(path)

    async def one(session: Any, n: int) -> None:
        tool = bench.tools["Edit"]
        context = ToolContext(session, "call", "Edit")
        input = tool.prepare_input({"file_path": str(path), "old_string": f"<{n}>", "new_string": str(n)}, context)
        await tool.call(input, context)

    async def all() -> None:
        async with anyio.create_task_group() as tasks:
            for n in range(40):
                tasks.start_soon(one, bench.session if n % 2 else other.session, n)

    anyio.run(all)
    assert path.read_text() == "".join(f"{n}\n" for n in range(40))
