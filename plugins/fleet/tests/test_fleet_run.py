"""``kernel fleet run`` through the public door: real runs in real workspaces, killed, stopped and taken up again."""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel.testing import installed

pytestmark = pytest.mark.skipif(not all(map(installed, ("headless", "model-script", "tools-shell", "sessions", "permissions"))),
                                reason="needs print mode, a scripted model, Bash, sessions and rules")

LEDGER = 'echo "$KERNEL_FLEET_TASK" >> "$LEDGER"'


def test_each_task_has_a_workspace_of_its_own_and_leaves_its_change(place: Any) -> None:
    place.script('echo "$KERNEL_FLEET_TASK" > made.txt; ls >> made.txt', end="=1+1 <b>")
    (place.project / "not-committed").write_text("x")
    place.tasks({"id": "tree"}, {"id": "copy", "workspace": "copy"},
                {"id": "checked", "check": ["grep", "-q", "checked", "made.txt"]},
                {"id": "rejected", "check": ["grep", "nothing", "made.txt"]}, {"id": "here", "workspace": "none"})
    done = place.run("--workers", "2")
    assert done.returncode == 1, done.stderr
    assert {id: r["status"] for id, r in place.results.items()} == {
        "tree": "done", "copy": "done", "checked": "done", "rejected": "rejected", "here": "done"}
    patches = {id: (place.folder / "tasks.fleet" / r["patch"]).read_text() for id, r in place.results.items() if r["patch"]}
    assert all(f"+{id}\n" in text and "+++ b/made.txt" in text for id, text in patches.items())
    assert patches.keys() == {"tree", "copy", "checked", "rejected"}, "a run in the folder itself leaves no patch"
    assert "+not-committed" in patches["copy"] and "+not-committed" not in patches["tree"]
    assert (place.project / "made.txt").read_text().startswith("here\n")
    assert place.left() == [] and "1 rejected" in done.stdout

    fleet = place.folder / "tasks.fleet"
    rows = list(csv.DictReader((fleet / "results.csv").open()))
    assert [r["id"] for r in rows] == ["tree", "copy", "checked", "rejected", "here"]
    assert rows[0]["result"] == "'=1+1 <b>", "no formula for a spreadsheet"
    page = (fleet / "report.html").read_text()
    assert page.count("<svg") == 2 and "=1+1 &lt;b&gt;" in page and "<b>" not in page and "<script" not in page
    assert "http" not in page.replace("http-equiv", ""), "nothing is fetched from elsewhere"
    messages = [json.loads(line) for line in (fleet / place.results["tree"]["transcript"]).read_text().splitlines()]
    assert messages[-1]["type"] == "result" and place.results["tree"]["run_ms"] == messages[-1]["duration_ms"]
    assert (fleet / "fleet.json").stat().st_mode & 0o077 == 0 and fleet.stat().st_mode & 0o077 == 0

    again = place.run()
    assert again.returncode == 1 and "all tasks are finished" in again.stdout
    assert len([line for line in place.journal if line["kind"] == "begun"]) == 5, "nothing runs twice"


