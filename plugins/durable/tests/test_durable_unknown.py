"""A tool was running when its process ended: what is repeated, and what is not."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.durable import ANSWER, World


def killed(world: World) -> str:
    """Start a run that kills itself; its id."""
    code, _, err = world.prompt().wait()
    assert code == -signal.SIGKILL, err
    (info,) = world.runs()
    assert info.state == "pending"
    return str(info.id)


def resumed(world: World, run: str) -> None:
    code, out, err = world.run("durable", "resume", run)
    assert (code, out.strip()) == (0, ANSWER), err


def effects(world: World, what: str = "effect") -> Counter[str]:
    return Counter(key for kind, key, _ in world.notes() if kind == what)


def shown(world: World) -> str:
    """The last result that the model was shown."""
    blocks = [b for m in world.model.heard["messages"] if m["role"] == "user" for b in m["content"]]
    content = [b["content"] for b in blocks if b["type"] == "tool_result"][-1]
    return content if isinstance(content, str) else "".join(b["text"] for b in content)


def test_the_model_is_told_by_default(world: Callable[..., World]) -> None:
    here = world((("Deadly", "a"),), kill={"a": 1})
    resumed(here, killed(here))
    assert effects(here) == {"a": 1} and "effects are unknown" in shown(here)


def test_retry_repeats_once_and_never_a_second_time(world: Callable[..., World]) -> None:
    here = world((("Deadly", "a"),), settings={"unknown": "retry"}, kill={"a": 1})
    resumed(here, killed(here))
    assert effects(here) == {"a": 2} and shown(here) == "done a"
    again = world((("Deadly", "b"),), settings={"unknown": "retry"}, kill={"b": 2})
    run = killed(again)
    assert again.run("durable", "resume", run)[0] == -signal.SIGKILL
    resumed(again, run)
    assert effects(again) == {"b": 2} and "effects are unknown" in shown(again)


def test_rules_say_it_for_each_tool(world: Callable[..., World]) -> None:
    here = world((("Deadly", "a"),), settings={"unknown": {"*": "skip", "Deadly": "retry"}}, kill={"a": 1})
    resumed(here, killed(here))
    assert effects(here) == {"a": 2}


def test_a_call_that_only_reads_is_run_again(world: Callable[..., World]) -> None:
    here = world((("Looks", "a"),), kill={"a": 2})
    run = killed(here)
    assert here.run("durable", "resume", run)[0] == -signal.SIGKILL
    resumed(here, run)
    assert shown(here) == "done a"


def test_an_idempotency_key_makes_the_effect_happen_once(world: Callable[..., World]) -> None:
    here = world((("Keyed", "a"),), kill={"a": 1})
    resumed(here, killed(here))
    assert effects(here, "called") == {"a": 2} and effects(here, "once") == {"a": 1} and shown(here) == "done a"


def test_a_tool_that_knows_what_became_of_a_key_is_not_called_again(world: Callable[..., World]) -> None:
    here = world((("Knows", "a"),), kill={"a": 1})
    resumed(here, killed(here))
    assert effects(here) == {"a": 1} and effects(here, "asked") == {"a": 1} and shown(here) == "it was done"


def test_a_person_can_be_asked(world: Callable[..., World]) -> None:
    here = world((("Deadly", "a"),), settings={"unknown": "ask"}, kill={"a": 1})
    run = killed(here)
    code, out, _ = here.run("durable", "resume", run)
    assert code == 75 and "waits for an approval" in out and here.runs()[0].state == "pending"
    _, listed, _ = here.run("durable", "approvals", "list")
    question = listed.split()[0]
    assert "effects unknown: Deadly" in listed
    assert here.run("durable", "approvals", "answer", question, "allow")[0] == 0
    resumed(here, run)
    assert effects(here) == {"a": 2} and shown(here) == "done a"


def test_what_is_recorded_is_not_checked_again(world: Callable[..., World]) -> None:
    """The process dies in the hook behind the call: the call's own checks would see its effect now."""
    here = world((("Fresh", "a"),), kill={"post": 1})
    resumed(here, killed(here))
    assert shown(here) == "done a" and effects(here) == {"a": 1}


def test_a_run_that_died_before_its_prompt_was_kept_begins_with_it(world: Callable[..., World]) -> None:
    here = world((("Effect", "a"),), kill={"prompt": 1})
    resumed(here, killed(here))
    said = [b["text"] for m in here.model.heard["messages"] for b in m["content"] if b["type"] == "text"]
    assert [s for s in said if s == "Do it all."] == ["Do it all."] and effects(here) == {"a": 1}


def test_a_plugin_that_is_gone_is_named_and_nothing_is_repeated(world: Callable[..., World]) -> None:
    here = world((("Effect", "a"),), kill={"post": 1})
    run = killed(here)
    here.environment["WITHOUT"] = "Effect"
    code, out, err = here.run("durable", "resume", run)
    assert code == 1 and "does not go the way that was recorded" in out and "toolu_0_0" in out, (out, err)
    assert here.runs()[0].state == "pending" and here.model.asked == [0]
    del here.environment["WITHOUT"]
    resumed(here, run)
    assert effects(here) == {"a": 1}


@pytest.mark.parametrize(("key", "value"), [("unknown", "perhaps"), ("approvals", 3), ("patience", "long"), ("database", "mysql://x")])
def test_a_setting_that_cannot_be_read_is_refused_before_anything_runs(world: Callable[..., World], key: str, value: Any) -> None:
    here = world((("Effect", "a"),), settings={key: value})
    here.environment.pop("KERNEL_DURABLE_DATABASE")
    code, _, err = here.prompt().wait()
    assert code == 1 and f"kernel.durable.{key}" in err and not here.model.asked
