"""``Dispatcher.fire``: everybody is called, nobody is lost, nobody's fault is anybody else's (decision D1)."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import pluggy
import pytest

from kernel import hookspecs
from kernel.dispatch import DEADLINE_S, Dispatcher, Outcome
from kernel.events import Event, Notification, NotificationResult, PreToolUse, PreToolUseResult, Stop, StopResult
from kernel.hookspecs import hookimpl
from kernel.testing import Kit, call, module, text

pytestmark = pytest.mark.anyio

EVENT = Stop(session_id="s", transcript_path="/t", cwd="/", stop_hook_active=False)


def dispatcher(deadline: float = DEADLINE_S, /, **plugins: Any) -> Dispatcher:
    """A dispatcher over plugins, registered as the loader does: backwards, so that they are called by name."""
    manager = pluggy.PluginManager("kernel")
    manager.add_hookspecs(hookspecs)
    for name in sorted(plugins, reverse=True):
        manager.register(module(stop=plugins[name]) if callable(plugins[name]) else plugins[name], name=name)
    return Dispatcher(manager, deadline)


def says(reason: str) -> StopResult:
    return StopResult(decision="block", reason=reason)


def reasons(outcomes: list[Outcome]) -> list[tuple[str, str | None]]:
    return [(o.plugin, o.answer.reason if o.answer else None) for o in outcomes]


async def test_plain_and_async_implementations_are_called_in_the_order_of_plugin_names() -> None:
    async def waits(event: Any) -> StopResult:
        await anyio.lowlevel.checkpoint()
        return says("waited")

    outcomes = await dispatcher(c=lambda event: says("c"), a=waits, b=lambda event: says("b")).fire(EVENT)
    assert reasons(outcomes) == [("a", "waited"), ("b", "b"), ("c", "c")]


async def test_tryfirst_goes_before_and_trylast_behind_all_others() -> None:
    last = module(stop=hookimpl(trylast=True)(lambda event: says("last")))
    first = module(stop=hookimpl(tryfirst=True)(lambda event: says("first")))
    outcomes = await dispatcher(a=last, b=lambda event: says("b"), z=first).fire(EVENT)
    assert [o.plugin for o in outcomes] == ["z", "b", "a"]


async def test_async_implementations_run_side_by_side() -> None:
    """Each waits for the other: one behind the other they would never end."""
    here, there = anyio.Event(), anyio.Event()

    async def one(event: Any) -> None:
        here.set()
        await there.wait()

    async def other(event: Any) -> None:
        there.set()
        await here.wait()

    with anyio.fail_after(5):
        outcomes = await dispatcher(a=one, b=other).fire(EVENT)
    assert [(o.answer, o.error) for o in outcomes] == [(None, None), (None, None)]


async def test_a_late_implementation_is_ended_and_the_others_keep_their_answers() -> None:
    ended: list[str] = []

    async def late(event: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("late")

    async def quick(event: Any) -> StopResult:
        return says("quick")

    outcomes = await dispatcher(0.05, a=late, b=quick, c=lambda event: says("plain")).fire(EVENT)
    assert isinstance(outcomes[0].error, TimeoutError)
    assert "no answer within 0.05 s" in str(outcomes[0].error)
    assert reasons(outcomes[1:]) == [("b", "quick"), ("c", "plain")]
    assert ended == ["late"]


async def test_an_exception_is_an_outcome_and_stops_nobody() -> None:
    def breaks(event: Any) -> None:
        raise ValueError("plain")

    async def breaks_later(event: Any) -> None:
        await anyio.lowlevel.checkpoint()
        raise KeyError("later")

    async def leaves(event: Any) -> None:
        sys.exit("usage: hook")

    hooks = {"a": breaks, "b": breaks_later, "c": lambda event: says("c"), "d": lambda event: sys.exit(3), "e": leaves}
    outcomes = await dispatcher(**hooks).fire(EVENT)
    assert [type(o.error).__name__ for o in outcomes] == ["ValueError", "KeyError", "NoneType", "SystemExit", "SystemExit"]
    assert reasons(outcomes)[2] == ("c", "c")


@pytest.mark.parametrize("value", ["text", {"decision": "block"}, True, 0, object(), PreToolUseResult(), StopResult])
async def test_an_answer_of_the_wrong_type_is_an_error_that_says_what_was_expected(value: Any) -> None:
    (outcome,) = await dispatcher(a=lambda event: value).fire(EVENT)
    assert outcome.answer is None
    assert isinstance(outcome.error, TypeError)
    assert f"answered Stop with {type(value).__name__}, expected StopResult or None" in str(outcome.error)


async def test_a_list_is_several_answers_of_one_plugin() -> None:
    outcomes = await dispatcher(a=lambda event: [says("one"), "nonsense", says("two")], b=lambda event: []).fire(EVENT)
    assert reasons(outcomes) == [("a", "one"), ("a", None), ("a", "two")]
    assert isinstance(outcomes[1].error, TypeError)


async def test_an_answer_is_labelled_with_its_plugin_unless_it_has_a_label() -> None:
    labelled = StopResult(source="[Project] check.sh")
    outcomes = await dispatcher(a=lambda event: labelled, b=lambda event: StopResult()).fire(EVENT)
    assert [o.answer.source for o in outcomes if o.answer] == ["[Project] check.sh", "b"]


async def test_arguments_are_given_by_name_and_may_be_left_out() -> None:
    seen: dict[str, Any] = {}
    session: Any = object()
    hooks = {
        "a": module(stop=lambda event: seen.update(event=event)),
        "b": module(stop=lambda session: seen.update(session=session)),
        "c": module(stop=lambda session, event: seen.update(both=(event, session))),
        "d": module(stop=lambda: seen.update(none=True)),
    }
    outcomes = await dispatcher(**hooks).fire(EVENT, session)
    assert [o.error for o in outcomes] == [None] * 4
    assert seen == {"event": EVENT, "session": session, "both": (EVENT, session), "none": True}


async def test_an_event_that_nobody_implements_costs_a_look_up() -> None:
    quiet = dispatcher(a=lambda event: None)
    assert not quiet.listens(Notification)
    assert await quiet.fire(Notification(session_id="s", transcript_path="/t", cwd="/", message="", notification_type="x")) == []
    assert quiet.listens(Stop)


async def test_no_tool_event_is_built_where_nobody_listens(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[type[Event]] = []
    kit = Kit(tmp_path, [call("Nothing"), text("done")])
    session = kit.open()
    make = session.make

    def counted(kind: type[Event], **fields: Any) -> Event:
        built.append(kind)
        return make(kind, **fields)

    monkeypatch.setattr(session, "make", counted)
    await kit.run("go", session)
    assert not {k.__name__ for k in built} & {"PreToolUse", "PostToolUse", "PostToolBatch", "PermissionRequest"}


async def test_plugins_that_come_later_are_heard_after_a_refresh() -> None:
    manager = pluggy.PluginManager("kernel")
    manager.add_hookspecs(hookspecs)
    late = Dispatcher(manager)
    assert await late.fire(EVENT) == []
    manager.register(module(stop=lambda event: says("late")), name="late")
    late.refresh()
    assert reasons(await late.fire(EVENT)) == [("late", "late")]


async def test_cancelling_a_firing_reaches_the_implementations() -> None:
    """An interrupt must not wait for a hook."""
    ended: list[str] = []

    async def slow(event: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("slow")

    fired = dispatcher(a=slow, b=module(stop=slow, notification=lambda event: None))
    with anyio.move_on_after(0.01) as scope:
        await fired.fire(EVENT)
    assert scope.cancelled_caught
    assert ended == ["slow", "slow"]


async def test_a_gate_without_session_gets_the_event_only() -> None:
    seen: list[Any] = []
    manager = pluggy.PluginManager("kernel")
    manager.add_hookspecs(hookspecs)
    manager.register(module(pre_tool_use=lambda event: seen.append(event), notification=lambda event: NotificationResult()),
                     name="p")
    event = PreToolUse(session_id="s", transcript_path="/t", cwd="/", tool_name="Read", tool_input={}, tool_use_id="1")
    await Dispatcher(manager).fire(event)
    assert seen == [event]