def test_a_worker_that_is_killed_loses_nothing_and_its_session_goes_on(place: Any) -> None:
    kill = f"touch $LEDGER.killed; {sys.executable} {place.folder}/kill_worker.py; sleep 600"
    kill_once = f"test -e $LEDGER.killed || {{ {kill}; }}"
    place.script("echo first >> made.txt", kill_once, LEDGER)
    place.tasks({"id": "a"}, {"id": "b"}, {"id": "c"})
    done = place.run("--workers", "1", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["statuses"] == {"done": 3} and told["attempts"] == 4
    assert sorted(place.ledger.read_text().split()) == ["a", "b", "c"]
    again, resumed = [line for line in place.journal if line["task"] == "a" and line["kind"] == "over"]
    assert again["status"] == "again" and "signal 9" in again["why"] and resumed["status"] == "done"
    begun = [line for line in place.journal if line["task"] == "a" and line["kind"] == "begun"]
    assert begun[1]["resumes"] and begun[0]["session"] == begun[1]["session"]
    patch = (place.folder / "tasks.fleet" / "tasks" / "a" / "changes.patch").read_text()
    assert patch.count("+first") == 2, "the workspace of the first attempt was kept"
    assert "signal 9" in done.stderr and place.left() == []


def test_a_fleet_that_is_killed_is_taken_up_by_the_same_command(place: Any) -> None:
    place.script(LEDGER, delay=0.2)
    place.tasks(*({"id": f"t{n}"} for n in range(6)))
    process = subprocess.Popen(place.command("--workers", "2"), cwd=place.folder, env=place.env, stderr=subprocess.PIPE)
    results = place.folder / "tasks.fleet" / "results.jsonl"
    place.until(lambda: results.exists() and results.read_bytes().count(b"\n") >= 2, "two results")
    process.kill()
    process.communicate()
    first = set(place.results)
    (place.folder / "tasks.fleet" / "journal.jsonl").open("ab").write(b'{"kind":"over","task":"t5","att')  # torn in the middle
    done = place.run("--workers", "2")
    assert done.returncode == 0, done.stderr
    assert len(place.results) == 6 and "left" in done.stderr
    begun = [line["task"] for line in place.journal if line["kind"] == "begun"]
    assert all(begun.count(id) == 1 for id in first), "a finished task never runs again"
    assert set(place.ledger.read_text().split()) == {f"t{n}" for n in range(6)} and place.left() == []


def test_ctrl_c_lets_running_tasks_finish_and_a_second_one_ends_them(place: Any) -> None:
    place.script(LEDGER, delay=0.5)
    place.tasks(*({"id": f"t{n}"} for n in range(4)))
    process = subprocess.Popen(place.command("--workers", "1"), cwd=place.folder, env=place.env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    place.until(lambda: (place.folder / "tasks.fleet" / "tasks" / "t0" / "attempt-1.jsonl").exists(), "the first task")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "kernel fleet run tasks.fleet" in out, out + err
    assert [(r["id"], r["status"]) for r in place.results.values()] == [("t0", "done")]

    process = subprocess.Popen(place.command("--workers", "1"), cwd=place.folder, env=place.env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    path = place.folder / "tasks.fleet" / "tasks" / "t1" / "attempt-1.jsonl"
    place.until(lambda: path.exists() and b'"assistant"' in path.read_bytes(), "an answer in the second task")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "t1" not in place.results, out + err
    assert [line["status"] for line in place.journal if line["task"] == "t1" and line["kind"] == "over"] == ["stopped"]
    refused = place.kernel("fleet", "run", "tasks.fleet")
    assert refused.returncode == 1 and "-- --model script:" in refused.stderr, refused.stderr
    go_on = shlex.split(next(line for line in out.splitlines() if "To go on: " in line).partition("To go on: ")[2])
    done = place.kernel(*go_on[1:])
    assert done.returncode == 0 and len(place.results) == 4, done.stderr
    assert place.results["t1"]["attempts"] == 2 and place.left() == []


def test_a_failure_that_may_pass_is_tried_again_and_another_is_not(place: Any) -> None:
    place.turns({"fail": {"status": 529, "times": 1}, "when": {"contains": "busy"}},
                {"fail": {"status": 400, "message": "no such thing"}, "when": {"contains": "wrong"}}, {"text": "fine"})
    place.tasks({"id": "busy", "prompt": "busy"}, {"id": "wrong", "prompt": "wrong"}, {"id": "fine"})
    done = place.run("--retries", "1")
    assert {id: (r["status"], r["attempts"]) for id, r in place.results.items()} == {
        "busy": ("failed", 2), "wrong": ("failed", 1), "fine": ("done", 1)}, done.stderr
    assert "no such thing" in place.results["wrong"]["why"] and place.left() == []


def test_a_task_that_takes_too_long_is_ended_with_its_commands(place: Any) -> None:
    place.script('sleep 600 & echo $! > "$LEDGER"; sleep 600')
    place.tasks({"id": "slow", "timeout_s": 2.0})
    done = place.run()
    assert done.returncode == 1 and place.results["slow"]["status"] == "timeout", done.stderr
    pid = int(place.ledger.read_text())
    place.until(lambda: not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2],
          "the end of the command")


def test_tasks_see_no_variable_that_nobody_named(place: Any) -> None:
    place.script('env > "$LEDGER.$KERNEL_FLEET_TASK"')
    place.tasks({"id": "a"})
    assert place.run().returncode == 0
    seen = Path(f"{place.ledger}.a").read_text()
    assert "hidden" not in seen and "KERNEL_FLEET_TASK=a" in seen
    place.tasks({"id": "b"})
    assert place.run("--pass-env", "SECRET_TOKEN").returncode == 0
    assert "SECRET_TOKEN=hidden" in Path(f"{place.ledger}.b").read_text()


PRICED = '''
from kernel import ModelInfo, Prices, hookimpl


class Priced:
    name = "priced"

    def resolve(self, model):
        return ModelInfo(id=model, prices=Prices(input=1.0, output=1.0, cache_write=1.0, cache_read=1.0))

    async def stream(self, request):
        yield {"type": "message_start", "message": {"id": "m", "model": request.model, "usage": {"input_tokens": 100_000}}}
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x"}}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 0}}
        yield {"type": "message_stop"}

    async def aclose(self):
        pass


@hookimpl
def register_models(register):
    register(Priced())
'''


def test_the_budget_holds_for_all_tasks_together(place: Any) -> None:
    site = place.folder / "site"
    (site / "priced" / ".claude-plugin").mkdir(parents=True)
    (site / "priced-0.1.0.dist-info").mkdir()
    (site / "priced-0.1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: priced\nVersion: 0.1.0\n")
    (site / "priced-0.1.0.dist-info" / "entry_points.txt").write_text("[kernel.plugins]\npriced = priced.plugin\n")
    (site / "priced" / ".claude-plugin" / "plugin.json").write_text(json.dumps({
        "name": "priced", "version": "0.1.0", "description": "a model with a price",
        "metadata": {"kernel": {"requires": ">=0.1,<1", "implements": ["register_models"], "provides": {"models": ["priced"]}}}}))
    (site / "priced" / "__init__.py").write_text("")
    (site / "priced" / "plugin.py").write_text(PRICED)
    place.env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(site), place.env["PYTHONPATH"])))
    place.tasks(*({"id": f"t{n}"} for n in range(8)))
    more = ("--model", "priced:x")
    done = place.run("--budget-usd", "0.45", "--workers", "2", more=more)  # a run costs 0.10
    assert done.returncode == 1 and "budget" in done.stdout, done.stdout + done.stderr
    cost = sum(r["cost_usd"] for r in place.results.values())
    assert 0.35 < cost <= 0.45 + 0.2, "each of two workers may go beyond by the one answer that it was in"
    done = place.run("--budget-usd", "5", more=more)
    assert done.returncode == 0 and len(place.results) == 8, done.stderr


