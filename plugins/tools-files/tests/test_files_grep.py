"""Grep, with ripgrep and with the fallback (tools contract, section 9). What differs between the two is said."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from kernel_tools_files import engines, grep_tool
from kernel_tools_files.paths import Target
from kernel_tools_files.programs import run_program


@pytest.fixture(params=["rg", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name == "python":
        monkeypatch.setattr(engines, "find_rg", lambda: None)
    elif not engines.find_rg():
        pytest.skip("rg is not installed")
    return name


@pytest.fixture
def tree(bench: Any) -> Any:
    """Three files, oldest first: a.py, sub/b.txt, c.py."""
    for number, (name, text) in enumerate({
            "a.py": "import os\nneedle = 1\n", "sub/b.txt": "one\nNeedle two needle\nthree\n", "c.py": "no\n"}.items()):
        path = bench.write(name, text)
        os.utime(path, (1_000 + number, 1_000 + number))
    return bench


def grep(bench: Any, pattern: str, **input: Any) -> Any:
    return bench("Grep", pattern=pattern, **input)


def names(result: Any, root: Path) -> list[str]:
    return [os.path.relpath(name, root) for name in result.structured["filenames"]]


def content(bench: Any, pattern: str, **input: Any) -> list[str]:
    """Lines of content mode, without notes."""
    lines: list[str] = grep(bench, pattern, output_mode="content", **input).structured["content"].split("\n")
    return lines


pytestmark = pytest.mark.usefixtures("engine")


def test_files_newest_first(tree: Any, engine: str) -> None:
    result = grep(tree, "needle")
    assert names(result, tree.root) == ["sub/b.txt", "a.py"]
    assert result.structured["numFiles"] == result.structured["totalFiles"] == 2
    assert ("rg is missing" in result.content) == (engine == "python")


@pytest.mark.parametrize(("input", "lines"), [
    ({}, ["sub/b.txt:2:Needle two needle", "a.py:2:needle = 1"]),
    ({"-n": False}, ["sub/b.txt:Needle two needle", "a.py:needle = 1"]),
    ({"-o": True}, ["sub/b.txt:2:needle", "a.py:2:needle"]),
    ({"-o": True, "-i": True}, ["sub/b.txt:2:Needle", "sub/b.txt:2:needle", "a.py:2:needle"]),
    ({"-A": 1}, ["sub/b.txt:2:Needle two needle", "sub/b.txt-3-three", "--", "a.py:2:needle = 1"]),
    ({"-B": 1}, ["sub/b.txt-1-one", "sub/b.txt:2:Needle two needle", "--", "a.py-1-import os", "a.py:2:needle = 1"]),
    ({"-C": 1, "path": "a.py"}, ["a.py-1-import os", "a.py:2:needle = 1"]),
    ({"context": 1, "path": "a.py"}, ["a.py-1-import os", "a.py:2:needle = 1"]),
    ({"context": 9, "-C": 0, "path": "a.py"}, ["a.py:2:needle = 1"]),
    ({"path": "sub"}, ["sub/b.txt:2:Needle two needle"]),
    ({"glob": "*.py"}, ["a.py:2:needle = 1"]),
    ({"glob": "!*.py"}, ["sub/b.txt:2:Needle two needle"]),
    ({"glob": "sub/*.{txt,md}"}, ["sub/b.txt:2:Needle two needle"]),
    ({"type": "py"}, ["a.py:2:needle = 1"]),
])
def test_content(tree: Any, input: dict[str, Any], lines: list[str]) -> None:
    assert content(tree, "needle", **input) == lines


def test_separators_stand_between_groups_only(bench: Any) -> None:
    bench.write("a", "x\n1\n2\n3\nx\nx\n4\n5\n6\n7\nx\n")
    assert content(bench, "x", **{"-A": 1}) == ["a:1:x", "a-2-1", "--", "a:5:x", "a:6:x", "a-7-4", "--", "a:11:x"]


def test_count(tree: Any) -> None:
    result = grep(tree, "needle", output_mode="count", **{"-i": True})
    assert result.structured["content"] == f"{tree.root}/sub/b.txt:1\n{tree.root}/a.py:1"
    assert result.structured["numMatches"] == 2 and result.structured["totalFiles"] == 2 and "2 matching lines" in result.content


@pytest.mark.parametrize(("pattern", "multiline", "lines"), [
    ("one.*three", True, ["sub/b.txt:1:one", "sub/b.txt:2:Needle two needle", "sub/b.txt:3:three"]),
    ("one.*three", False, [""]), ("one$", False, ["sub/b.txt:1:one"]), ("^three", True, ["sub/b.txt:3:three"])])
def test_multiline(tree: Any, pattern: str, multiline: bool, lines: list[str]) -> None:
    assert content(tree, pattern, multiline=multiline) == lines


@pytest.mark.parametrize("mode", ["files_with_matches", "content", "count"])
@pytest.mark.parametrize(("limit", "offset", "shown", "cut"), [
    (3, 0, [1, 2, 3], False), (2, 0, [1, 2], True), (2, 1, [2, 3], False), (1, 1, [2], True), (0, 0, [1, 2, 3], False),
    (0, 2, [3], False)])
def test_head_limit_and_offset(bench: Any, mode: str, limit: int, offset: int, shown: list[int], cut: bool) -> None:
    for number in (1, 2, 3):
        os.utime(bench.write(f"f{number}", "x\n"), (2_000 - number, 2_000 - number))
    result = grep(bench, "x", output_mode=mode, head_limit=limit, offset=offset)
    assert names(result, bench.root) == [f"f{n}" for n in shown]
    assert result.structured.get("appliedLimit") == (limit if cut else None)
    assert result.structured.get("appliedOffset") == (offset or None)
    assert result.truncated == cut == ("Go on with" in result.content)
    if mode != "content":
        assert result.structured["totalFiles"] == 3
    if mode == "count":
        assert result.structured["numMatches"] == 3


def test_the_limit_is_250_lines(bench: Any) -> None:
    bench.write("a", "x\n" * 251)
    result = grep(bench, "x", output_mode="content")
    assert result.structured["numLines"] == 250 and "offset=250" in result.content
    assert grep(bench, "x", output_mode="content", head_limit=251).structured["totalLines"] == 251


@pytest.mark.parametrize("mode", ["files_with_matches", "content", "count"])
def test_an_offset_behind_the_end(tree: Any, mode: str) -> None:
    result = grep(tree, "needle", output_mode=mode, offset=99)
    assert result.content.startswith("No entries at this offset") and result.status == "success"


@pytest.mark.parametrize(("mode", "text"), [
    ("files_with_matches", "No files found"), ("content", "No matches found"), ("count", "No matches found")])
def test_no_match(tree: Any, mode: str, text: str) -> None:
    result = grep(tree, "zzz", output_mode=mode)
    assert result.content.startswith(text) and result.status == "empty" and not result.failed


@pytest.mark.parametrize(("input", "word"), [
    ({"pattern": "("}, "parse error"), ({"pattern": "x", "type": "klingon"}, "klingon"), ({"pattern": "a{2"}, "")])
def test_what_the_engine_refuses_is_an_error_with_its_words(tree: Any, engine: str, input: dict[str, Any], word: str) -> None:
    if engine == "python" and not word:
        pytest.skip("Python takes the brace literally")
    error = tree.error("Grep", **input)
    assert error.code == "invalid_arguments" and word in error.message


def test_a_glob_that_ripgrep_refuses(tree: Any, engine: str) -> None:
    if engine == "rg":
        assert "[" in tree.error("Grep", pattern="x", glob="[").message


@pytest.mark.parametrize("field", ["pattern", "glob", "type"])
@pytest.mark.parametrize("value", ["a\0b", "a\ud800"])
def test_text_that_no_program_can_be_given(tree: Any, field: str, value: str) -> None:
    assert tree.error("Grep", **{"pattern": "x", field: value}).code == "invalid_arguments"


def test_texts_that_look_like_options_are_none(bench: Any) -> None:
    bench.write("-x", "--files\n")
    assert content(bench, "--files", path="-x") == ["-x:1:--files"]
    assert content(bench, "--files", glob="-*") == ["-x:1:--files"]


def test_ignored_and_version_control_files_are_left_out_unless_named(bench: Any) -> None:
    for name in (".hidden", "out/made.txt", "a.log", ".git/config", "sub/.hg/x", "seen"):
        bench.write(name, "x\n")
    bench.write(".gitignore", "out/\n*.log\n")
    assert sorted(names(grep(bench, "x"), bench.root)) == [".hidden", "seen"]
    assert names(grep(bench, "x", path="a.log"), bench.root) == ["a.log"]
    assert names(grep(bench, "x", path="out"), bench.root) == ["out/made.txt"]
    assert names(grep(bench, "x", path=".git/config"), bench.root) == [".git/config"]


@pytest.mark.parametrize("mode", ["files_with_matches", "content", "count"])
def test_files_that_a_rule_hides_are_left_out(bench: Any, mode: str) -> None:
    """Neither their names nor their lines nor their numbers."""
    bench.write(".env", "x SECRET\n" * 3)
    bench.write("sub/.env", "x SECRET\n\0x")
    bench.write("a", "x\n")
    bench.decide = lambda name, input: "deny" if input.get("file_path", "").endswith(".env") else "allow"
    result = grep(bench, "x", output_mode=mode, **{"-C": 2})
    assert names(result, bench.root) == ["a"]
    assert "SECRET" not in str(result) and ".env" not in str(result)
    assert result.structured.get("totalFiles", 1) == result.structured.get("numMatches", 1) == 1


@pytest.mark.parametrize(("raw", "pattern", "lines"), [
    ("naïve 日本 😀\n".encode(), "日.", ["f:1:naïve 日本 😀"]),
    (b"one\r\ntwo\r\n", "one$", ["f:1:one"]),
    (b"caf\xe9 x\n", "x", ["f:1:caf\ufffd x"]),
    (b"\xff\xfe" + "é x\n".encode("utf-16-le"), "x", ["f:1:é x"]),
    (b"x" * 500 + b"\n", "x", ["f:1:" + "x" * 500]),
    (b"x" * 501 + b"\n", "x", ["f:1:" + "x" * 500 + "… (line cut)"]),
    ("日".encode() * 500 + b"\n", "日", ["f:1:" + "日" * 500]),
    (b"x" * 3_000_000, "x", ["f:1:" + "x" * 500 + "… (line cut)"]),
    (b"a:1:x--\n--\n", "x", ["f:1:a:1:x--"]),
])
def test_bytes(bench: Any, raw: bytes, pattern: str, lines: list[str]) -> None:
    bench.write("f", raw)
    assert content(bench, pattern) == lines


@pytest.mark.parametrize("name", ["naïve café", "日本", "a b'c\"d", "new\nline", "--", "a:1:b", "x: binary file matches (y"])
@pytest.mark.parametrize("mode", ["files_with_matches", "content", "count"])
def test_odd_names(bench: Any, name: str, mode: str) -> None:
    bench.write(name, "x\n")
    assert names(grep(bench, "x", output_mode=mode), bench.root) == [name]


def test_a_name_that_is_no_utf8(bench: Any) -> None:
    with open(os.fsencode(bench.root) + b"/b\xffd", "wb") as file:
        file.write(b"x\n")
    assert grep(bench, "x").structured["filenames"] == [f"{bench.root}/b\ufffdd"]


def test_binary_files_are_passed_over(bench: Any) -> None:
    bench.write("a.bin", b"x\n\0x\n")
    assert grep(bench, "x").status == "empty"


@pytest.mark.parametrize("hidden", [False, True])
def test_a_binary_file_whose_beginning_matches_is_named(bench: Any, engine: str, hidden: bool) -> None:
    """ripgrep finds out late that it is binary; what it says of the file passes the rules too."""
    if engine == "python":
        pytest.skip("the fallback looks at the whole file first")
    bench.write("a: b.bin", b"x\n" + b"y" * 200_000 + b"\0")
    if hidden:
        bench.decide = lambda name, input: "deny" if "bin" in input.get("file_path", "") else "allow"
    assert content(bench, "x") == ([""] if hidden else ["a: b.bin:1:x", "a: b.bin: a binary file with a match"])


def test_links_are_not_followed(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("x\n")
    (bench.root / "folder").symlink_to(tmp_path / "outside")
    (bench.root / "file").symlink_to(tmp_path / "outside" / "secret")
    assert grep(bench, "x").status == "empty"


def test_below_a_link_paths_are_those_that_were_asked_for(bench: Any) -> None:
    bench.write("sub/a", "x\n")
    (bench.root / "link").symlink_to("sub")
    (bench.root / "file").symlink_to("sub/a")
    assert names(grep(bench, "x", path="link"), bench.root) == ["link/a"]
    assert names(grep(bench, "x", path="file"), bench.root) == ["file"]


@pytest.mark.parametrize(("path", "code"), [("no", "not_found"), ("pipe", "not_a_file"), ("a/b", "not_found")])
def test_places_that_cannot_be_searched(bench: Any, path: str, code: str) -> None:
    bench.write("a", "x")
    os.mkfifo(bench.root / "pipe")
    assert bench.error("Grep", pattern="x", path=path).code == code


def test_a_search_from_a_swapped_folder_is_refused(bench: Any, tmp_path: Path) -> None:
    from kernel import ToolError

    (tmp_path / "outside").mkdir()
    bench.write("sub/a", "x\n")

    def exchange() -> None:
        (bench.root / "sub").rename(bench.root / "moved")
        (bench.root / "sub").symlink_to(tmp_path / "outside")

    async def run() -> None:
        await bench.call("Grep", {"pattern": "x", "path": "sub"}, exchange)

    with pytest.raises(ToolError) as caught:
        anyio.run(run)
    assert caught.value.code == "path_changed"


@pytest.mark.parametrize("found", [True, False])
def test_the_time_limit_ends_the_engine(bench: Any, monkeypatch: pytest.MonkeyPatch, found: bool) -> None:
    """With something found the result is partial; with nothing it is an error that names the seconds. The process is gone."""
    mark = f"7{os.getpid()}.25"
    script = f"printf './a\\0'; exec sleep {mark}" if found else f"exec sleep {mark}"
    monkeypatch.setattr(engines, "engine_for", lambda input, entry: engines.Engine(["sh", "-c", script]))
    monkeypatch.setattr(grep_tool, "SECONDS", 0.5)
    bench.write("a", "x\n")
    if found:
        result = grep(bench, "x")
        assert result.status == "partial" and names(result, bench.root) == ["a"] and "0.5 seconds" in result.content
    else:
        error = bench.error("Grep", pattern="x")
        assert error.code == "timeout" and "0.5 seconds" in error.message
    assert not running(mark)


def running(mark: str) -> bool:
    """Whether a process with that argument exists."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def test_a_cancelled_search_leaves_no_process(tmp_path: Path) -> None:
    """The whole group is killed: the engine and what it started."""
    mark = f"8{os.getpid()}.25"
    child = "import time; print('ready', flush=True); time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}, {mark!r}]).wait()"

    async def run() -> None:
        started = anyio.Event()

        def take(piece: bytes) -> bool:
            started.set()
            return True

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: run_program([sys.executable, "-c", parent], take, seconds=60, cwd=str(tmp_path)))
            await started.wait()
            assert running(mark)
            tasks.cancel_scope.cancel()

    anyio.run(run)
    deadline = time.monotonic() + 10  # killed; the system may take a moment to clear it away
    while running(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not running(mark)


def test_an_endless_regular_expression_of_the_fallback_ends_at_the_time_limit(bench: Any, engine: str,
                                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "rg":
        pytest.skip("ripgrep's time is linear")
    monkeypatch.setattr(grep_tool, "SECONDS", 1.0)
    bench.write("a", "a" * 60 + "b\n")
    assert bench.error("Grep", pattern="(a+)+c").code == "timeout"


def test_a_crash_of_the_engine_is_an_error(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "engine_for", lambda input, entry: engines.Engine(["sh", "-c", "echo broken >&2; kill -9 $$"]))
    error = bench.error("Grep", pattern="x")
    assert error.code == "search_failed" and "broken" in error.message


def test_an_engine_that_cannot_be_started_is_an_error(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "engine_for", lambda input, entry: engines.Engine(["/no/such/program"]))
    assert bench.error("Grep", pattern="x").code == "io_error"


def test_a_page_that_is_full_ends_the_engine(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "engine_for", lambda input, entry: engines.Engine(
        ["sh", "-c", "while :; do printf './a\\0001:x\\n'; done"]))
    result = grep(bench, "x", output_mode="content", head_limit=5)
    assert result.structured["numLines"] == 5 and result.truncated


def test_the_config_file_of_a_person_is_not_used(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(bench.write("rgrc", "--ignore-case\n")))
    bench.write("a", "X\n")
    assert names(grep(bench, "^x"), bench.root) == []


def test_modules_of_the_searched_folder_are_not_imported(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a json.py must not run inside the fallback, whatever the module search path says."""
    monkeypatch.setenv("PYTHONPATH", ".")
    bench.write("json.py", "open('ran', 'w')\nx = 1\n")
    bench.write("re.py", "open('ran', 'w')\nx = 1\n")
    assert len(names(grep(bench, "x"), bench.root)) == 2
    assert not (bench.root / "ran").exists()


def test_the_place_of_a_single_file(tmp_path: Path) -> None:
    (tmp_path / "-f").write_text("x")
    assert grep_tool._place(Target(str(tmp_path / "-f"), str(tmp_path / "-f"))) == (str(tmp_path), "./-f")


def test_beyond_the_page_the_rules_are_not_asked_about_every_file(bench: Any) -> None:
    """The first files are counted exactly; of a search that finds far more, no total is told."""
    for number in range(2_100):
        bench.write(f"many/{number}.txt", "needle")
    asked: list[str] = []
    bench.decide = lambda name, input: asked.append(input["file_path"]) or "allow"
    for mode in ("files_with_matches", "count"):
        asked.clear()
        found = bench("Grep", pattern="needle", output_mode=mode)
        assert found.structured["numFiles"] == 250 and found.truncated
        assert "totalFiles" not in found.structured and len(asked) <= 2_001
    assert "in 250 files that are listed; there are more" in found.content
    few = bench("Grep", pattern="needle", output_mode="count", glob="1?.txt")
    assert few.structured["totalFiles"] == few.structured["numMatches"] == 10
