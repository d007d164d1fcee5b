"""Who may allow a call, who is asked, and what holds when the one who should decide cannot (permissions contract, 4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from kernel.answers import Decision
from kernel.events import PermissionRequestResult, PreToolUseResult
from kernel.output import SystemMessage
from kernel.policy import NoPolicy, PermissionCall, Verdict
from kernel.testing import Kit, Run, StubPolicy, call, module, text

pytestmark = pytest.mark.anyio


def asks(*_: Any) -> str:
    return "ask"


def answering(*decisions: Any) -> Any:
    """A PermissionRequest hook per decision; each its own plugin."""
    def hook(decision: Any) -> Any:
        return module(permission_request=lambda event: PermissionRequestResult(permission=decision))

    return {f"h{n}": hook(decision) for n, decision in enumerate(decisions)}


class Asker:
    """A person who gives the answers in order and counts how many questions are open at once."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[PermissionCall, Verdict, str]] = []
        self.open = self.most = 0

    async def __call__(self, question: PermissionCall, verdict: Verdict, id: str) -> Any:
        self.asked.append((question, verdict, id))
        self.open += 1
        self.most = max(self.most, self.open)
        await anyio.lowlevel.checkpoint()
        self.open -= 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def run(kit: Kit, asker: Any = None) -> Run:
    session = kit.open()
    session.asker = asker
    return await kit.run("go", session)


def content(run: Run, id: str = "call_1") -> str:
    return str(run.result_of(id)["content"])


# -- nobody decides -----------------------------------------------------------------------------------------------------
async def test_without_a_policy_nothing_runs_and_everybody_is_told(tmp_path: Path, probe: Any) -> None:
    class Nobody(StubPolicy):
        name = "another"

    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[tool := probe()], policy=Nobody())
    outcome = await run(kit)
    assert tool.ran == []
    assert "No permission policy is loaded" in content(outcome)
    assert any("every tool call is refused" in a for a in kit.harness.announced)
    assert NoPolicy().matches("Bash(rm *)", "Bash", {}), "a filter that cannot be evaluated lets the hook run"


async def test_a_question_that_nobody_can_answer_is_a_refusal_that_says_why(tmp_path: Path, probe: Any) -> None:
    outcome = await run(Kit(tmp_path, [call("Probe", n=1), text("done")], tools=[tool := probe()], policy=asks))
    assert tool.ran == []
    assert "Permission to use Probe was not given" in content(outcome) and "nobody can be asked in this run" in content(outcome)
    assert outcome.result.permission_denials == [{"tool_name": "Probe", "tool_use_id": "call_1", "tool_input": {"n": 1}}]


# -- the policy ----------------------------------------------------------------------------------------------------------
def broken(*_: Any) -> str:
    raise LookupError("rules are gone")


@pytest.mark.parametrize("policy", [broken, lambda *_: "Allow", lambda *_: "", lambda *_: None])
async def test_a_policy_that_fails_or_talks_nonsense_denies_and_is_announced(policy: Any, tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[tool := probe()], policy=policy)
    outcome = await run(kit, Asker({"behavior": "allow"}))
    assert tool.ran == []
    assert "the permission policy failed" in content(outcome)
    assert any("the permission policy failed on Probe" in a for a in kit.harness.announced)
    assert outcome.result.terminal_reason == "completed"


async def test_a_policy_that_answers_no_verdict_denies(tmp_path: Path, probe: Any) -> None:
    class Wrong(StubPolicy):
        def decide(self, call: PermissionCall) -> Any:
            return True

    outcome = await run(Kit(tmp_path, [call("Probe"), text("done")], tools=[tool := probe()], policy=Wrong()))
    assert tool.ran == [] and "expected a Verdict" in content(outcome)


async def test_a_policy_that_fails_on_an_update_denies(tmp_path: Path, probe: Any) -> None:
    class Stuck(StubPolicy):
        def update(self, changes: Any) -> Any:
            raise OSError("read only")

    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[tool := probe()], policy=Stuck(asks))
    outcome = await run(kit, Asker({"behavior": "allow", "updatedPermissions": [{"type": "setMode"}]}))
    assert tool.ran == [] and "OSError" in content(outcome)


async def test_updates_that_could_not_be_applied_are_told(tmp_path: Path, probe: Any) -> None:
    class Half(StubPolicy):
        def update(self, changes: Any) -> Any:
            return [f"could not save {changes[0]['type']}"]

    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[tool := probe()], policy=Half(asks))
    outcome = await run(kit, Asker({"behavior": "allow", "updatedPermissions": [{"type": "addRules"}]}))
    assert tool.ran == [{}] and "could not save addRules" in outcome.notices()


@pytest.mark.parametrize(("hook", "policy", "ran"), [
    ("allow", "allow", True), ("allow", "ask", True), ("allow", "deny", False), ("ask", "allow", False), ("ask", "deny", False),
    ("deny", "allow", False), (None, "allow", True), (None, "ask", False)])
