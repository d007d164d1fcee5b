"""A script that does not fit its form is refused with file, line, turn, field and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from kernel_model_script.script import load

from kernel import UsageError

CASES = [
    ("turns:\n- text: 5\n", ["line 2", "turn 1", "turns[0].text", "Expected `str"]),
    ("turns:\n- text: a\n- txt: b\n", ["line 3", "turn 2", "unknown field `txt`"]),
    ("turns:\n- text: a\n- calls:\n  - input: {}\n", ["line 4", "turn 2", "turns[1].calls[0]", "missing required field `tool`"]),
    ("turns:\n- calls:\n  - tool: Read\n    input: [1]\n", ["line 4", "turns[0].calls[0].input", "Expected `object`"]),
    ("turns:\n- calls:\n  - tool: Read\n    input:\n      day: 2026-01-01\n", ["line 5", "input.day", "put it in quotes"]),
    ("turns:\n- calls:\n  - tool: Read\n    input:\n      1: x\n", ["line 5", "calls[0].input", "name must be a string"]),
    ("turns:\n- blocks: [{type: x, 1: y}]\n", ["turns[0].blocks[0]", "name must be a string"]),
    ("turns:\n- blocks: [{type: x, a: {1: y}}]\n", ["turns[0].blocks[0].a", "put it in quotes"]),
    ("turns:\n- text: a\n  delay: -1\n", ["line 3", "turns[0].delay", ">= 0"]),
    ("turns:\n- fail: {times: 0}\n", ["line 2", "turns[0].fail.times", ">= 1"]),
    ("turns:\n- text: a\n  usage: {input_tokens: x}\n", ["line 3", "turns[0].usage"]),
    ("turns:\n- when: {containing: x}\n  text: a\n", ["turns[0].when", "unknown field `containing`"]),
    ("turns:\n- {}\n", ["line 2", "turn 1", "expected one of thinking, text, calls, blocks, events or fail"]),
    ("turns:\n- delay: 1\n", ["expected one of thinking"]),
    ("turns:\n- text: a\n  blocks: []\n", ["line 3", "turns[0].blocks", "expected no text beside it"]),
    ("turns:\n- text: a\n  events: []\n", ["turns[0].events", "expected no text beside it"]),
    ("turns:\n- blocks: [{text: x}]\n", ["turns[0].blocks[0]", "with a 'type'"]),
    ("turns:\n- events: [{text: x}]\n", ["turns[0].events[0]", "with a 'type'"]),
    ("turns:\n- events: |\n    {\"type\": \"ping\"}\n    nonsense\n", ["line 2", "turns[0].events", "in its line 2"]),
    ("turns:\n- text: 'a {{result}}'\n", ["line 2", "turns[0].text", "{{last_result}}", "found {{result}}"]),
    ("turns: []\n", ["turns", "length >= 1"]),
    ("turns: text\n", ["line 1", "Expected `array`"]),
    ("name: x\n", ["missing required field `turns`"]),
    ("", ["Expected `object`, got `null`"]),
    ("- text: a\n", ["Expected `object`, got `array`"]),
    ("turns:\n- text: [\n", ["no valid YAML", "line"]),
    ("turns:\n- text: !!python/object:os.system x\n", ["no valid YAML", "line 2"]),
    ("turns:\n- &a\n  text: x\n- *a\n", ["line 2", "no aliases"]),
    ("turns: &a\n- *a\n", ["no aliases"]),
    ("turns:\n- text: \"\\x07\x01\"\n", ["no valid YAML"]),
]


@pytest.mark.parametrize(("text", "said"), CASES, ids=range(len(CASES)))
def test_what_is_wrong_is_said_with_its_place(text: str, said: list[str], tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load(path)
    for part in [str(path), *said]:
        assert part in str(caught.value)


def test_a_script_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path)


@given(st.binary(max_size=200) | st.text(alphabet="turns:-{}[]&*! \n\"'|a1", max_size=60).map(str.encode))
@settings(deadline=None)
def test_no_bytes_crash_the_reader(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    """Whatever a file holds: a script, or a UsageError."""
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(raw)
    try:
        load(path)
    except UsageError:
        pass