@pytest.mark.parametrize(("line", "told"), [
    ('{"id": "a", "prompt": "x", "promt": 1}', "promt"), ('{"id": "../a", "prompt": "x"}', "$.id"),
    ('{"id": "a", "prompt": ""}', "$.prompt"), ("[]", "object"), ("{", ":2:"), ('{"id": "ok", "prompt": "x"}', "line 1"),
    ('{"prompt": "x", "cwd": "\\u0000"}', "$.cwd"), ('{"prompt": "x", "id": "a\\n"}', "$.id"),
    ('{"prompt": "x", "env": {"A\\n": "x"}}', "env"),
    ('{"prompt": "x", "options": {"max_turns": 0}}', "$.options.max_turns"), ('{"prompt": "x", "cwd": "nowhere"}', "$.cwd"),
    ('{"prompt": "x", "options": {"permission_mode": "bypassPermissions"}}', "$.options.permission_mode")])
def test_a_line_that_does_not_fit_is_named_before_anything_runs(place: Any, line: str, told: str) -> None:
    place.tasks({"id": "ok"})
    with (place.folder / "tasks.jsonl").open("a") as file:
        file.write(line + "\n")
    done = place.run()
    assert done.returncode == 1 and "tasks.jsonl:2: " in done.stderr and told in done.stderr, done.stderr
    assert not (place.folder / "tasks.fleet").exists()


