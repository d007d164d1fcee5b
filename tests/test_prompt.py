"""What the model is told before the conversation: layers, order, sources (context contract, section 1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernel import Session, hookimpl
from kernel.cli.run import parse
from kernel.testing import Kit, Run, module, text

LAYERS = ("rules", "environment", "style", "snapshot", "instructions")


class Part:
    def __init__(self, name: str, layer: Any) -> None:
        self.name, self.layer = name, layer

    async def text(self, session: Session) -> str:
        return f"  {self.layer} {self.name}.\n"


def play(root: Path, **options: Any) -> Run:
    """With two parts in every layer, registered in the wrong order."""
    def register_prompt_parts(register: Any) -> None:
        for layer in reversed(LAYERS):
            register(Part(f"z-{layer}", layer))
            register(Part(f"a-{layer}", layer))

    hooks = {"speaker": module(register_prompt_parts=hookimpl(register_prompt_parts))}
    return Kit(root, [text("done")] * 3, hooks=hooks, **options).play("go")


def order(whole: str, *words: str) -> bool:
    places = [whole.index(word) for word in words]
    return places == sorted(places)


def test_every_layer_has_its_place_and_parts_stand_in_the_order_of_names(tmp_path: Path) -> None:
    run = play(tmp_path, append_system_prompt="Appended.")
    fixed, own = (b["text"] for b in run.requests[0]["system"])
    assert order(fixed, "You are an agent", "rules a-rules.", "rules z-rules.") and "environment" not in fixed
    assert order(own, "# Environment", "environment a-", "environment z-", "style a-", "style z-", "Appended.", "snapshot a-",
                 "snapshot z-")
    first = run.requests[0]["messages"][0]["content"]
    told = "instructions a-instructions.\n\ninstructions z-instructions."
    assert first[0]["text"] == f"<system-reminder>\n{told}\n</system-reminder>"
    assert [b["text"] for b in first[1:]] == ["go"] and "instructions a-" not in fixed + own


def test_a_replaced_prompt_keeps_what_people_wrote_and_what_was_appended(tmp_path: Path) -> None:
    run = play(tmp_path, system_prompt="Only this.", append_system_prompt="Appended.")
    assert [b["text"] for b in run.requests[0]["system"]] == ["Only this.", "Appended."]
    assert "instructions a-" in str(run.requests[0]["messages"])


def test_what_differs_between_machines_moves_into_the_first_message(tmp_path: Path) -> None:
    run = play(tmp_path, append_system_prompt="Appended.", extra={"exclude_dynamic_system_prompt_sections": True})
    fixed, own = (b["text"] for b in run.requests[0]["system"])
    assert own == "style a-style.\n\nstyle z-style.\n\nAppended." and "rules a-" in fixed
    first = run.requests[0]["messages"][0]["content"][0]["text"]
    assert order(first, "# Environment", "environment a-", "snapshot a-", "instructions a-")


def test_each_text_is_kept_with_its_source(tmp_path: Path) -> None:
    run = play(tmp_path, append_system_prompt="Appended.")
    found = {s.name: (s.layer, s.source) for s in run.session.sections}
    assert found["role"] == ("rules", "kernel") and found["appended"] == ("environment", "--append-system-prompt")
    assert all(found[f"a-{layer}"] == (layer, "speaker") for layer in LAYERS)


def test_the_flag() -> None:
    extra = parse(["-p", "go", "--exclude-dynamic-system-prompt-sections"]).extra
    assert extra["exclude_dynamic_system_prompt_sections"] is True


@pytest.mark.parametrize("there", [True, False])
def test_the_surroundings_say_whether_git_is_there(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    run = Kit(tmp_path / "sub", [text("done")]).play("go")
    assert f"Git repository: {'yes' if there else 'no'}" in run.requests[0]["system"][1]["text"]
