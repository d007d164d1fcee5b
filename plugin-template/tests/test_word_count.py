"""The tool through the real loop; the model plays a script."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kernel.testing import Kit, assert_end, assert_request, assert_result, call, text


def test_it_counts(kernel_kit: Callable[..., Kit], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\nthree\n")
    run = kernel_kit(call("WordCount", file_path="a.txt"), text("done"), installed=["word-count"]).play("count a.txt")
    assert_result(run, "WordCount", equals="3 words in 2 lines")
    assert_end(run, text="done")


def test_a_missing_file_is_an_error_that_names_it(kernel_kit: Callable[..., Kit]) -> None:
    run = kernel_kit(call("WordCount", file_path="no.txt"), text("done"), installed=["word-count"]).play("count no.txt")
    assert_result(run, "WordCount", contains="no.txt", error=True)


def test_the_model_is_offered_the_tool(kernel_kit: Callable[..., Kit]) -> None:
    run = kernel_kit(text("hello"), installed=["word-count"]).play("hello")
    assert_request(run, tools=["WordCount"])