def test_what_changed_in_the_file_is_refused_and_what_is_new_is_taken_up(place: Any) -> None:
    place.script()
    place.tasks({"id": "a"})
    assert place.run().returncode == 0
    place.tasks({"id": "a"}, {"id": "b"})
    assert place.run().returncode == 0 and set(place.results) == {"a", "b"}
    place.tasks({"id": "a", "prompt": "something else"})
    done = place.run()
    assert done.returncode == 1 and "'a'" in done.stderr and "--out" in done.stderr


def planted(place: Any, about: dict[str, Any], *tasks: dict[str, Any]) -> Path:
    """A folder of a fleet as a repository could ship it, beside a folder that is somebody's."""
    theirs: Path = place.folder / "theirs"
    for task in tasks:
        (theirs / task["id"]).mkdir(parents=True)
        (theirs / task["id"] / "precious").write_text("x")
    fleet = place.folder / "tasks.fleet"
    fleet.mkdir()
    id = "01930000-0000-7000-8000-000000000000"
    (fleet / "fleet.json").write_text(json.dumps({"id": id, "created": 0.0, "tasks_file": "t", "work": str(theirs), **about}))
    lines = [json.dumps({"prompt": "go", "cwd": str(place.project), "workspace": "copy", **task}) for task in tasks]
    (fleet / "tasks.jsonl").write_text("\n".join(lines).replace('"id": ""', '"env": {}') + "\n")  # an empty id: none at all
    return theirs


@pytest.mark.parametrize(("about", "id", "told"), [
    ({}, "a", "its workspaces lie in"), ({}, "", "no id"), ({"id": "../../../theirs"}, "a", "$.id")])
def test_a_planted_folder_removes_nothing(place: Any, about: dict[str, Any], id: str, told: str) -> None:
    place.script()
    theirs = planted(place, about, {"id": id})
    place.tasks({"id": "a", "workspace": "copy"})
    more = ("--", "--model", f"script:{place.folder / 'talk.yaml'}")
    for done in (place.run(), place.kernel("fleet", "run", "tasks.fleet", *more)):
        assert done.returncode == 1 and told in done.stderr, done.stderr
    assert (theirs / id / "precious").exists() and not (place.folder / "tasks.fleet" / "journal.jsonl").exists()


def test_a_folder_for_workspaces_that_the_fleet_did_not_make_is_left_alone(place: Any) -> None:
    place.script()
    work = place.home / ".cache" / "kernel" / "fleet" / "01930000-0000"
    planted(place, {"work": str(work)}, {"id": "a"})
    (work / "a").mkdir(parents=True)
    (work / "a" / "precious").write_text("x")
    place.tasks({"id": "a", "workspace": "copy"})
    done = place.run()
    assert done.returncode == 1 and "was not made by this fleet" in done.stderr, done.stderr
    assert (work / "a" / "precious").exists()


def test_a_planted_folder_gives_runs_no_rights_and_no_tasks(place: Any) -> None:
    place.script('touch "$LEDGER"')
    work = place.home / ".cache" / "kernel" / "fleet" / "01930000-0000"
    model = f"script:{place.folder / 'talk.yaml'}"
    planted(place, {"work": str(work), "args": ["--allowedTools", "Bash", "--model", model]}, {"id": "a"})
    place.tasks({"id": "a", "workspace": "copy"})
    done = place.kernel("fleet", "run", "tasks.fleet")
    assert done.returncode == 1 and "-- --allowedTools Bash" in done.stderr, done.stderr
    assert not (place.folder / "tasks.fleet" / "journal.jsonl").exists()
    done = place.kernel("fleet", "run", "tasks.fleet", "--", "--model", model)
    assert place.results["a"]["refused_calls"] == 1 and not place.ledger.exists(), done.stderr
    shutil.rmtree(place.folder / "tasks.fleet")
    shutil.rmtree(place.folder / "theirs")
    planted(place, {"work": str(work)}, {"id": "hidden", "check": ["touch", str(place.ledger)]})
    done = place.run()
    assert done.returncode == 1 and "hidden" in done.stderr and not place.ledger.exists(), done.stderr


