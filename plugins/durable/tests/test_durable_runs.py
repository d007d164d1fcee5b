"""Where a run stands, who has it, what it costs; and that nothing is there while it is off."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.durable import ANSWER, World, no_postgres, postgres
from kernel.testing import installed


def wait_for(world: World, note: tuple[str, str]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and note not in [n[:2] for n in world.notes()]:
        time.sleep(0.02)


def test_while_it_is_off_nothing_of_it_is_entered(world: Callable[..., World]) -> None:
    here = world()
    probe = ("import sys; from kernel.cli import main; code = main(['-p', 'hello', '--model', 'claude-sonnet-4-5']); "
             "heavy = ('dbos', 'sqlalchemy', 'psycopg', 'typer', 'kernel_durable'); "
             "print(sorted(m for m in sys.modules if m.split('.')[0] in heavy))")
    done = subprocess.run([sys.executable, "-c", probe], cwd=here.work, env=here.environment, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120, check=False)
    entered = done.stdout.splitlines()[-1]
    assert entered == "['kernel_durable', 'kernel_durable.config', 'kernel_durable.plugin']", done.stderr
    assert not Path(here.root, "config", "kernel").exists() and here.runs() == []


def test_the_default_database_is_private_and_a_terminated_run_goes_on(world: Callable[..., World]) -> None:
    here = world((("Slow", "a"),), settings={"unknown": "retry"})
    del here.environment["KERNEL_DURABLE_DATABASE"]
    process = here.prompt()
    wait_for(here, ("waits", "a"))
    os.kill(process._process.pid or 0, signal.SIGTERM)
    assert process.wait()[0] == 143
    database = here.root / "config" / "kernel" / "durable.sqlite"
    assert {p.stat().st_mode & 0o777 for p in database.parent.glob("durable*")} == {0o600}
    Path(f"{here.ledger}.go").write_text("")
    assert here.run("durable", "resume")[:2] == (0, f"{ANSWER}\n")
    code, listed, _ = here.run("durable", "list", "--all", "--json")
    (run,) = json.loads(listed)
    assert code == 0 and run["state"] == "done" and run["prompt"] == "Do it all."
    shown = json.loads(here.run("durable", "show", run["id"][:20], "--json")[1])
    assert {"0/model", "1/tool:toolu_0_0", "1/model"} <= shown["recorded"].keys()
    assert here.run("durable", "prune", "--days", "0")[1] == "1 runs forgotten.\n"
    assert here.run("durable", "list", "--all")[1] == "No durable runs.\n"
    code, _, err = here.run("durable", "resume", run["id"])
    assert code == 1 and "there is no run" in err


@pytest.mark.parametrize("database", ["sqlite:////dev/null/durable.sqlite", "postgresql://kernel:secret@127.0.0.1:1/durable"])
def test_a_database_that_is_away_ends_the_run_before_anything_is_done(world: Callable[..., World], database: str) -> None:
    here = world((("Effect", "a"),), database=database)
    code, out, err = here.prompt().wait()
    assert code == 1 and "a durable run cannot be begun" in out and "secret" not in out + err, (out, err)
    assert not here.model.asked and not here.notes()
    code, out, err = here.run("durable", "list")
    assert (code, out) == (0, "No durable runs to take up (--all: the others, too).\n") if "sqlite" in database else (
        code == 1 and "the database cannot be asked" in err and "secret" not in err), err


def test_a_run_without_its_transcript_is_refused(world: Callable[..., World]) -> None:
    here = world()
    code, _, err = here.prompt("--no-session-persistence").wait()
    assert code == 1 and "exclude each other" in err and not here.model.asked


def test_limits_and_dollars_count_the_run_and_files_that_were_read_stay_read(world: Callable[..., World]) -> None:
    here = world((("Read", {"file_path": "f"}),), (("Deadly", "k"),), (("Edit", {"file_path": "f", "old_string": "one",
                                                                               "new_string": "two"}),),
                 settings={"unknown": "retry"}, kill={"k": 1})
    (here.work / "f").write_text("one")
    for step in here.model.steps:
        for _, fields in step:
            if isinstance(fields, dict):
                fields["file_path"] = str(here.work / "f")
    args = ("--output-format", "json", "--allowedTools", "Read", "Edit", "--max-turns", "2")
    assert here.prompt(*args).wait()[0] == -signal.SIGKILL
    code, out, _ = here.run("durable", "resume", "--output-format", "json")
    result = json.loads(out)
    assert (code, result["subtype"]) == (1, "error_max_turns")
    assert result["modelUsage"]["claude-sonnet-4-5"]["inputTokens"] == 20
    again = here.run("-p", "go on", "--resume", here.runs()[0].spec["session"], "--model", "claude-sonnet-4-5", "--allowedTools",
                     "Read", "Edit")
    assert again[:2] == (0, f"{ANSWER}\n")


def test_what_was_read_before_the_kill_can_be_edited_behind_it(world: Callable[..., World]) -> None:
    here = world((("Read", {"file_path": ""}),), (("Deadly", "k"),), (("Edit", {"old_string": "one", "new_string": "two"}),),
                 kill={"k": 1})
    (here.work / "f").write_text("one")
    for step in (0, 2):
        here.model.steps[step][0][1]["file_path"] = str(here.work / "f")
    assert here.prompt("--allowedTools", "Read", "Edit").wait()[0] == -signal.SIGKILL
    assert here.run("durable", "resume")[0] == 0 and (here.work / "f").read_text() == "two"


@pytest.mark.skipif(not installed("subagents"), reason="the plugin subagents is not installed")
def test_the_steps_of_a_subagent_are_not_repeated(world: Callable[..., World]) -> None:
    here = world((("Agent", {"description": "d", "prompt": "AGENT", "run_in_background": False}),), kill={"k": 1})

    def steps_of(body: dict[str, object]) -> object:
        first = json.dumps(body["messages"][0])  # type: ignore[index]
        return ((("Effect", "one"),), (("Deadly", "k"),), (("Effect", "two"),)) if "AGENT" in first else here.model.steps

    here.model.steps_of = steps_of  # type: ignore[assignment,method-assign]
    assert here.prompt().wait()[0] == -signal.SIGKILL
    asked = len(here.model.asked)
    code, out, err = here.run("durable", "resume")
    assert (code, out) == (0, f"{ANSWER}\n"), err
    assert [n[1] for n in here.notes() if n[0] == "effect"] == ["one", "k", "two"]
    assert here.model.asked[asked:] == [2, 3, 1], "the agent's third and fourth answer, the conversation's second"


def test_the_second_prompt_of_a_conversation_goes_on_as_well(world: Callable[..., World]) -> None:
    here = world((("Effect", "a"),), (("Deadly", "b"),), kill={"b": 1})
    here.model.steps = ()
    code, out, _ = here.run("-p", "first words", "--durable", "--output-format", "json", "--model", "claude-sonnet-4-5")
    session = json.loads(out)["session_id"]
    here.model.steps = ((("Effect", "a"),), (("Deadly", "b"),))
    assert code == 0 and here.prompt("--resume", session).wait()[0] == -signal.SIGKILL
    assert here.run("durable", "resume")[:2] == (0, f"{ANSWER}\n")
    said = [b["text"] for m in here.model.heard["messages"] for b in m["content"] if b["type"] == "text"]
    assert [s for s in said if s in ("first words", ANSWER, "Do it all.")] == ["first words", ANSWER, "Do it all."]
    assert [n[1] for n in here.notes() if n[0] == "effect"] == ["a", "b"]


@pytest.mark.skipif(bool(no_postgres()), reason=no_postgres() or "there")
@pytest.mark.skipif(not installed("store-sql"), reason="the plugin store-sql is not installed")
def test_another_host_takes_over_and_the_one_that_was_cut_off_records_nothing(world: Callable[..., World]) -> None:
    """The first host's session with the server ends, as when its host is lost; the second has nothing but the database."""
    import psycopg

    with postgres() as database:
        first = world((("Slow", "a"),), settings={"unknown": "retry"}, database=database)
        second = world((("Effect", "never"),), settings={"unknown": "retry"}, database=database)
        second.model.steps = first.model.steps
        for host in (first, second):
            (host.root / "config" / "settings.json").write_text(json.dumps({"kernel": {
                "store": "sql", "durable": {"unknown": "retry"}}}))
            host.environment["KERNEL_SQL_URL"] = database
        process = first.prompt()
        wait_for(first, ("waits", "a"))
        (info,) = first.runs()
        assert info.state == "running" and second.run("durable", "resume", info.id)[0] == 1
        with psycopg.connect(database, autocommit=True) as server:
            server.execute("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        Path(f"{second.ledger}.go").write_text("")
        code, out, err = second.run("durable", "resume", info.id)
        assert (code, out) == (0, f"{ANSWER}\n"), err
        Path(f"{first.ledger}.go").write_text("")
        code, out, err = process.wait()
        assert code == 1 and "taken up by another process" in out, (out, err)
        assert first.runs()[0].state == "done" and "kernel@" in database and "password" not in err
