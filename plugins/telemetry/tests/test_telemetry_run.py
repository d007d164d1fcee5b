"""Faults of requests, trace context in and out, what measures come to, and that a run is never disturbed."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings as hypothesis_settings, strategies as st
from kernel_telemetry import measures, spans

from kernel import AssistantMessage, ModelError, Prices, ResultMessage, Tool, ToolResult, UserMessage, encode_output
from kernel.output import to_wire
from kernel.testing import FakeClock, Kit, Turn, call, installed, text

from . import one_run

needs_all = pytest.mark.skipif(not all(map(installed, one_run.PLUGINS)), reason="needs " + ", ".join(one_run.PLUGINS))
BUSY = ModelError("too busy", kind="overloaded_error", status=529, request_id="req_9")


# -- requests that fail -------------------------------------------------------------------------------------------------
def test_an_exhausted_request_has_eleven_attempts(tmp_path: Path, told: Any) -> None:
    Kit(tmp_path, [Turn(fail=BUSY)] * 11, installed=["telemetry"], clock=FakeClock()).play("hello")
    [error], [exhausted] = told.named("api_error"), told.named("api_retries_exhausted")
    assert (error["attempt"], exhausted["total_attempts"], error["status_code"], error["request_id"]) == (11, 11, 529, "req_9")
    assert not told.named("api_request") and not told.points("claude_code.token.usage")
    [span] = [s for s in told.spans if s.name.endswith("llm_request")]
    assert len(span.events) == 11 and span.status.status_code.name == "ERROR" and span.attributes["success"] is False


def test_a_failure_that_cannot_pass_is_told_once(tmp_path: Path, told: Any) -> None:
    bad = ModelError("no such model", kind="not_found_error", status=404)
    Kit(tmp_path, [Turn(fail=bad), text("hi")], installed=["telemetry"]).play("hello", "again")
    [error] = told.named("api_error")
    assert error["attempt"] == 1 and not told.named("api_retries_exhausted")
    assert len(told.named("api_request")) == 1
    order = [e["event.name"] for e in told.events]
    assert order.index("api_error") < order.index("kernel.run")


def test_a_stream_that_breaks_counts_as_the_kernel_counts_it(tmp_path: Path, told: Any) -> None:
    """Cut behind a whole text: that answer counts. Cut inside one: asked again, and only the second try counts."""
    kit = Kit(tmp_path, [Turn(blocks=[text("whole"), text("half")], cut=6), Turn(blocks=[text("half")], cut=3), text("hi")],
              installed=["telemetry"], clock=FakeClock())
    run = kit.play("hello", "again")
    total = sum(u["inputTokens"] for u in run.result.model_usage.values())
    told_tokens = sum(v for v, a in told.points("claude_code.token.usage") if a["type"] == "input")
    assert told_tokens == total == 20
    assert len(told.named("api_request")) == 2 and not told.named("api_error")


def test_requests_that_no_middleware_sees_are_counted_with_the_result(tmp_path: Path, told: Any) -> None:
    """What the result counts and nobody saw, such as an auxiliary request to another provider, is told as auxiliary."""
    class Aside(Tool):
        name = "Aside"
        description = "Asks somebody else."
        input_schema = {"type": "object"}

        async def call(self, input: dict[str, Any], context: Any) -> ToolResult:
            from kernel import History, ModelRequest, side_request
            from kernel.testing import ScriptedModel

            session = context.session
            request = ModelRequest(model="other", max_tokens=100, system=[], tools=[], history=History([("user", "judge")]))
            other = ScriptedModel([text("fine")], prices=Prices(input=1, output=1, cache_write=1, cache_read=1))
            info = other.resolve("other")
            assert info is not None
            await side_request(session, request, info, provider=other)
            return ToolResult(content="ok")

    run = Kit(tmp_path, [call("Aside"), text("hi")], installed=["telemetry"], tools=[Aside()]).play("hello")
    counted = {(a["model"], a["query_source"]): v for v, a in told.points("claude_code.token.usage") if a["type"] == "input"}
    assert counted == {("sonnet", "main"): 20, ("other", "auxiliary"): 10}
    assert run.result.model_usage["other"]["inputTokens"] == 10
    cost = {a["model"]: v for v, a in told.points("claude_code.cost.usage")}
    assert cost == {"other": pytest.approx(run.result.total_cost_usd)} and cost["other"] > 0


# -- decisions ----------------------------------------------------------------------------------------------------------
class Deed(Tool):
    name = "Edit"
    description = "Edits."
    input_schema = {"type": "object"}

    async def call(self, input: dict[str, Any], context: Any) -> ToolResult:
        return ToolResult(content="done")


@pytest.mark.parametrize(("answer", "decision", "source"), [
    ({"behavior": "allow"}, "accept", "user_temporary"),
    ({"behavior": "allow", "updatedPermissions": [{"type": "addRules"}]}, "accept", "user_permanent"),
    ({"behavior": "deny"}, "reject", "user_reject"),
    ({"behavior": "deny", "interrupt": True}, "reject", "user_abort"),
    (None, "reject", "config")])
def test_who_decided(tmp_path: Path, told: Any, answer: dict[str, Any] | None, decision: str, source: str) -> None:
    import anyio

    kit = Kit(tmp_path, [call("Edit", file_path="a.py"), text("hi")], installed=["telemetry"], tools=[Deed()],
              policy=lambda name, input: "ask")

    async def asker(asked: Any, verdict: Any, call_id: str) -> dict[str, Any]:
        return answer or {}

    async def go() -> None:
        session = kit.open()
        session.asker = asker if answer is not None else None
        await session.submit("hello")
        await session.close()

    anyio.run(go)
    [event] = told.named("tool_decision")
    assert (event["decision"], event["source"]) == (decision, source)
    [(_, attributes)] = told.points("claude_code.code_edit_tool.decision")
    assert (attributes["decision"], attributes["source"], attributes["language"]) == (decision, source, "Python")
    assert len(told.named("tool_result")) == (decision == "accept"), "no result of a call that was rejected"
    [span] = [s for s in told.spans if s.name.endswith("blocked_on_user")]
    assert (span.attributes["decision"], span.attributes["source"]) == (decision, source)


def test_a_hook_that_refuses(tmp_path: Path, told: Any, kernel_kit: Any) -> None:
    from kernel import PreToolUseResult
    from kernel.testing import module

    def guard(event: Any) -> Any:
        return PreToolUseResult(permission_decision="deny", permission_decision_reason="no")

    Kit(tmp_path, [call("Edit"), text("hi")], installed=["telemetry"], tools=[Deed()],
        hooks={"guard": module(pre_tool_use=guard)}).play("hello")
    [event] = told.named("tool_decision")
    assert (event["decision"], event["source"]) == ("reject", "hook") and not told.named("tool_result")
    [complete] = [e for e in told.named("hook_execution_complete") if e["hook_event"] == "PreToolUse"]
    assert (complete["num_hooks"], complete["num_blocking"], complete["num_success"]) == (1, 1, 0)


# -- trace context ------------------------------------------------------------------------------------------------------
OUTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_the_parent_comes_from_the_environment(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", OUTER)
    monkeypatch.setenv("TRACESTATE", "vendor=1")
    Kit(tmp_path, [text("hi")], installed=["telemetry"]).play("hello", "again")
    roots = [s for s in told.spans if s.name.endswith("interaction")]
    assert {s.parent.span_id for s in roots} == {0xb7ad6b7169203331} and len(roots) == 2
    assert {s.context.trace_id for s in told.spans} == {0x0af7651916cd43dd8448eb211c80319c}
    assert {log.log_record.trace_id for log in told.logs.get_finished_logs()} == {0x0af7651916cd43dd8448eb211c80319c}
    assert roots[0].context.trace_state.get("vendor") == "1"


def test_events_carry_it_without_a_trace_exporter_and_interactive_runs_ignore_it(
        tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", OUTER)
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    Kit(tmp_path, [text("hi")], installed=["telemetry"]).play("hello")
    record = told.logs.get_finished_logs()[-1].log_record
    assert (record.trace_id, record.span_id) == (0x0af7651916cd43dd8448eb211c80319c, 0xb7ad6b7169203331)
    told.logs.clear()
    Kit(tmp_path, [text("hi")], installed=["telemetry"], print_mode=False).play("hello")
    assert not told.logs.get_finished_logs()[-1].log_record.trace_id


@pytest.mark.skipif(not installed("tools-shell"), reason="needs tools-shell")
def test_a_shell_sees_the_span_that_runs_it_and_no_setting_of_telemetry(tmp_path: Path, told: Any) -> None:
    command = 'echo "$TRACEPARENT"; env | grep -c ^OTEL_ || true'
    kit = Kit(tmp_path, [[call("Bash", "a", command=command), call("Bash", "b", command=command)], text("hi")],
              installed=["telemetry", "tools-shell"])
    run = kit.play("hello")
    running = {s.attributes["tool_use_id"]: s.context for s in told.spans if s.name.endswith("tool.execution")}
    for ident in ("a", "b"):
        parent, count = run.result_of(ident)["content"].split()[:2]
        place = spans.parse(parent)
        assert place is not None and (place.trace_id, place.span_id) == (running[ident].trace_id, running[ident].span_id)
        assert count == "0"
    assert "TRACEPARENT" not in run.session.environment, "gone when the run is over"


@pytest.mark.skipif(not installed("command-hooks"), reason="needs command-hooks")
def test_a_hook_finds_the_interaction(tmp_path: Path, told: Any) -> None:
    command = f"echo $TRACEPARENT > {tmp_path}/seen"
    Kit(tmp_path, [text("hi")], installed=["telemetry", "command-hooks"],
        settings={"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": command}]}]}}).play("hello")
    place = spans.parse((tmp_path / "seen").read_text())
    [interaction] = [s for s in told.spans if s.name.endswith("interaction")]
    assert place is not None and place.span_id == interaction.context.span_id


@pytest.mark.parametrize("given", ["", "00-x-y-01", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                   "00-00000000000000000000000000000000-b7ad6b7169203331-01", OUTER + "-more", OUTER.upper()])
def test_what_is_no_traceparent(given: str) -> None:
    assert spans.parse(given) is None


# -- the stream and the measures ----------------------------------------------------------------------------------------
@needs_all
def test_telemetry_tells_what_the_stream_tells(tmp_path: Path, told: Any) -> None:
    """Section 7: requests, calls with their outcome, denials, agents and results, compared for one recorded run."""
    kit = one_run.play(tmp_path)
    messages = [to_wire(m) for m in kit.outputs]
    said = [m for m in kit.outputs if isinstance(m, AssistantMessage) and m.parent_tool_use_id is None]
    ids = dict.fromkeys(m.message["id"] for m in said)
    assert len([e for e in told.named("api_request") if e["query_source"] == "main"]) == len(ids)
    results = {b["tool_use_id"]: bool(b.get("is_error")) for m in kit.outputs if isinstance(m, UserMessage)
               for b in m.message["content"] if isinstance(b, dict) and b.get("type") == "tool_result"}
    denied = {m["tool_use_id"] for m in messages if m.get("subtype") == "permission_denied"}
    assert {e["tool_use_id"]: e["success"] == "false" for e in told.named("tool_result")} == {
        k: v for k, v in results.items() if k not in denied}
    assert {e["tool_use_id"] for e in told.named("tool_decision") if e["decision"] == "reject"} == denied
    ends = [m for m in kit.outputs if isinstance(m, ResultMessage)]
    assert [(e["outcome"], e["terminal_reason"], e["num_turns"]) for e in told.named("kernel.run")] == [
        (m.subtype, m.terminal_reason, m.num_turns) for m in ends]
    notes = [m for m in messages if m.get("subtype") == "task_notification"]
    assert [(e["total_tool_uses"], e["total_tokens"]) for e in told.named("subagent_completed")] == [
        (n["usage"]["tool_uses"], n["usage"]["total_tokens"]) for n in notes]
    boundaries = [m["compact_metadata"] for m in messages if m.get("subtype") == "compact_boundary"]
    assert [e["pre_tokens"] for e in told.named("compaction")] == [b["pre_tokens"] for b in boundaries]
    assert all(encode_output(m) for m in kit.outputs)


@needs_all
def test_measures_are_recomputed_from_the_recorded_events(tmp_path: Path, told: Any) -> None:
    one_run.play(tmp_path)
    again: dict[str, float] = {}
    for point in measures.recompute(told.events):
        again[point.name] = again.get(point.name, 0) + point.value
    assert measures.recompute(told.events) == measures.recompute(told.events), "pure"
    for name, total in again.items():
        if measures.NAMES[name][0] != "gauge":
            assert sum(value for value, _ in told.points(name)) == pytest.approx(total), name
    assert {m.name for m in told.metrics if m.name.startswith("kernel.")} == set(again)
    assert again["kernel.run.count"] == 3


def call_of(tool: str, **more: Any) -> dict[str, Any]:
    return {"event.name": "tool_result", "tool_name": tool, "success": "true", "kernel.ran": True, "kernel.status": "success",
            **more}


def measured(*events: dict[str, Any]) -> list[tuple[str, float, dict[str, Any]]]:
    return [(p.name.removeprefix("kernel."), p.value, p.attributes) for p in measures.recompute(events)]


def test_an_invalid_call_and_the_next_one_are_one_intent() -> None:
    bad = call_of("Read", success="false", error_type="invalid_arguments")
    found = [p for p in measured(call_of("Read"), bad, bad, call_of("Read"), call_of("Read")) if p[0] == "tool.first_try"]
    assert [a["ok"] for _, _, a in found] == [True, False, True]


def test_an_empty_result_is_recovered_by_another_query() -> None:
    def look(query: str, status: str) -> dict[str, Any]:
        return call_of("Grep", **{"kernel.status": status, "kernel.input_digest": query, "kernel.result_digest": query + status})

    end = {"event.name": "kernel.run", "outcome": "success"}
    events = (look("a", "empty"), look("a", "success"), look("b", "success"), look("c", "empty"), end)
    found = [(value, a["recovered"]) for name, value, a in measured(*events) if name == "tool.empty"]
    assert found == [(1, True), (1, False)]


def test_repeats_are_noted_at_the_second_time_and_seen_blocked_at_the_third() -> None:
    same = call_of("Read", **{"kernel.input_digest": "q", "kernel.result_digest": "r"})
    blocked = {**same, "kernel.ran": False, "success": "false"}
    found = [a["action"] for name, _, a in measured(same, same, blocked) if name == "tool.repeat"]
    assert found == ["noted", "blocked"]


def test_structured_answers_and_probes() -> None:
    bad = call_of("StructuredOutput", success="false", error_type="invalid_output")
    found = measured(bad, call_of("StructuredOutput"), {"event.name": "kernel.probe", "ok": True},
                     {"event.name": "kernel.citation", "exists": True, "supports": False}, {"event.name": "kernel.run"})
    assert [a["ok"] for name, _, a in found if name == "structured.attempt"] == [False, True]
    assert ("structured.attempts", 2, {}) in found and ("compaction.probe", 1, {"ok": True}) in found
    assert ("citation.count", 1, {"exists": True, "supports": False}) in found


# -- never into the run -------------------------------------------------------------------------------------------------
JUNK = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.text(
    alphabet=st.characters(categories=["Cs"]), max_size=2), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.text(max_size=5), inner, max_size=3), max_leaves=8)


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(junk=JUNK, kind=st.sampled_from(["message_start", "message_delta", "content_block_start", "content_block_delta", "x"]),
       input=st.dictionaries(st.sampled_from(["file_path", "command", "skill", "a"]), JUNK, max_size=3))
def test_whatever_comes_the_run_ends_as_without_telemetry(tmp_path: Path, told: Any, junk: Any, kind: str, input: Any) -> None:
    """Hostile stream events, tool outputs and inputs: the result is the same as with the switch off."""
    class Odd(Tool):
        name = "Edit"
        description = "x"
        input_schema = {"type": "object"}

        async def call(self, input: dict[str, Any], context: Any) -> ToolResult:
            return ToolResult(content="done", structured=junk)

    class Model:
        """The script, with one more event that fits nothing."""

        name = "anthropic"

        def __init__(self) -> None:
            from kernel.testing import ScriptedModel

            self._inner = ScriptedModel([call("Edit", **input), text("hi")])
            self.resolve, self.aclose = self._inner.resolve, self._inner.aclose

        async def stream(self, request: Any) -> Any:
            async for event in self._inner.stream(request):
                yield event
                if event["type"] == "message_start":
                    yield {"type": kind, "odd": junk} if isinstance(junk, dict) else {"type": "ping", "delta": junk}

    def outcome(plugins: list[str]) -> Any:
        result = Kit(tmp_path, model=Model(), tools=[Odd()], installed=plugins).play("hello").result
        return result.subtype, result.terminal_reason, result.result, result.usage.input_tokens

    assert outcome(["telemetry"]) == outcome([])


def test_a_fault_of_telemetry_is_a_line_in_the_debug_log(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_telemetry import asks, calls, hearing, hooks

    def broken(*args: Any) -> Any:
        raise RuntimeError("broken on purpose")

    for owner, names in ((asks.Asks, ("begin",)), (asks.Attempt, ("saw",)), (calls.Calls, ("begin", "ask", "shown", "announced")),
                         (hooks.Hooks, ("begin", "end")), (hearing.Hearing, ("_result", "_system"))):
        for name in names:
            monkeypatch.setattr(owner, name, broken)
    kit = Kit(tmp_path, [call("Edit"), text("hi")], installed=["telemetry"], tools=[Deed()])
    lines: list[str] = []
    kit.harness.debug_sink = lines.append
    run = kit.play("hello")
    assert run.text == "hi" and run.result_of("call_1")["content"] == "done"
    assert any("broken on purpose" in line for line in lines)


def test_what_comes_before_the_exporters_is_not_lost(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_telemetry import exporters

    gate = threading.Event()
    made = told.made

    def late(pipeline: Any) -> Any:
        gate.wait(10)
        return made(pipeline)

    monkeypatch.setattr(exporters, "made", late)
    kit = Kit(tmp_path, [lambda body: (gate.set(), text("hi"))[1]], installed=["telemetry"])
    kit.play("hello")
    assert [e["event.sequence"] for e in told.events] == list(range(1, len(told.events) + 1))
    assert told.named("user_prompt"), "raised before the model let the exporters begin"


def test_the_queue_is_bounded_and_what_is_dropped_is_counted(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_telemetry import exporters, pipeline

    gate, made = threading.Event(), told.made
    monkeypatch.setattr(pipeline, "MOST", 5)
    monkeypatch.setattr(exporters, "made", lambda pipeline: (gate.wait(10), made(pipeline))[1])
    lines: list[str] = []
    kit = Kit(tmp_path, [call("Nope"), lambda body: (gate.set(), text("hi"))[1]], installed=["telemetry"])
    kit.harness.debug_sink = lines.append
    assert kit.play("hello").text == "hi"
    assert any("records were dropped: more than 5 were waiting" in line for line in lines)


def test_threads_end_with_the_last_conversation_and_begin_anew(tmp_path: Path, told: Any) -> None:
    from kernel.testing import until

    others = set(threading.enumerate())

    def running() -> list[str]:
        return [t.name for t in threading.enumerate() if t not in others and t.name.startswith(("telemetry", "OtelBatch"))]

    async def go() -> None:
        kit = Kit(tmp_path, [text("one"), text("two"), text("three")], installed=["telemetry"])
        first, second = kit.open(), kit.open()
        await first.submit("a")
        await second.submit("b")
        await first.close()
        assert running(), "the second one is still open"
        await second.close()
        await until(lambda: not running())
        third = kit.open()
        await third.submit("c")
        await third.close()
        await until(lambda: not running())

    import anyio

    anyio.run(go)
    assert len(told.named("kernel.run")) == 3 and sum(v for v, _ in told.points("kernel.run.count")) == 3


def test_whatever_an_attribute_holds_can_be_sent() -> None:
    """Any value in any place of an event, a point or a span: nothing is lost, and both encodings take it."""
    from kernel_telemetry import otlp
    from kernel_telemetry.exporters import Outlets
    from kernel_telemetry.pipeline import Event, Pipeline, Point
    from kernel_telemetry.switches import Signal, Switches

    sent: list[int] = []

    class Post:
        """Encodes as the real one does; the network is not what is tried."""

        hurried = threading.Event()

        def __call__(self, message: Any) -> bool:
            sent.append(len(message.SerializeToString()) + len(otlp.as_json(message)))
            return True

    signal = Signal(exporters=("otlp",))
    lines: list[str] = []

    def outlets(pipeline: Any) -> Any:
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        post: Any = Post()
        reader = PeriodicExportingMetricReader(otlp.Metrics(post))
        return Outlets(pipeline.switches, ([reader], [otlp.Logs(post)], [otlp.Spans(post)]))

    pipeline = Pipeline(Switches(metrics=signal, logs=signal, traces=signal), outlets)
    pipeline.log = lines.append

    @hypothesis_settings(max_examples=150, deadline=None)
    @given(st.dictionaries(st.text(min_size=1, max_size=6), JUNK, max_size=4), st.floats(0, 1e9))
    def put(attributes: dict[str, Any], value: float) -> None:
        pipeline.put(Event("x", dict(attributes), spans.now(), None))
        pipeline.put(Point("kernel.x", "counter", "", value, dict(attributes)))
        span = spans.begin("x", None, dict(attributes))
        span.events.append(("e", spans.now(), dict(attributes)))
        span.error = str(attributes)
        span.end = spans.now()
        pipeline.put(span)

    put()
    assert pipeline.flush(60, last=True) and len(sent) >= 3
    assert lines == []
