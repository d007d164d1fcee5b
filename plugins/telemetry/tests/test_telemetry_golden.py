"""One scripted run: every metric, event and span with the names and types of its attributes, held against a table.

``pytest --update-golden`` writes the table; look at the difference before you commit it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernel import ResultMessage
from kernel.testing import installed

from . import one_run

GOLDEN = Path(__file__).parent / "golden.yaml"
pytestmark = pytest.mark.skipif(not all(map(installed, one_run.PLUGINS)), reason="needs " + ", ".join(one_run.PLUGINS))


def kinds(attributes: Any) -> dict[str, str]:
    return {k: type(v).__name__.replace("tuple", "list") for k, v in sorted(attributes.items())}


def table(told: Any) -> dict[str, Any]:
    """What was told, by name: attributes with their types, united over all of one name."""
    found: dict[str, Any] = {"metrics": {}, "events": {}, "spans": {}, "order": [e["event.name"] for e in told.events]}
    for metric in told.metrics:
        kind = type(metric.data).__name__
        entry = found["metrics"].setdefault(metric.name, {"kind": kind, "unit": metric.unit, "attributes": {}})
        for point in metric.data.data_points:
            entry["attributes"] |= kinds(point.attributes)
    for event in told.events:
        entry = found["events"].setdefault(event["event.name"], {})
        entry |= kinds(event)
    by_id = {s.context.span_id: s for s in told.spans}
    for span in told.spans:
        above = by_id[span.parent.span_id].name if span.parent else None
        entry = found["spans"].setdefault(span.name, {"below": [], "attributes": {}, "events": {}})
        entry["below"] = sorted({*entry["below"], above or "-"})
        entry["attributes"] |= kinds(span.attributes)
        for event in span.events:
            entry["events"].setdefault(event.name, {}).update(kinds(event.attributes))
    for section in ("metrics", "events", "spans"):
        found[section] = dict(sorted(found[section].items()))
    return found


def test_names_attributes_and_types(tmp_path: Path, told: Any, monkeypatch: pytest.MonkeyPatch,
                                    request: pytest.FixtureRequest) -> None:
    monkeypatch.setenv("OTEL_LOG_TOOL_DETAILS", "1")
    monkeypatch.setenv("OTEL_LOG_TOOL_CONTENT", "1")
    monkeypatch.setenv("TERM_PROGRAM", "tester")
    one_run.play(tmp_path)
    found = table(told)
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(yaml.safe_dump(found, sort_keys=False, width=130))
    expected = yaml.safe_load(GOLDEN.read_text())
    for section in ("metrics", "events", "spans", "order"):
        assert found[section] == expected[section], section


def test_the_sequence_has_no_gap_and_prompts_have_ids(tmp_path: Path, told: Any) -> None:
    one_run.play(tmp_path)
    assert [e["event.sequence"] for e in told.events] == list(range(1, len(told.events) + 1))
    prompts = [e["prompt.id"] for e in told.named("user_prompt")]
    assert len(prompts) == len(set(prompts)) == 2
    assert {e["prompt.id"] for e in told.named("tool_result")} == {prompts[0]}


def test_tokens_and_cost_are_those_of_the_result(tmp_path: Path, told: Any) -> None:
    kit = one_run.play(tmp_path)
    result = [m for m in kit.outputs if isinstance(m, ResultMessage)][-1]
    kinds = {"input": "inputTokens", "output": "outputTokens", "cacheRead": "cacheReadInputTokens",
             "cacheCreation": "cacheCreationInputTokens"}
    counted: Counter[tuple[str, str]] = Counter()
    for value, a in told.points("claude_code.token.usage"):
        counted[a["model"], kinds[a["type"]]] += value
    assert counted == {(m, k): u[k] for m, u in result.model_usage.items() for k in kinds.values() if u[k]}
    cost = sum(value for value, _ in told.points("claude_code.cost.usage"))
    assert cost == pytest.approx(result.total_cost_usd) and cost > 0
    assert {a["query_source"] for _, a in told.points("claude_code.token.usage")} == {"main", "subagent", "auxiliary"}


def test_metrics_are_deltas(tmp_path: Path, told: Any) -> None:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Histogram, Sum

    one_run.play(tmp_path)
    summed = [m.data for m in told.metrics if isinstance(m.data, Sum | Histogram)]
    assert summed and {d.aggregation_temporality for d in summed} == {AggregationTemporality.DELTA}
    before = sum(value for value, _ in told.points("claude_code.session.count"))
    assert before == 1 and not [m for m in told.metrics if m.name == "claude_code.session.count"][1:], "nothing is told twice"


def test_the_tree_of_spans(tmp_path: Path, told: Any) -> None:
    one_run.play(tmp_path)
    by_id = {s.context.span_id: s for s in told.spans}
    agent = next(s for s in told.spans if s.attributes.get("tool_name") == "Agent")
    below = [s for s in told.spans if s.parent and s.parent.span_id == agent.context.span_id]
    names = {s.name.removeprefix("claude_code.") for s in below}
    assert names >= {"tool.blocked_on_user", "tool.execution", "llm_request", "tool"}
    for span in told.spans:
        if span.name not in ("claude_code.interaction", "claude_code.hook"):
            assert span.parent.span_id in by_id and span.context.trace_id == by_id[span.parent.span_id].context.trace_id
        assert span.start_time <= span.end_time
    assert [s.attributes["interaction.sequence"] for s in told.spans if s.name == "claude_code.interaction"] == [1, 2, 3]
    failed = {s.name.removeprefix("claude_code.") for s in told.spans if s.status.status_code.name == "ERROR"}
    assert failed == {"hook", "tool.execution"}
    retried = next(s for s in told.spans if len(s.events) > 1)
    assert retried.name == "claude_code.llm_request" and [e.attributes["attempt"] for e in retried.events] == [1, 2]


def test_hooks_of_the_first_event_are_counted(tmp_path: Path, told: Any) -> None:
    """The table of configured hooks is made by the first event that is raised, which is one that hooks answer."""
    one_run.play(tmp_path)
    start, complete = (next(e for e in told.named(f"hook_execution_{what}") if e["hook_event"] == "SessionStart")
                       for what in ("start", "complete"))
    assert start["num_hooks"] == complete["num_hooks"] == complete["num_success"] == 2, "a configured one, the agents' plugin"
    assert start["event.timestamp"] <= complete["event.timestamp"]
    assert len(told.named("hook_registered")) == 3


def test_the_prefix_can_be_another(tmp_path: Path, told: Any) -> None:
    settings = {**one_run.HOOKS, "kernel": {"telemetry": {"prefix": "acme"}}}
    kit = one_run.kit_of(tmp_path)
    kit.harness.settings.layers[0].data.update(settings)
    one_run.play(tmp_path, kit)
    names = {s.name for s in told.spans} | {m.name for m in told.metrics} | {
        log.log_record.event_name for log in told.logs.get_finished_logs()}
    assert names and all(n.startswith(("acme.", "kernel.")) for n in names)
    assert {"acme.user_prompt", "acme.token.usage", "acme.llm_request", "kernel.run"} <= names
