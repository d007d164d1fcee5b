"""Handlers of type prompt and agent, through the real loop with a scripted model."""

from __future__ import annotations

import os
from typing import Any

import pytest

from kernel import ModelError, ModelInfo, Prices, Session
from kernel.testing import Turn, call, text

from .case_hosts import Judge
from .conftest import World

pytestmark = pytest.mark.anyio
OK = text('{"ok": true}')


class Evaluated:
    """A session with one evaluating handler."""

    def __init__(self, world: World, event: str, *turns: Any, matcher: str | None = None, **handler: Any) -> None:
        self.world = world
        self.turns = list(turns)
        self.asked: list[dict[str, Any]] = []
        group = {"hooks": [{"prompt": "fine?", **handler}], **({"matcher": matcher} if matcher else {})}
        world.settings(hooks={event: [group]})

    async def run(self, *main: Any, session: Session | None = None, **options: Any) -> Any:
        self.model = Judge(self.world, main, {"e": {"turns": self.turns}})
        self.session = session or self.world.start(model=self.model, **{"print_mode": True, **options})
        return await self.world.prompt("go", self.session)


async def test_the_request_is_small_and_stands_beside_the_conversation(world: World) -> None:
    one = Evaluated(world, "Stop", OK, type="prompt")
    run = await one.run(text("done"))
    assert run.result.result == "done" and len(one.model.requests) == 1
    (asked,) = one.model.asked
    assert asked["model"] == "haiku" and asked["tools"] == [] and asked["max_tokens"] <= 1024
    assert "fine?" not in world.model_saw()


@pytest.mark.parametrize(("given", "variable", "expected"), [
    ("opus", None, "opus"), ("opus", "tiny", "opus"), (None, "tiny", "tiny"), (None, None, "haiku")])
async def test_which_model_is_asked(world: World, given: str | None, variable: str | None, expected: str) -> None:
    if variable:
        os.environ["ANTHROPIC_SMALL_FAST_MODEL"] = variable
    one = Evaluated(world, "Stop", OK, type="prompt", **({"model": given} if given else {}))
    await one.run(text("done"))
    assert one.model.asked[0]["model"] == expected


class OneModel(Judge):
    """A provider that serves a single model."""

    def resolve(self, model: str) -> ModelInfo | None:
        return ModelInfo(id="only") if model in ("only", "sonnet") else None


async def test_without_a_fast_model_the_sessions_own_is_asked_and_a_missing_one_is_an_error(world: World) -> None:
    one = Evaluated(world, "Stop", OK, type="prompt")
    one.model = OneModel(world, [text("done")], {"e": {"turns": one.turns}})
    session = world.start(model=one.model)
    await world.prompt("go", session)
    assert one.model.asked[0]["model"] == "only"
    world.settings(hooks={"Stop": [{"hooks": [{"type": "prompt", "prompt": "fine?", "model": "huge"}]}]})
    model = OneModel(world, [text("done")], {"e": {"verdict": {"ok": True}}})
    run = await world.prompt("go", world.start(model=model))
    assert not run.result.is_error and any("does not serve 'huge'" in n for n in world.notices())


async def test_what_it_costs_counts_for_the_session_and_not_for_the_turn(world: World) -> None:
    class Priced(Judge):
        def resolve(self, model: str) -> ModelInfo | None:
            return ModelInfo(id=model, prices=Prices(input=1.0, output=1.0, cache_write=1.0, cache_read=1.0))

    Evaluated(world, "Stop", type="prompt")
    session = world.start(model=Priced(world, [text("done")], {"e": {"verdict": {"ok": True}}}))
    run = await world.prompt("go", session)
    usage = run.result.model_usage
    assert usage["haiku"]["inputTokens"] == usage["sonnet"]["inputTokens"] == 10 and usage["haiku"]["outputTokens"] == 5
    assert run.result.usage.input_tokens == 10
    assert run.result.total_cost_usd == pytest.approx(30e-6)


@pytest.mark.parametrize("turn", [
    Turn(fail=ModelError("overloaded", kind="overloaded_error", status=529)), text("no idea"), text('{"ok": false}'),
    Turn(cut=3, blocks=[OK]), [], Turn(stop_reason="max_tokens", blocks=[text('{"ok": fal')]),
])
@pytest.mark.parametrize("type", ["prompt", "agent"])
async def test_an_evaluator_that_fails_decides_nothing_and_is_told(world: World, make_bash: Any, type: str, turn: Any) -> None:
    one = Evaluated(world, "PreToolUse", turn, turn, matcher="Bash", type=type)  # a verifier is asked once more for the form
    tool = make_bash()
    run = await one.run(call("Bash", command="ls"), text("done"), tools=[tool])
    assert tool.inputs and run.result.result == "done"
    assert any("PreToolUse:Bash hook error" in t and "gave no verdict" in t for t in one.session.harness.announced)


async def test_with_on_failure_block_an_evaluator_that_fails_refuses(world: World, make_bash: Any) -> None:
    one = Evaluated(world, "PreToolUse", text("no idea"), matcher="Bash", type="prompt", onFailure="block")
    tool = make_bash()
    await one.run(call("Bash", command="ls"), text("done"), tools=[tool])
    assert not tool.inputs and "set to refuse" in world.model_saw()


