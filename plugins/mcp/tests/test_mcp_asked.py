"""What a server may ask of us: roots, the person, a model's answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from kernel_mcp.host import PERSON

from kernel import DirectoryAdded, ElicitationHookResult, ElicitationResultResult
from kernel.testing import call, module, text

if TYPE_CHECKING:
    from conftest import Bench


def test_roots_are_the_launch_directory_and_the_added_ones(bench: Bench, tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    done = bench.run(bench.kit(call("mcp__good__roots", "c1"), text("done"), add_dirs=[more]))
    assert [r["uri"] for r in json.loads(done.result_of("c1")["content"])["roots"]] == [tmp_path.as_uri(), more.as_uri()]


def test_a_new_root_is_told(bench: Bench, tmp_path: Path) -> None:
    log = tmp_path / "log"

    async def all_of_it() -> None:
        session = bench.kit(args=("--log", str(log))).open()
        await session.start()
        await session.fire(session.make(DirectoryAdded, directory=str(tmp_path / "later"), source="slash_command"))
        said = await session.plugin_state["mcp"].call("good", "roots", {})
        assert (tmp_path / "later").as_uri() in said[0]
        await session.close()

    anyio.run(all_of_it)
    assert "notifications/roots/list_changed" in log.read_text()


def asked(bench: Bench, hooks: dict[str, Any] | None = None, person: Any = None, name: str = "ask", **given: Any) -> Any:
    def prepare(session: Any) -> None:
        if person is not None:
            session.plugin_state[PERSON] = person

    made = bench.kit(call(f"mcp__good__{name}", "c1", **given), text("done"), hooks=hooks)
    return json.loads(bench.run(made, before=prepare).result_of("c1")["content"])


def test_nobody_is_there_to_answer(bench: Bench) -> None:
    assert asked(bench)["action"] == "cancel" and asked(bench, name="ask_url")["action"] == "cancel"


def test_the_person_answers(bench: Bench) -> None:
    async def person(server: str, params: dict[str, Any]) -> dict[str, Any]:
        assert server == "good" and params["message"] == "Who are you?"
        return {"action": "accept", "content": {"name": "Ada"}}

    assert asked(bench, person=person) == {"action": "accept", "content": {"name": "Ada"}}


def test_an_answer_that_does_not_fit_the_form_is_none(bench: Bench) -> None:
    async def person(server: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": 5}}

    assert asked(bench, person=person)["action"] == "cancel"


def test_a_hook_answers_before_the_person_is_asked(bench: Path) -> None:
    events: list[Any] = []

    def elicitation(event: Any) -> Any:
        events.append(event)
        return ElicitationHookResult(action="accept", content={"name": "Hook"})

    async def person(server: str, params: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("the person was asked")

    assert asked(bench, {"h": module(elicitation=elicitation)}, person) == {"action": "accept", "content": {"name": "Hook"}}
    assert events[0].mcp_server_name == "good" and events[0].mode == "form" and events[0].requested_schema["required"] == ["name"]


def test_a_hook_overrides_what_the_person_said(bench: Bench) -> None:
    async def person(server: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": "Ada"}}

    hooks = {"h": module(elicitation_result=lambda event: ElicitationResultResult(action="decline"))}
    assert asked(bench, hooks, person) == {"action": "decline"}


def test_a_hook_that_fails_declines(bench: Bench) -> None:
    def elicitation(event: Any) -> Any:
        raise RuntimeError("broken")

    assert asked(bench, {"h": module(elicitation=elicitation)})["action"] in ("decline", "cancel")


@pytest.mark.parametrize("field", ["password", "apiKey", "access_token"])
def test_no_secret_goes_through_a_form(bench: Bench, field: str) -> None:
    async def person(server: str, params: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError("the person was asked for a secret")

    schema = {"type": "object", "properties": {field: {"type": "string"}}}
    assert asked(bench, person=person, schema=schema)["action"] == "decline"


def test_sampling_is_off_until_a_person_switches_it_on(bench: Bench) -> None:
    assert asked(bench, name="sample")["message"]


def test_sampling_asks_and_answers_by_the_sessions_model(bench: Bench) -> None:
    """The rule allows it; the model's answer goes to the server, and its own question is not in the conversation."""
    made = bench.kit(call("mcp__good__sample", "c1"), text("42"), text("done"), settings={"kernel": {"mcp": {"sampling": True}}})
    done = bench.run(made)
    assert json.loads(done.result_of("c1")["content"])["content"]["text"] == "42"
    assert done.requests[1]["messages"][0]["content"][0]["text"] == "What is 6 times 7?" and not done.requests[1]["tools"]


def test_sampling_without_a_yes_is_refused(bench: Bench) -> None:
    def decide(name: str, input: dict[str, Any]) -> str:
        return "ask" if name.endswith("__sampling") else "allow"

    made = bench.kit(
        call("mcp__good__sample", "c1"), text("done"), policy=decide, settings={"kernel": {"mcp": {"sampling": True}}}
    )
    assert "not permitted" in bench.run(made).result_of("c1")["content"]