async def test_what_a_hook_and_a_rule_come_to(hook: Any, policy: str, ran: bool, tmp_path: Path, probe: Any) -> None:
    hooks = {"h": module(pre_tool_use=lambda event: PreToolUseResult(permission_decision=hook) if hook else None)}
    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[tool := probe()], policy=lambda *_: policy, hooks=hooks)
    await run(kit)
    assert bool(tool.ran) == ran
    assert [c.hook for c in kit.policy.calls[:1]] == ([] if hook == "deny" else [hook])


async def test_the_policy_is_told_the_mode_and_the_place(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe", n=1), text("done")], tools=[tool := probe()], permission_mode="acceptEdits")
    await run(kit)
    (question,) = kit.policy.calls
    assert (question.tool, question.input, question.mode, question.cwd) == (tool, {"n": 1}, "acceptEdits", str(tmp_path))


# -- hooks that answer for a person ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("decisions", "ran", "says"), [
    ([Decision(behavior="allow")], True, "ran"), ([Decision(behavior="deny", message="not today")], False, "not today"),
    ([Decision(behavior="deny")], False, "was not given"), ([None], False, "nobody can be asked"),
    ([Decision(behavior="allow"), Decision(behavior="deny", message="no")], False, "no"),
    ([Decision(behavior="allow", updated_input={"n": 2})], True, "'n': 2"),
    ([Decision(behavior="allow", updated_input={"n": "many"})], False, "invalid_arguments"),
    ([Decision(behavior="deny", updated_input={"n": 2})], False, "was not given")])
async def test_a_permission_request_is_answered_by_hooks(
        decisions: Any, ran: bool, says: str, tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe", n=1), text("done")], tools=[tool := probe()], policy=asks, hooks=answering(*decisions))
    kit.policy._decide = lambda name, input: "allow" if kit.policy.calls[-1].hook == "allow" else "ask"
    outcome = await run(kit)
    assert bool(tool.ran) == ran and says in content(outcome)


async def test_a_hook_that_fails_denies_even_if_another_allows(tmp_path: Path, probe: Any) -> None:
    hooks = answering(Decision(behavior="allow")) | {"guard": module(permission_request=broken_hook)}
    kit = Kit(tmp_path, [call("Probe"), text("done")], tools=[tool := probe()], policy=asks, hooks=hooks)
    outcome = await run(kit, Asker({"behavior": "allow"}))
    assert tool.ran == [] and "plugin 'guard'" in content(outcome)


def broken_hook(event: Any) -> None:
    raise ValueError("guard broke")


async def test_a_hook_that_answers_spares_the_person(tmp_path: Path, probe: Any) -> None:
    asker = Asker()
    hooks = answering(Decision(behavior="allow"))
    await run(Kit(tmp_path, [call("Probe"), text("done")], tools=[tool := probe()], policy=asks, hooks=hooks), asker)
    assert tool.ran == [{}] and asker.asked == []


@pytest.mark.parametrize(("again", "asker", "ran"), [
    ("deny", None, False), ("deny", {"behavior": "allow"}, False), ("ask", None, False), ("ask", {"behavior": "allow"}, True),
    ("ask", {"behavior": "deny"}, False), ("allow", None, True)])
async def test_an_input_that_a_hook_rewrote_meets_deny_and_ask_rules_again(
        again: str, asker: Any, ran: bool, tmp_path: Path, probe: Any) -> None:
    class Rules(StubPolicy):
        def decide(self, call: PermissionCall) -> Verdict:
            return Verdict(behavior=again if call.input == {"n": 2} else "ask")  # type: ignore[arg-type]

    hooks = answering(Decision(behavior="allow", updated_input={"n": 2}))
    kit = Kit(tmp_path, [call("Probe", n=1), text("done")], tools=[tool := probe()], policy=Rules(), hooks=hooks)
    await run(kit, Asker(asker) if asker else None)
    assert tool.ran == ([{"n": 2}] if ran else [])


async def test_a_refusal_with_interrupt_ends_the_turn(tmp_path: Path, probe: Any) -> None:
    hooks = answering(Decision(behavior="deny", message="stop it", interrupt=True))
    kit = Kit(tmp_path, [[call("Probe"), call("Probe")], text("never")], tools=[probe()], policy=asks, hooks=hooks)
    outcome = await run(kit)
    assert len(outcome.requests) == 1
    assert outcome.result.terminal_reason == "hook_stopped" and outcome.result.result == "stop it"


async def test_continue_false_of_a_permission_hook_ends_the_turn_and_the_call_is_not_run(tmp_path: Path, probe: Any) -> None:
    stops = module(permission_request=lambda event: PermissionRequestResult(
        continue_=False, stop_reason="enough", permission=Decision(behavior="allow")))
    kit = Kit(tmp_path, [call("Probe"), text("never")], tools=[tool := probe()], policy=asks, hooks={"h": stops})
    outcome = await run(kit)
    assert tool.ran == [] and outcome.result.terminal_reason == "hook_stopped"


# -- the person or program -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("answer", "ran", "says"), [
    ({"behavior": "allow"}, True, "ran"), ({"behavior": "deny"}, False, "it was refused"),
    ({"behavior": "deny", "message": "use Read"}, False, "use Read"), ({}, False, "it was refused"),
    ({"behavior": "allow", "updatedInput": {"n": 5}}, True, "'n': 5"), ({"behavior": "allow", "updatedInput": None}, True, "ran"),
    ({"behavior": "allow", "updatedInput": {"n": "x"}}, False, "invalid_arguments"),
    ({"behavior": "ALLOW"}, False, "it was refused"), (None, False, "it was refused"), ("allow", False, "it was refused"),
    (RuntimeError("pipe closed"), False, "RuntimeError: pipe closed"),
    ({"behavior": "allow", "updatedInput": "text"}, False, "")])
