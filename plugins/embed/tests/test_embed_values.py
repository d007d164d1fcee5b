"""``output=``: a turn that ends with a value of a type, through the plugin structured-output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from kernel_embed import TurnFailed

from kernel import Options, UsageError
from kernel.testing import call, installed, text

pytestmark = [pytest.mark.anyio,
              pytest.mark.skipif(not installed("structured-output"), reason="needs the plugin structured-output")]
Make = Callable[..., Any]


@dataclass
class Finding:
    file: str
    line: int


@dataclass
class Review:
    risk: Literal["low", "high"]
    findings: list[Finding]


def hands_in(**value: Any) -> Any:
    return call("StructuredOutput", **value)


def tools(request: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in request["tools"]]


async def test_a_turn_has_its_own_type_and_the_next_one_none(scripted: Make) -> None:
    agent, model = scripted(hands_in(risk="medium", findings=[]), hands_in(risk="high", findings=[{"file": "a", "line": 1}]),
                            text("plain"), hands_in(value=["x"]), text("I heard"))
    async with agent:
        review = (await agent.ask("review", output=Review)).structured
        plain = await agent.ask("and?")
        words = (await agent.ask("words", output=list[str])).structured
        agent.session.inbox.post("a report")
        settled = await agent.settle()
    assert review == Review("high", [Finding("a", 1)]) and plain.text == "plain" and plain.structured is None and words == ["x"]
    assert [reply.text for reply in settled] == ["I heard"]
    assert ["StructuredOutput" in tools(r) for r in model.requests] == [True, True, False, True, False]


async def test_a_schema_gives_plain_data(scripted: Make) -> None:
    agent, _ = scripted(hands_in(n=3))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with agent:
        assert (await agent.ask("count", output=schema)).structured == {"n": 3}


async def test_a_model_of_pydantic(scripted: Make) -> None:
    pydantic = pytest.importorskip("pydantic")

    class Even(pydantic.BaseModel):  # type: ignore[name-defined,misc,unused-ignore]
        n: int

        @pydantic.field_validator("n")  # type: ignore[untyped-decorator,misc,unused-ignore]
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("is odd")
            return value

    agent, _ = scripted(hands_in(n=2), hands_in(n=3))
    async with agent:
        assert (await agent.ask("a", output=Even)).structured == Even(n=2)
        with pytest.raises(TurnFailed, match="is odd") as raised:
            await agent.ask("b", output=Even)
    assert raised.value.reason == "structured_output" and raised.value.reply


async def test_no_value_raises(scripted: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_STRUCTURED_OUTPUT_RETRIES", "0")
    agent, _ = scripted(text("no"), text("still here"))
    async with agent:
        with pytest.raises(TurnFailed) as raised:
            await agent.ask("a", output=Review)
        assert raised.value.reason == "structured_output_retry_exhausted"
        assert (await agent.ask("b")).text == "still here"


async def test_what_cannot_be_asked_for_is_refused_before_anything_is_asked(scripted: Make) -> None:
    agent, model = scripted()
    async with agent:
        for output, said in ((object(), "cannot be described"), ({"type": "nonsense"}, "not a valid JSON Schema")):
            with pytest.raises(UsageError, match=said):
                agent.stream("a", output=output)
    assert model.requests == []
    agent, _ = scripted(options=Options(block=["structured-output"]))
    async with agent:
        with pytest.raises(UsageError, match="needs the plugin 'structured-output', which is blocked"):
            await agent.ask("a", output=Review)
