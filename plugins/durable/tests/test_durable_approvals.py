"""Questions that are kept: answered later, from another process, or by nobody."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.durable import ANSWER, World

ASK = (("Guarded", "a"),)


def question(world: World) -> str:
    code, out, err = world.run("durable", "approvals", "list", "--json")
    (found,) = json.loads(out)
    assert code == 0 and found["question"]["tool"] == "Guarded" and found["answer"] is None, err
    return str(found["id"])


def parked(world: World) -> str:
    """Start a run that asks; its id."""
    code, out, err = world.prompt("--output-format", "json").wait()
    result = json.loads(out)
    assert code == 75 and result["terminal_reason"] == "waiting_for_approval" and result["permission_denials"] == [], err
    (info,) = world.runs()
    assert info.id in result["errors"][0]
    return str(info.id)


def results(world: World) -> list[str]:
    return [b["content"] for m in world.model.heard["messages"] if m["role"] == "user" for b in m["content"]
            if b["type"] == "tool_result"]


def test_a_question_is_answered_by_another_process_and_the_run_goes_on_in_a_third(world: Callable[..., World]) -> None:
    here = world((("Effect", "before"), *ASK), (("Effect", "after"),))
    run = parked(here)
    ident = question(here)
    assert f"{run}  waiting" in here.run("durable", "list")[1]
    assert '"key": "a"' in here.run("durable", "approvals", "show", ident)[1]
    assert here.run("durable", "resume", run)[0] == 75, "nobody has answered yet"
    assert here.run("durable", "work", "--once")[:2] == (0, ""), "a worker leaves alone what waits"
    assert here.run("durable", "approvals", "answer", ident, "allow")[0] == 0
    code, _, err = here.run("durable", "approvals", "answer", ident, "deny")
    assert code == 1 and "answered already: allow" in err
    code, out, err = here.run("durable", "work", "--once", "--every", "0.1")
    assert code == 0 and f"{run}: over" in out, err
    notes = [note[:2] for note in here.notes() if note[0] == "effect"]
    assert notes == [("effect", "before"), ("effect", "a"), ("effect", "after")]
    assert here.model.asked == [0, 2, 3] and here.runs()[0].state == "done"


def test_a_subagent_asks_as_well_and_what_runs_beside_it_is_not_torn(world: Callable[..., World]) -> None:
    here = world((("Agent", {"description": "d", "prompt": "AGENT", "run_in_background": False}), ("Slow", "beside")))
    root = here.model.steps
    here.model.steps_of = (  # type: ignore[method-assign]
        lambda body: ((("Effect", "one"),), ASK) if "AGENT" in json.dumps(body["messages"][0]) else root)
    process = here.prompt()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not [q for i in here.runs() for q in i.steps if q.startswith("question:")]:
        time.sleep(0.1)
    Path(f"{here.ledger}.go").write_text("")
    assert process.wait()[0] == 75
    here.run("durable", "approvals", "answer", question(here), "allow")
    assert here.run("durable", "resume")[:2] == (0, f"{ANSWER}\n")
    assert sorted(n[1] for n in here.notes() if n[0] == "effect") == ["a", "beside", "one"]


def test_what_comes_behind_the_question_is_not_run_past_its_hooks(world: Callable[..., World]) -> None:
    here = world((("Guarded", "a"), ("Effect", "b")))
    here.environment["CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY"] = "1"
    parked(here)
    assert not [n for n in here.notes() if n[0] == "effect"], "the second call began when nobody asked its hooks any more"
    here.run("durable", "approvals", "answer", question(here), "allow")
    assert here.run("durable", "resume")[:2] == (0, f"{ANSWER}\n") and results(here) == ["done a", "done b"]


def test_a_denial_reaches_the_model_with_its_reason(world: Callable[..., World]) -> None:
    here = world(ASK)
    run = parked(here)
    here.run("durable", "approvals", "answer", question(here), "deny", "--message", "not on a Friday")
    code, out, _ = here.run("durable", "resume", "--output-format", "json")
    result = json.loads(out)
    assert code == 0 and result["result"] == ANSWER and results(here) == ["not on a Friday"]
    assert [d.get("reason") for d in result["permission_denials"]] == [None] and run == here.runs()[0].id


def test_nobody_is_there_is_no_denial(world: Callable[..., World]) -> None:
    here = world(ASK, settings={"approvals": "no_one"})
    code, out, _ = here.prompt("--output-format", "stream-json", "--verbose").wait()
    said = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and said[-1]["permission_denials"][0]["reason"] == "no_one"
    assert [m["decision_reason_type"] for m in said if m.get("subtype") == "permission_denied"] == ["no_one"]
    assert results(here)[0].startswith("Nobody was there to be asked about Guarded") and "not a refusal" in results(here)[0]


def test_a_process_that_waits_gets_an_answer_or_gives_up(world: Callable[..., World]) -> None:
    here = world(ASK, settings={"approvals": "wait"})
    process = here.prompt()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and here.run("durable", "approvals", "list", "--json")[1].strip() in ("[]", ""):
        time.sleep(0.1)
    code, _, err = here.run("durable", "resume", here.runs()[0].id)
    assert code == 1 and "held by a process that is alive" in err
    here.run("durable", "approvals", "answer", question(here), "allow")
    assert process.wait()[:2] == (0, f"{ANSWER}\n") and results(here) == ["done a"]
    late = world(ASK, settings={"approvals": "wait", "patience": 0.1})
    assert late.prompt().wait()[0] == 0 and results(late)[0].startswith("Nobody was there")
