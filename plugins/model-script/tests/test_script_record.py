"""What a model streamed is written as a script that plays the same again."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings, strategies as st
from kernel_model_script import plugin
from kernel_model_script.provider import ScriptModel
from kernel_model_script.record import HEADER, Recorder

from kernel import AssistantMessage, History, ModelError, ModelInfo, ModelRequest, Registry, StreamError, StreamEvent
from kernel.testing import FakeClock, Kit, Turn, call, text


def asked(history: History | None = None) -> ModelRequest:
    return ModelRequest(model="m", max_tokens=1, system=[], tools=[], history=history or History([("user", "hello")]))


def caller(events: list[StreamEvent], error: ModelError | None = None) -> Callable[[ModelRequest], AsyncIterator[StreamEvent]]:
    async def call(request: ModelRequest) -> AsyncIterator[StreamEvent]:
        for event in events:
            yield event
        if error:
            raise error
    return call


async def drain(stream: AsyncIterator[StreamEvent]) -> tuple[list[StreamEvent], ModelError | None]:
    got = []
    try:
        async for event in stream:
            got.append(event)
    except ModelError as error:
        return got, error
    return got, None


def record(path: Path, *streams: tuple[list[StreamEvent], ModelError | None], request: ModelRequest | None = None) -> None:
    async def main() -> None:
        recorder, mine = Recorder(str(path)), request or asked()
        for events, error in streams:
            assert await drain(recorder.around_model(mine, caller(events, error))) == (events, error)
    anyio.run(main)


def replay(path: Path, times: int, request: ModelRequest | None = None) -> list[tuple[list[StreamEvent], ModelError | None]]:
    async def main() -> list[tuple[list[StreamEvent], ModelError | None]]:
        model = ScriptModel()
        info = model.resolve(str(path))
        assert isinstance(info, ModelInfo)
        mine = request or asked()
        mine.model = info.id
        return [await drain(model.stream(mine)) for _ in range(times)]
    return anyio.run(main)


STOP: StreamEvent = {"type": "message_stop"}
ODD: list[StreamEvent] = [
    {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}, "n": [1e5, 1e-7, 12345678901234567890]},
    {"type": "x", "text": "emoji 🎈 \u2028 \u0085 \x7f \x00 \x1b \ufeff \ud83d lone, {{last_result}} \"'\\ \t\n", "": None},
    {"type": "x", "yes": True, "no": [[], {}, ""], "date": "2026-01-01", "merge": "<<", "anchor": "&a *a !b # c: d"}, STOP]

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8)
EVENTS = st.lists(st.dictionaries(st.text(), JSON, max_size=3).map(lambda d: {**d, "type": "x"}), min_size=1, max_size=4)


def test_odd_events_come_back_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    other = [*ODD[2::-1], STOP]
    record(path, (ODD, None), (other, None))
    again = replay(path, 2)
    assert [json.dumps(e) for e in again[0][0]] == [json.dumps(e) for e in ODD]
    assert [json.dumps(e) for e in again[1][0]] == [json.dumps(e) for e in other]


@given(st.lists(EVENTS, min_size=1, max_size=3))
@settings(deadline=None, max_examples=50)
def test_any_events_come_back_byte_for_byte(tmp_path_factory: pytest.TempPathFactory, streams: list[list[StreamEvent]]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.unlink(missing_ok=True)
    record(path, *((events, None) for events in streams))
    assert json.dumps([events for events, _ in replay(path, len(streams))]) == json.dumps(streams)


def test_failures_and_breaks_come_back(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    overloaded = ModelError("busy 🎈: {x}\n- y", kind="overloaded_error", status=529, retry_after=1.5)
    broken = StreamError("gone", kind="connection_error", should_retry=False)
    record(path, ([], overloaded), (ODD[:2], broken), (ODD, None))
    first, second, third = replay(path, 3)
    for (_, error), original, kind in ((first, overloaded, ModelError), (second, broken, StreamError)):
        assert type(error) is kind
        assert (error.message, error.kind, error.status, error.retry_after, error.should_retry) == (
            original.message, original.kind, original.status, original.retry_after, original.should_retry)
    assert second[0] == ODD[:2] and third == (ODD, None)


def test_each_turn_is_on_disk_before_its_end_is_passed_on(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"

    async def main() -> None:
        async for event in Recorder(str(path)).around_model(asked(), caller(ODD)):
            if event == STOP:
                assert path.read_text().endswith('{"type": "message_stop"}\n')
    anyio.run(main)
    assert path.stat().st_mode & 0o077 == 0


def test_an_interrupted_answer_is_kept_as_far_as_it_came(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"

    async def main() -> None:
        stream = Recorder(str(path)).around_model(asked(), caller(ODD))
        await anext(stream)
        await stream.aclose()
    anyio.run(main)
    [(events, error)] = replay(path, 1)
    assert events == ODD[:1] and type(error) is StreamError


def test_a_later_recording_goes_on_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    record(path, ([STOP], None))
    record(path, (ODD, None))
    assert [events for events, _ in replay(path, 2)] == [[STOP], ODD]


def test_a_file_that_is_no_recording_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "precious.yaml"
    path.write_text("precious")

    async def main(target: Path) -> ModelError | None:
        return (await drain(Recorder(str(target)).around_model(asked(), caller(ODD))))[1]
    for target, said in ((path, "no recording"), (tmp_path / "missing" / "x.yaml", "cannot be written")):
        error = anyio.run(main, target)
        assert error is not None and said in error.message and "KERNEL_RECORD" in error.message
        assert error.should_retry is False
    assert path.read_text() == "precious"


def test_turns_of_subagents_wait_for_their_own_prompt(tmp_path: Path) -> None:
    path = tmp_path / "talk.yaml"
    main_line, agent = asked(History([("user", "main 🎈")])), asked(History([("user", "count: the #files\n🎈 {x}")]))

    async def main() -> None:
        recorder = Recorder(str(path))
        for request, name in ((main_line, "m1"), (agent, "a1"), (main_line, "m2"), (agent, "a2")):
            await drain(recorder.around_model(request, caller([{"type": name}, STOP])))
        model = ScriptModel()
        info = model.resolve(str(path))
        assert info is not None
        main_line.model = agent.model = info.id
        played = [(await drain(model.stream(r)))[0][0]["type"] for r in (main_line, main_line, agent, agent)]
        assert played == ["m1", "m2", "a1", "a2"]
    anyio.run(main)


def test_a_recorded_session_plays_to_the_same_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the real loop: tools run again, a retry happens again, and the history is the same."""
    path = tmp_path / "talk.yaml"
    monkeypatch.setenv("KERNEL_RECORD", str(path))
    async def run(kit: Kit) -> list[Any]:
        session = kit.open()
        await session.submit("hello")
        said = [m.message["content"][0] for m in kit.outputs if isinstance(m, AssistantMessage)]
        return [session.history.messages, said]
    turns = [call("Nothing", x=1), Turn(fail=ModelError("busy", kind="overloaded_error", status=529)), text("done ü")]

    class Named:
        register_middleware = staticmethod(plugin.register_middleware)
    first = anyio.run(run, Kit(tmp_path, turns, hooks={"recorder": Named}, clock=FakeClock()))
    assert path.read_text().startswith(HEADER)
    monkeypatch.delenv("KERNEL_RECORD")
    monkeypatch.setenv("KERNEL_SCRIPT", str(path))
    monkeypatch.setenv("KERNEL_PROVIDER", "script")
    second = anyio.run(run, Kit(tmp_path, model=ScriptModel(), clock=FakeClock()))
    assert second == first


def test_without_the_variable_nothing_is_registered_and_nothing_heavy_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNEL_RECORD", raising=False)
    registry: Registry[Any] = Registry("middleware")
    plugin.register_middleware(registry)
    assert len(registry) == 0
    code = ("import sys; from kernel import Registry; from kernel_model_script import plugin; r = Registry('models');"
            "plugin.register_middleware(Registry('middleware')); plugin.register_models(r); assert r.get('script');"
            "print(sorted({'yaml', 'asyncio'} & set(sys.modules)))")
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
