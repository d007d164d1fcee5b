"""Evidence through the real loop: what is collected, and what the citation checks say of an answer."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from kernel_evidence.book import book
from kernel_evidence.validators import CitationSupports

from kernel import Tool, ToolContext, ToolResult, UsageError
from kernel.testing import FakeClock, Kit, Run, call, text

pytestmark = pytest.mark.anyio

SCHEMA = json.dumps({"type": "object", "properties": {"claim": {"type": "string"}}, "required": ["claim"]})


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))


class WebFetch(Tool):
    name = "WebFetch"
    description = "Fetches."
    input_schema = {"type": "object", "properties": {"url": {"type": "string"}}}
    permission = "free"

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        return ToolResult(content="The bicycle costs 349 euros in blue.")


def kit(path: Path, *turns: Any, validators: Any = (), tags: bool = True, clock: Any = None, **more: Any) -> Kit:
    settings = {"kernel": {"evidence": {"tags": tags}, "structuredOutput": {"validators": list(validators)}}}
    extra = {"extra": {"json_schema": SCHEMA}} if validators else {}
    return Kit(
        path,
        turns,
        installed=["evidence", "structured-output", "tools-files"],
        settings=settings,
        tools=[WebFetch()],
        clock=clock,
        **extra,
        **more,
    )


def cites(claim: str) -> Any:
    return call("StructuredOutput", claim=claim)


def said(run: Run, number: int) -> str:
    return str(run.result_of(f"call_{number}")["content"])


async def test_what_was_read_is_evidence_with_its_place_and_its_hash(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("one\ntwo\nthree\nfour\n")
    run = await kit(tmp_path, call("Read", file_path=str(note), offset=2, limit=2), text("done")).run("go")
    (found,) = book(run.session).items.values()
    assert (found.evidence_id, found.source_type, found.uri, found.trust) == ("ev_1", "file", "note.txt", "primary")
    assert (
        found.locator == {"start_line": 2, "end_line": 3}
        and found.turn_id == run.session.prompt_id
        and found.tool_call_id == "call_1"
    )
    assert found.content_hash.removeprefix("sha256:") in {hashlib.sha256(t).hexdigest() for t in (b"two\nthree", b"two\nthree\n")}
    assert said(run, 1).endswith("[ev_1]")


async def test_without_the_setting_the_model_sees_no_tags(tmp_path: Path) -> None:
    run = await kit(tmp_path, call("WebFetch", url="https://x.example/"), text("done"), tags=False).run("go")
    assert "[ev_" not in said(run, 1) and list(book(run.session).items) == ["ev_1"]


async def test_failures_bring_no_evidence(tmp_path: Path) -> None:
    run = await kit(tmp_path, call("Read", file_path=str(tmp_path / "none")), text("done")).run("go")
    assert not book(run.session).items


@pytest.mark.parametrize(
    ("validator", "bad", "good", "rule"),
    [
        ("citation_exists", "It costs 349 euros [ev_9].", "It costs 349 euros [ev_1].", "ev_9 does not"),
        ("citation_supports", "It costs 199 euros [ev_1].", "The bicycle costs 349 euros [ev_1].", "199 does not stand there"),
        ("citation_supports", "Horses sleep standing mostly [ev_1].", "A blue bicycle costs euros [ev_1].", "words stand there"),
    ],
)
async def test_a_citation_is_checked(tmp_path: Path, validator: str, bad: str, good: str, rule: str) -> None:
    run = await kit(tmp_path, call("WebFetch", url="https://x.example/"), cites(bad), cites(good), validators=[validator]).run(
        "go"
    )
    assert rule in said(run, 2) and '"retry_scope":"tool_loop"' in said(run, 2)
    assert run.result.structured_output == {"claim": good}


@pytest.mark.parametrize("validator", ["citation_exists", "history_isolation"])
async def test_evidence_of_an_earlier_run_does_not_count(tmp_path: Path, validator: str) -> None:
    made = kit(
        tmp_path,
        call("WebFetch", url="https://x.example/"),
        cites("It costs [ev_1]."),
        cites("It costs [ev_1]."),
        call("WebFetch", url="https://x.example/"),
        cites("It costs [ev_2]."),
        validators=[validator],
    )
    run = await made.run("go")
    second = await run.session.submit("again")
    assert run.result.structured_output == {"claim": "It costs [ev_1]."} and second.structured_output == {
        "claim": "It costs [ev_2]."
    }
    assert "ev_1 is of an earlier one" in json.dumps(made.model.requests[-2]["messages"])


async def test_old_pages_and_changed_files_are_read_again(tmp_path: Path) -> None:
    clock, note = FakeClock(), tmp_path / "note.txt"
    note.write_text("the port is 8443\n")
    made = kit(
        tmp_path,
        call("Read", file_path=str(note)),
        call("WebFetch", url="https://x.example/"),
        cites("the port is 8443 [ev_1]"),
        validators=["freshness"],
        clock=clock,
    )
    run = await made.run("go")
    assert run.result.structured_output == {"claim": "the port is 8443 [ev_1]"}
    check = run.session.harness.validators.get("freshness")
    assert await check.validate(None, "It costs 349 [ev_2].", run.session) == []
    note.write_text("the port is 9000\n")
    (changed,) = await check.validate(None, "the port is 8443 [ev_1]", run.session)
    assert "note.txt has changed" in changed.expected
    await clock.sleep(2 * 86_400)
    (old,) = await check.validate(None, "It costs 349 [ev_2].", run.session)
    assert "fetched again" in old.expected


async def test_a_run_leaves_one_line_and_compaction_tells_what_was_cited(tmp_path: Path) -> None:
    run = await kit(tmp_path, call("WebFetch", url="https://x.example/"), text("It costs 349 euros [ev_1].")).run("go")
    assert book(run.session).cited == ["ev_1"]
    (told,) = [b for b in await run.session.told_again() if "Evidence" in b["text"]]
    assert "[ev_1] web_page https://x.example/" in told["text"]


def test_only_numbers_and_words_are_compared() -> None:
    assert CitationSupports.uses_model is False


def kept(path: Path, *turns: Any, **more: Any) -> Kit:
    settings = {"kernel": {"evidence": {"tags": True}}}
    return Kit(path, turns, installed=["evidence", "sessions"], tools=[WebFetch()], settings=settings, persist=True, **more)


@pytest.mark.parametrize("damaged", [False, True])
async def test_after_a_resume_no_id_is_used_again_and_what_was_cited_is_known(tmp_path: Path, damaged: bool) -> None:
    """Damaged: the record beside the transcript is no use; what stands in the history still counts."""
    fetch = call("WebFetch", url="https://x.example/")
    run = await kept(tmp_path, fetch, text("It costs 349 euros [ev_1].")).run("go")
    await run.session.close()
    record = Path(run.session.transcript.path).with_suffix("") / "evidence.jsonl"
    if damaged:
        record.write_bytes(b'{"turn_id": "x", "items": [{"evidence_id": 1}, 5]}\n\xff\n' + b"[" * 9_000)
    again = await kept(tmp_path, fetch, text("done"), continue_session=True).run("more")
    assert [e.evidence_id for e in book(again.session).items.values() if e.turn_id == again.session.prompt_id] == ["ev_2"]
    told = [b for b in await again.session.told_again() if "Evidence" in b["text"]]
    assert bool(told) is not damaged
    await again.session.close()


async def test_only_the_run_that_is_on_keeps_texts_and_clear_begins_anew(tmp_path: Path) -> None:
    fetch = call("WebFetch", url="https://x.example/")
    run = await kit(tmp_path, fetch, text("one [ev_1]"), fetch, text("two")).run("go")
    await run.session.submit("again")
    assert [bool(e.excerpt) for e in book(run.session).items.values()] == [False, True]
    await run.session.clear()
    assert not book(run.session).items and not book(run.session).cited


@pytest.mark.parametrize(
    "raw",
    [b"one\r\ntwo\r\nthree\r\n", b"\xef\xbb\xbfone\ntwo\nthree", "café\nzwei\ndrei\n".encode(), b"one", b"e" * 9_000 + b"\nb\n"],
)
async def test_a_file_that_did_not_change_is_fresh(tmp_path: Path, raw: bytes) -> None:
    note = tmp_path / "note.txt"
    note.write_bytes(raw)
    run = await kit(tmp_path, call("Read", file_path=str(note)), text("done")).run("go")
    check = run.session.harness.validators.get("freshness")
    assert await check.validate(None, "It says so [ev_1].", run.session) == []
    note.write_bytes(raw.replace(b"e", b"E"))
    assert len(await check.validate(None, "It says so [ev_1].", run.session)) == 1


@pytest.mark.parametrize("settings", [[], {"tags": "yes"}, {"ttlSeconds": {"web_page": "x"}}, {"ttl": 5}])
def test_a_setting_that_says_nothing_is_refused(tmp_path: Path, settings: Any) -> None:
    with pytest.raises(UsageError, match=r"kernel\.evidence"):
        Kit(tmp_path, installed=["evidence"], settings={"kernel": {"evidence": settings}}).open()


async def test_what_a_subagent_finds_is_of_the_run_and_secondary(tmp_path: Path) -> None:
    note = tmp_path / "note.txt"
    note.write_text("the port is 8443\n")
    agent = call("Agent", description="d", prompt="Look.", subagent_type="general-purpose", run_in_background=False)
    made = Kit(
        tmp_path,
        [agent, call("Read", file_path=str(note)), text("8443"), text("done")],
        installed=["evidence", "subagents", "tools-files"],
    )
    run = await made.run("go")
    kinds = {(e.source_type, e.trust, e.turn_id == run.session.prompt_id) for e in book(run.session).items.values()}
    assert kinds == {("file", "secondary", True), ("subagent", "secondary", True)}
