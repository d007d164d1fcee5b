"""Whatever is done to a conversation, what comes back is what was recorded."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from kernel_sessions.chain import Graph
from kernel_sessions.entries import line
from kernel_sessions.linefile import completion
from kernel_sessions.reader import CHAIN_TYPES, decode, parse, read

from kernel import normalise

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
steps = st.one_of(
    st.tuples(st.just("say"), st.lists(texts, min_size=1, max_size=3)),
    st.tuples(st.just("resume"), st.none()),
    st.tuples(st.just("fork"), st.none()),
    st.tuples(st.just("cut"), st.integers(0, 50)),
    st.tuples(st.just("fork-cut"), st.integers(0, 50)),
    st.tuples(st.just("tear"), st.integers(1, 10_000)),
)


class Conversation:
    """The store on one side, a plain list on the other."""

    def __init__(self, home: Any) -> None:
        self.home = home
        self.said: list[tuple[str, Any]] = []
        self.fresh = 0
        self.uncut: list[tuple[str, Any]] | None = None
        self.session = home.open()

    def apply(self, step: str, value: Any) -> None:
        if step == "say":
            entries = [self.home.answer(t) if (len(self.said) + n) % 2 else self.home.prompt(t) for n, t in enumerate(value)]
            self.session.append(entries, cwd=str(self.home.cwd))
            self.said += [(e.type, e.message["content"]) for e in entries]
            self.fresh += len(entries)
            self.uncut = None
        elif self.said and Path(self.session.path).exists():
            self.session.close()
            if self.uncut is not None:  # a cut after which nothing was said is not recorded
                self.said, self.uncut = self.uncut, None
            getattr(self, f"_{step.replace('-', '_')}")(value)
            self.fresh = 0

    def _resume(self, _: None) -> None:
        self._reopen()

    def _fork(self, _: None) -> None:
        before = Path(self.session.path).read_bytes()
        path = self.session.path
        self._reopen(fork_session=True)
        assert Path(path).read_bytes() == before

    def _cut(self, place: int, **options: Any) -> None:
        lines = Graph(read(Path(self.session.path))).active().lines
        kept = place % len(lines) + 1
        self.uncut, self.said = self.said, self.said[:kept]
        self._reopen(resume_at=lines[kept - 1].uuid, **options)

    def _fork_cut(self, place: int) -> None:
        self._cut(place, fork_session=True)

    def _tear(self, count: int) -> None:
        """A kill in the middle of the last line, as long as the branch that is being written has more than that."""
        path = Path(self.session.path)
        data = path.read_bytes()
        last = data[data.rindex(b"\n", 0, len(data) - 1) + 1:] if data.count(b"\n") > 1 else b""
        if self.fresh >= 2 and last:
            lost = min(count, len(last))
            path.write_bytes(data[:-lost])
            if lost > 1:  # without its newline alone, the entry is whole
                self.said.pop()
        self._reopen()

    def _reopen(self, **options: Any) -> None:
        self.session = self.home.open(resume=self.session.session_id, **options)
        assert self.session.restored.messages == self.said


@given(todo=st.lists(steps, max_size=25))
@settings(max_examples=int(os.environ.get("KERNEL_EXAMPLES", "300")), deadline=None)
def test_any_sequence_of_appends_forks_cuts_and_tears_restores_what_was_said(home_class: Any,
                                                                                 todo: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        home = home_class(Path(place))
        patch.setenv("CLAUDE_CONFIG_DIR", str(home.config))
        talk = Conversation(home)
        for step, value in todo:
            talk.apply(step, value)
        talk.apply("resume", None)
        talk.session.close()


uuids = st.sampled_from("abcdefgh")
content = st.one_of(st.text(max_size=5), st.lists(st.one_of(
    st.fixed_dictionaries({"type": st.just("tool_use"), "id": st.sampled_from(["t1", "t2"]), "name": st.just("x"),
                           "input": st.just({})}),
    st.fixed_dictionaries({"type": st.just("tool_result"), "tool_use_id": st.sampled_from(["t1", "t2"])}),
    st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=3)}), st.integers()), max_size=3))
entries = st.fixed_dictionaries(
    {"type": st.sampled_from([*sorted(CHAIN_TYPES), "tag", "custom-title", "queue-operation"]), "uuid": uuids,
     "parentUuid": st.one_of(st.none(), uuids)},
    optional={"isMeta": st.booleans(), "isSidechain": st.booleans(), "teamName": st.just("t"), "logicalParentUuid": uuids,
              "isCompactSummary": st.booleans(), "message": st.fixed_dictionaries({"content": content}), "tag": st.text()})
garbage = st.one_of(entries.map(lambda e: json.dumps(e).encode()), st.binary(max_size=20), st.just(b'{"type":"user","uu'))


@given(st.lists(garbage, max_size=30), st.data())
@settings(max_examples=300, deadline=None)
def test_no_file_stops_the_reader(pieces: list[bytes], data: st.DataObject) -> None:
    graph = Graph(parse(Path("x"), b"\n".join(pieces)))
    chain = graph.active()
    assert len({line.number for line in chain.lines}) == len(chain.lines)
    normalise([(e["type"], [b for b in c if isinstance(b, dict)] if isinstance(c := e["message"]["content"], list) else c)
               for e in chain.messages()])
    graph.before_compaction(chain)
    for uuid in graph.place:
        cut = graph.upto(uuid)
        assert cut is not None and cut.lines


json_like = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.text(), st.integers(), st.none()), inner,
                                                                         max_size=3)), max_leaves=10)


@given(json_like)
def test_every_value_is_one_line_that_reads_back(value: Any) -> None:
    raw = line({"type": "user", "value": value})
    assert raw.endswith(b"\n") and len(raw.decode("utf-8").splitlines()) == 1
    assert decode(raw) is not None


@given(st.text(min_size=1), st.data())
def test_a_text_torn_anywhere_is_utf8_after_it_was_closed(text: str, data: st.DataObject) -> None:
    encoded = text.encode("utf-8", "replace")
    cut = data.draw(st.integers(0, len(encoded)))
    closed = encoded[:cut] + completion(encoded[:cut][-4:])
    assert closed.decode("utf-8").endswith("\n")