async def test_an_evaluator_has_its_time(world: World, make_bash: Any) -> None:
    """Late is no decision, and the request is not waited for."""
    for type in ("prompt", "agent"):
        world.settings(hooks={"PreToolUse": [{"hooks": [{"type": type, "prompt": "fine?", "timeout": 0.2}]}]})
        tool = make_bash()
        model = Judge(world, [call("Bash", command="ls"), text("done")], {"e": {"sleep_s": 60, "verdict": {"ok": False}}})
        run = await world.prompt("go", world.start(model=model, tools=[tool]))
        assert tool.inputs and run.result.duration_ms < 20_000
        assert any("timed out after 0.2 s" in n for n in world.notices())


# -- agents ------------------------------------------------------------------------------------------------------------
class Verified(Evaluated):
    """A session with a verifier and the real file tools; every hook that fires is kept."""

    def __init__(self, world: World, *turns: Any, **handler: Any) -> None:
        super().__init__(world, "Stop", *turns, type="agent", **handler)

    async def run(self, *main: Any, **options: Any) -> Any:
        return await super().run(*main, installed=["tools-files", *options.pop("installed", [])], **options)


async def test_a_verifier_reads_files_before_it_objects(world: World) -> None:
    (world.cwd / "notes.txt").write_text("the secret word is plum")

    one = Verified(world, call("Read", "r1", file_path=str(world.cwd / "notes.txt")), text('{"ok": false, "reason": "say plum"}'),
                   OK)
    run = await one.run(text("done"), text("plum"))
    assert run.result.result == "plum" and "say plum" in world.model_saw()
    assert "the secret word" not in world.model_saw(), "the verifier's reading is its own"
    assert {t["name"] for t in one.model.asked[0]["tools"]} == {"Read", "Glob", "Grep"}
    assert "the secret word is plum" in str(one.model.asked[1]["messages"])
    assert one.session.read_files == {}, "what a verifier read, the model has not seen"


async def test_calls_of_a_verifier_raise_no_hooks(world: World) -> None:
    (world.cwd / "a.txt").write_text("x")
    one = Verified(world, call("Read", "r1", file_path=str(world.cwd / "a.txt")), OK)
    guard = world.hooks("PreToolUse", world.handler("guard", exit=2))
    world.settings("user", hooks=guard)
    await one.run(text("done"))
    assert "guard" not in world.ran() and "x" in str(one.model.asked[1]["messages"])


@pytest.mark.parametrize(("tool", "input", "says"), [
    ("Bash", {"command": "ls"}, "there is no tool"), ("Write", {"file_path": "/x", "content": ""}, "there is no tool"),
    ("Read", {"file_path": "/no/such/file"}, ""), ("Read", {"wrong": 1}, ""), ("Grep", {"pattern": "["}, ""), ("Read", {}, "")])
async def test_what_a_verifier_cannot_do_it_is_told(world: World, tool: str, input: dict[str, Any], says: str) -> None:
    one = Verified(world, call(tool, "c1", **input), OK)
    run = await one.run(text("done"))
    assert run.result.result == "done"
    (result,) = one.model.asked[1]["messages"][-1]["content"]
    assert result["is_error"] and says in str(result["content"])


async def test_rules_hold_for_a_verifier_and_nobody_is_asked(world: World) -> None:
    pytest.importorskip("kernel_permissions.plugin")
    (world.cwd / "open.txt").write_text("open")
    (world.cwd / "closed.txt").write_text("closed content")
    outside = world.root / "outside.txt"
    outside.write_text("outside content")
    files = (world.cwd / "open.txt", world.cwd / "closed.txt", outside)
    calls = [call("Read", f"r{n}", file_path=str(path)) for n, path in enumerate(files)]
    one = Verified(world, calls, OK)
    world.settings("user", permissions={"deny": ["Read(closed.txt)"]})
    await one.run(text("done"), installed=["permissions"], permission_mode="default")
    results = [str(b["content"]) for b in one.model.asked[1]["messages"][-1]["content"]]
    assert "open" in results[0] and "closed content" not in results[1] and "outside content" not in results[2]
    assert "not permitted" in results[1] and "not permitted" in results[2]


async def test_a_verifier_has_fifty_turns(world: World) -> None:
    one = Verified(world, *[call("Glob", f"g{n}", pattern="*.zip") for n in range(60)])
    run = await one.run(text("done"))
    assert run.result.result == "done" and len(one.model.asked) == 50
    assert any("50 turns" in n for n in world.notices())


async def test_a_verifier_that_forgets_the_form_is_reminded_once(world: World) -> None:
    one = Verified(world, text("It looks fine to me."), OK)
    await one.run(text("done"))
    assert len(one.model.asked) == 2 and not any("hook error" in n for n in world.notices())


async def test_a_long_result_is_cut(world: World) -> None:
    for n in range(900):
        (world.cwd / f"{'long' * 12}-{n}.txt").touch()
    one = Verified(world, call("Grep", "g", pattern="", path=str(world.cwd)), call("Glob", "h", pattern="*.txt"), OK)
    (world.cwd / "big.txt").write_text("x" * 70 + "\n" * 3)
    await one.run(text("done"))
    for asked in one.model.asked[1:]:
        assert all(len(str(b.get("content"))) < 31_000 for b in asked["messages"][-1]["content"])