@pytest.mark.parametrize("name", ["lock", "results.jsonl", ".fleet.json.new"])
def test_no_link_in_the_folder_is_followed(place: Any, name: str) -> None:
    place.script()
    place.tasks({"id": "a"})
    (place.folder / "tasks.fleet").mkdir()
    (place.folder / "tasks.fleet" / name).symlink_to(place.folder / "outside")
    done = place.run()
    assert done.returncode == 1 and "is a link" in done.stderr and not (place.folder / "outside").exists(), done.stderr


def test_workspaces_elsewhere_are_named_again(place: Any) -> None:
    place.script()
    place.tasks({"id": "a"})
    assert place.run("--work", "w").returncode == 0 and list((place.folder / "w").iterdir()) == []
    place.tasks({"id": "a"}, {"id": "b"})
    refused = place.run()
    assert refused.returncode == 1 and "--work" in refused.stderr
    assert place.run("--work", "w").returncode == 0 and set(place.results) == {"a", "b"}


def test_a_fleet_where_nothing_can_begin_stops_early(place: Any) -> None:
    place.tasks(*({"id": f"t{n}"} for n in range(30)))
    done = place.run(more=("--nonsense",))
    assert done.returncode == 1 and "--nonsense" in done.stderr + done.stdout
    assert len([line for line in place.journal if line["kind"] == "begun"]) < 12
    refused = place.run(more=("--resume", "x"))
    assert refused.returncode == 1 and "--resume is given by the fleet itself" in refused.stderr


def test_status_report_and_schema_speak_json(place: Any) -> None:
    place.script()
    place.tasks({"id": "a"}, {"id": "b"})
    planned = place.run("--dry-run", "--json")
    assert json.loads(planned.stdout)["statuses"] == {"waiting": 2} and not (place.folder / "tasks.fleet").exists()
    assert place.run("--starts-per-minute", "600", "--requests-per-minute", "6000").returncode == 0
    assert (place.folder / "tasks.fleet" / "pace").exists(), "requests went through the shared pace"
    status = json.loads(place.kernel("fleet", "status", "tasks.jsonl", "--json").stdout)
    assert status["statuses"] == {"done": 2} and [r["id"] for r in status["results"]] == ["a", "b"]
    assert len(json.loads(place.kernel("fleet", "report", "tasks.fleet", "--json").stdout)) == 2
    assert "prompt" in place.kernel("fleet", "schema").stdout


def test_without_forks_runs_are_started_anew(place: Any) -> None:
    """What a system other than Linux does."""
    place.script(LEDGER)
    place.tasks({"id": "a"}, {"id": "b"})
    (place.folder / "sitecustomize.py").write_text(
        "import sys\nif 'kernel_fleet.worker' in sys.orig_argv: sys.platform = 'darwin'\n")
    place.env["PYTHONPATH"] = os.pathsep.join(filter(None, (str(place.folder), place.env["PYTHONPATH"])))
    done = place.run("--workers", "1")
    assert done.returncode == 0 and sorted(place.ledger.read_text().split()) == ["a", "b"], done.stderr


def test_the_command_line_does_not_load_a_fleet_that_nobody_asked_for(tmp_path: Path) -> None:
    code = ("import sys, runpy; sys.argv = ['kernel', 'plugins', 'list']\n"
            "try: runpy.run_module('kernel', run_name='__main__')\nexcept SystemExit: pass\n"
            "print([m for m in sys.modules if m in ('ray', 'kernel_fleet.engine')])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_sample_of_the_benchmark_holds() -> None:
    """Workers and the fleet itself are killed; ``python -m benchmarks.fleet`` does it with 1,000 tasks."""
    root = Path(__file__).parent.parent.parent.parent
    command = [sys.executable, "-m", "benchmarks.fleet", "--tasks", "6", "--answers", "2", "--delay", "0.2", "--kills", "1",
               "--restarts", "1"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    assert figures["killed"] == {"worker": 1, "fleet": 1} and figures["attempts"] >= 7
