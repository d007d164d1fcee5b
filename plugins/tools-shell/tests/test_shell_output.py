"""What a command's output becomes: inline, saved, shortened, cleaned, an image."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from kernel_tools_shell import command, report
from kernel_tools_shell.bash import Bash
from kernel_tools_shell.schema import OUTPUT_SCHEMA

pytestmark = pytest.mark.anyio
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


async def test_both_streams_come_in_the_order_in_which_they_were_written(box: Any) -> None:
    result = await box.bash("echo one; echo two >&2; echo three")
    assert result.content == "one\ntwo\nthree"
    assert result.structured == {"stdout": "one\ntwo\nthree", "stderr": "", "interrupted": False, "isImage": False}


async def test_a_failure_says_its_code_first_and_keeps_the_output(box: Any) -> None:
    result = await box.bash("echo out; echo err >&2; exit 3")
    assert result.content == "Exit code 3\nout\nerr"
    assert (result.failed, result.error_code, result.retryable) == (True, "exit_status", False)


@pytest.mark.parametrize(("how", "code"), [("kill -9 $$", 137), ("kill $$", 143), ("exit 255", 255), ("nosuchprogram", 127)])
async def test_death_by_a_signal_is_128_and_its_number(box: Any, how: str, code: int) -> None:
    assert (await box.text(how)).startswith(f"Exit code {code}")


async def test_no_output_is_said_in_words(box: Any) -> None:
    assert await box.text("true") == "(Bash completed with no output)"


@pytest.mark.parametrize(("text", "says"), [
    ("grep x a.txt", "no match was found"), ("echo hi | grep -q x", "no match was found"), ("LC_ALL=C egrep x a.txt", "no match"),
    ("diff a.txt b.txt", "the files differ"), ("test -e none", "the condition is false"), ("[ 1 = 2 ]", "the condition is false"),
    ("find none a.txt", "could not be searched"), ("git diff --no-index a.txt b.txt", "the files differ"),
    ("git --no-pager grep --no-index nothing", "no match was found"),
])
async def test_exit_code_1_of_these_programs_is_a_result(box: Any, text: str, says: str) -> None:
    (box.workspace / "a.txt").write_text("a\n")
    (box.workspace / "b.txt").write_text("b\n")
    result = await box.bash(text)
    assert not result.failed, result.content
    assert says in result.structured["returnCodeInterpretation"] and says in str(result.content)


@pytest.mark.parametrize("text", ["grep x none", "false", "grep x a.txt; false", "grep x a.txt && true || false", "ls none"])
async def test_other_failures_stay_failures(box: Any, text: str) -> None:
    (box.workspace / "a.txt").write_text("a\n")
    assert (await box.bash(text)).error_code == "exit_status"


# -- sizes at their edges ---------------------------------------------------------------------------------------------
def printing(characters: int) -> str:
    return f"head -c {characters} /dev/zero | tr '\\0' x"


async def test_30000_characters_are_shown_and_one_more_is_saved(box: Any) -> None:
    shown = await box.bash(printing(30_000))
    assert shown.content == "x" * 30_000 and "persistedOutputPath" not in shown.structured
    saved = await box.bash(printing(30_001), id="call/2")
    path = saved.structured["persistedOutputPath"]
    assert Path(path).read_text() == "x" * 30_001
    assert saved.structured["persistedOutputSize"] == 30_001
    assert saved.spill_path == path and saved.truncated and not saved.failed
    assert path in saved.content and "30,001 bytes" in saved.content and len(saved.content) < 3_000


async def test_of_a_failure_10000_characters_are_shown_and_of_more_both_ends(box: Any) -> None:
    assert await box.text(f"{printing(10_000)}; exit 1") == "Exit code 1\n" + "x" * 10_000
    result = await box.bash("seq 1 100000; exit 1")
    assert result.content.startswith("Exit code 1\n1\n2\n") and result.content.endswith("99999\n100000")
    assert len(result.content) < 10_100 and "left out" in result.content
    assert result.spill_path is None and result.truncated


async def test_both_ends_of_a_very_large_failure_are_shown(box: Any) -> None:
    text = await box.text("seq 1 400000; exit 2")
    assert text.startswith("Exit code 2\n1\n2\n") and text.endswith("\n400000") and len(text) < 10_200


async def test_how_much_is_read_back_does_not_raise_the_inline_limit(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASH_MAX_OUTPUT_LENGTH", "900000")
    result = await box.bash(printing(200_000))
    assert len(result.structured["stdout"]) == 150_000 and len(result.content) < 3_000
    monkeypatch.setenv("BASH_MAX_OUTPUT_LENGTH", "100")
    assert "persistedOutputPath" in (await box.bash(printing(101))).structured
    assert "persistedOutputPath" not in (await box.bash(printing(100))).structured


async def test_a_saved_file_is_capped_and_the_result_says_so(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "SAVED_BYTES", 40_000)
    result = await box.bash(printing(50_000))
    assert Path(result.structured["persistedOutputPath"]).stat().st_size == 40_000
    assert "first 40,000 bytes only" in result.content


async def test_a_command_that_writes_without_end_is_killed(box: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MAX_WRITTEN", 3_000_000)
    result = await box.bash("yes")
    assert result.error_code == "killed_output" and "y\ny" in result.content and len(result.content) < 10_500


async def test_outputs_leave_no_files_behind(box: Any) -> None:
    from kernel_tools_shell.shell import Shell

    await box.bash("seq 1 400000; exit 1")
    assert not [p for p in Shell.of(box.session).scratch.rglob("*") if p.is_file()]


# -- odd bytes -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("given", "expected"), [
    (r"a\377\000b\n", "a\ufffdb"), (r"\033[31mred\033[0m", "red"), (r"\033]0;title\007x", "x"), (r"a\r\nb\r\n", "a\nb"),
    (r"\033]8;;http://x\033\\link\033]8;;\033\\", "link"), (r"bell\007 back\010", "bell back"), (r"tab\tstays\n\n", "tab\tstays"),
    (r"50%%\r100%%", "50%\r100%"), (r"\360\237\230\200 caf\303\251", "😀 café"), (r"\355\240\200", "\ufffd\ufffd\ufffd"),
])
async def test_bytes_that_are_no_text(box: Any, given: str, expected: str) -> None:
    assert await box.text(f"printf '{given}'") == expected


async def test_binary_output_of_any_kind_is_text_in_the_end(box: Any) -> None:
    assert isinstance(await box.text("head -c 3000 /dev/urandom"), str)


async def test_an_image_as_data_url_becomes_an_image_block(box: Any) -> None:
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    result = await box.bash(f"echo '{url}'")
    assert result.structured["isImage"] is True and result.structured["stdout"] == url
    assert result.content == [{"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                                           "data": base64.b64encode(PNG).decode()}}]


@pytest.mark.parametrize("text", ["data:image/png;base64,AAAA", "data:image/png;base64,***", "data:image/svg;base64,AAAA",
                                  "see data:image/png;base64,iVBORw0KGgo=", "data:image/png;base64,iVBORw0KGgo"])
async def test_what_only_looks_like_an_image_stays_text(box: Any, text: str) -> None:
    result = await box.bash(f"echo '{text}'")
    assert result.content == text and result.structured["isImage"] is False


# -- the output object -------------------------------------------------------------------------------------------------
def test_a_rewritten_output_object_is_what_the_model_sees() -> None:
    tool = Bash()
    assert tool.from_structured({"stdout": "a", "stderr": "note", "interrupted": False}) == "a\nnote"
    assert tool.from_structured({"stdout": "", "stderr": "", "interrupted": False}) == "(Bash completed with no output)"
    saved = {"stdout": "[redacted]" + "x" * 9000, "stderr": "", "interrupted": False, "persistedOutputPath": "/t/o",
             "persistedOutputSize": 9}
    seen = str(tool.from_structured(saved))
    assert "/t/o" in seen and "[redacted]" in seen and len(seen) < 2_500


async def test_every_output_object_fits_the_schema(box: Any) -> None:
    from jsonschema import Draft202012Validator

    check = Draft202012Validator(OUTPUT_SCHEMA)
    for text in ("true", "cd /", "grep x /dev/null", printing(40_000)):
        check.validate((await box.bash(text)).structured)
    check.validate((await box.bash("sleep 9", run_in_background=True)).structured)
    check.validate((await box.bash("cd .; cat < /dev/null; exec 3>&1; while :; do :; done", timeout=50)).structured)