async def test_the_person_decides(answer: Any, ran: bool, says: str, tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe", n=1), text("done")], tools=[tool := probe()], policy=asks)
    asker = Asker(answer)
    outcome = await run(kit, asker)
    assert bool(tool.ran) == ran and says in content(outcome)
    ((question, verdict, id),) = asker.asked
    assert (question.input, verdict.behavior, id) == ({"n": 1}, "ask", "call_1")


async def test_a_persons_new_input_meets_deny_rules_but_is_not_asked_for_again(tmp_path: Path, probe: Any) -> None:
    def policy(name: str, input: dict[str, Any]) -> str:
        return "deny" if input.get("n") == 9 else "ask"

    class AlwaysAsks(StubPolicy):
        def decide(self, call: PermissionCall) -> Verdict:
            return Verdict(behavior=policy("", call.input))  # type: ignore[arg-type]

    kit = Kit(tmp_path, [[call("Probe", n=1), call("Probe", n=1)], text("done")], tools=[tool := probe()], policy=AlwaysAsks())
    await run(kit, Asker({"behavior": "allow", "updatedInput": {"n": 2}}, {"behavior": "allow", "updatedInput": {"n": 9}}))
    assert tool.ran == [{"n": 2}]


async def test_questions_come_one_at_a_time_in_call_order_and_each_answer_is_for_its_own_call(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [[call("Probe", n=n) for n in range(5)], text("done")], tools=[tool := probe(safe=True)], policy=asks)
    asker = Asker(*({"behavior": "deny" if n == 2 else "allow"} for n in range(5)))
    outcome = await run(kit, asker)
    assert asker.most == 1
    assert [question.input["n"] for question, _, _ in asker.asked] == [0, 1, 2, 3, 4]
    assert sorted(i["n"] for i in tool.ran) == [0, 1, 3, 4]
    assert outcome.result_of("call_3")["is_error"]


async def test_a_rule_that_an_answer_added_spares_the_next_question(tmp_path: Path, probe: Any) -> None:
    class Learns(StubPolicy):
        def update(self, changes: Any) -> list[str]:
            self._decide = lambda *_: "allow"
            return []

    calls = [call("Probe", n=n) for n in range(3)]
    kit = Kit(tmp_path, [calls, text("done")], tools=[tool := probe(safe=True)], policy=Learns(asks))
    asker = Asker({"behavior": "allow", "updatedPermissions": [{"type": "addRules"}]})
    await run(kit, asker)
    assert len(asker.asked) == 1 and len(tool.ran) == 3


# -- what is reported ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("policy", "hook", "told"), [
    ("deny", None, True), ("ask", None, True), ("allow", "deny", False), ("allow", None, False)])
async def test_denials_are_told_on_the_stream_unless_a_hook_denied_and_always_in_the_result(
        policy: str, hook: Any, told: bool, tmp_path: Path, probe: Any) -> None:
    hooks = {"h": module(pre_tool_use=lambda event: PreToolUseResult(permission_decision=hook, permission_decision_reason="why"))}
    kit = Kit(tmp_path, [call("Probe", n=1), text("done")], tools=[probe()], policy=lambda *_: policy, hooks=hooks)
    outcome = await run(kit)
    messages = [m.data for m in kit.outputs if isinstance(m, SystemMessage) and m.subtype == "permission_denied"]
    assert [m["tool_use_id"] for m in messages] == (["call_1"] if told else [])
    if told:
        assert messages[0]["message"] == content(outcome) and messages[0]["tool_name"] == "Probe"
    denied = told or hook == "deny"
    assert len(outcome.result.permission_denials) == int(denied)
    assert not hook or "PreToolUse:Probe hook refused this call: why" in content(outcome)


async def test_denials_are_those_of_one_turn(tmp_path: Path, probe: Any) -> None:
    kit = Kit(tmp_path, [call("Probe"), text("one"), text("two")], tools=[probe()], policy=lambda *_: "deny")
    session = kit.open()
    assert len((await session.submit("go")).permission_denials) == 1
    assert (await session.submit("again")).permission_denials == []


async def test_a_tool_that_the_policy_hides_is_neither_offered_nor_known(tmp_path: Path, probe: Any) -> None:
    class Hides(StubPolicy):
        def is_visible(self, tool: Any) -> bool:
            return bool(tool.name != "Secret")

    kit = Kit(tmp_path, [call("Secret"), text("done")], tools=[tool := probe("Secret"), probe()], policy=Hides())
    outcome = await run(kit)
    assert [t["name"] for t in outcome.requests[0]["tools"]] == ["Probe"]
    assert "unknown_tool" in content(outcome) and tool.ran == []
