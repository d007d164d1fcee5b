"""The plugin through the real loop; the model plays a script."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
from kernel_word_count import plugin
from kernel_word_count.tool import WordCount

from kernel.testing import Kit, Run, call, text


def run(kit: Kit) -> Run:
    return anyio.run(partial(kit.run, "go"))


def test_it_counts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two\nthree\n")
    done = run(Kit(tmp_path, [call("WordCount", "c", file_path="a.txt"), text("done")], tools=[WordCount()]))
    assert done.result_of("c")["content"] == "3 words in 2 lines"


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    done = run(Kit(tmp_path, [call("WordCount", "c", file_path="no.txt"), text("done")], tools=[WordCount()]))
    assert done.result_of("c")["is_error"] and "no.txt" in done.result_of("c")["content"]


def test_a_secret_is_refused(tmp_path: Path) -> None:
    class Write(WordCount):
        name = "Write"
        input_schema = {"type": "object"}

        def prepare_input(self, input: dict, context: object) -> dict:
            return input

    guard = type("Guard", (), {"pre_tool_use": staticmethod(plugin.pre_tool_use)})
    done = run(Kit(tmp_path, [call("Write", "w", content="AKIA" + "A" * 16), text("done")], tools=[Write()],
                   hooks={"word-count": guard()}))
    assert "an access key" in done.result_of("w")["content"]
