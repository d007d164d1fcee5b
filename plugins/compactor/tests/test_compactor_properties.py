"""Whatever is cut, cleared or left out: every call keeps its result, and the API would take the history."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st
from kernel_compactor import pins
from kernel_compactor.compaction import _without_the_oldest
from kernel_compactor.counting import estimate
from kernel_compactor.prompts import FRONT, GO_ON, summary_of

from kernel import History, text_block

MARKS = [
    "<pin>",
    "</pin>",
    "<request>",
    "\n</request>",
    "Pinned by the person, word for word:\n",
    "<system-reminder>",
    FRONT,
    " x ",
]
ODD = st.lists(st.sampled_from(MARKS) | st.text(max_size=9), min_size=1, max_size=6).map("".join)
TEXTS = st.text(min_size=1, max_size=60).filter(lambda t: t.strip())


@st.composite
def conversations(draw: st.DrawFn) -> list[Any]:
    messages: list[Any] = []
    number = 0
    for _ in range(draw(st.integers(1, 6))):
        messages.append(("user", [{"type": "text", "text": draw(TEXTS)}]))
        for _ in range(draw(st.integers(0, 4))):
            calls = [
                {"type": "tool_use", "id": f"t{(number := number + 1)}", "name": "X", "input": {}}
                for _ in range(draw(st.integers(1, 3)))
            ]
            messages.append(("assistant", calls))
            messages.append(("user", [{"type": "tool_result", "tool_use_id": c["id"], "content": draw(TEXTS)} for c in calls]))
        messages.append(("assistant", [{"type": "text", "text": draw(TEXTS)}]))
    return messages


@settings(max_examples=300, deadline=None)
@given(conversations())
def test_leaving_out_the_oldest_keeps_a_legal_history_and_gets_shorter(messages: list[Any]) -> None:
    while (shorter := _without_the_oldest(messages)) is not None:
        assert len(shorter) < len(messages) or sum(estimate(b) for _, b in shorter) < sum(estimate(b) for _, b in messages)
        assert len(History(shorter)) == len(shorter)  # raises where the API would refuse it
        messages = shorter


@given(
    st.lists(ODD.filter(lambda t: "</pin>" not in t), max_size=4, unique=True),
    ODD,
    ODD,
)
def test_pins_and_the_request_are_found_again_byte_for_byte(marked: list[str], asked: str, summary: str) -> None:
    messages: list[Any] = [("user", [text_block(FRONT + summary), *pins.told(marked, asked), text_block(GO_ON)])]
    assert pins.pinned(messages) == marked
    assert pins.request(messages) == asked


@given(st.text())
def test_any_answer_has_a_summary_or_none(answer: str) -> None:
    assert isinstance(summary_of(answer), str)
    assert (
        summary_of(f"<analysis>{answer}</analysis><summary> x </summary>") == "x" or "analysis>" in answer or "summary>" in answer
    )
