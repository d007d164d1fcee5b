"""``kernel -p --attach`` does what ``kernel -p`` does: the same script both ways, in every format."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from typing import Any

import pytest

from kernel.testing import installed

TEXT = "name: s\nturns:\n- text: hello\n- text: again\n"
TOOLS = """
name: s
turns:
- text: First a look.
  calls:
  - {tool: Bash, input: {command: 'echo "$MOOD in $(pwd)"; cat note.txt'}}
- text: It says {{last_result}}
"""
FAIL = "name: s\nturns:\n- fail: {status: 400}\n"
USER = '{"type":"user","message":{"role":"user","content":"%s"},"uuid":"%s"}\n'
MODE = '{"type":"control_request","request_id":"r1","request":{"subtype":"set_permission_mode","mode":"plan"}}\n'
ONE, TWO = "6a0f7a8e-0000-4000-8000-000000000001", "6a0f7a8e-0000-4000-8000-000000000002"
STREAM = ("--output-format", "stream-json", "--verbose")
LINES = ("--input-format", "stream-json", *STREAM)

CASES: dict[str, tuple[str, tuple[str, ...], str | None]] = {
    "text": (TEXT, ("hi",), None),
    "text of a pipe": (TEXT, (), "hi\n"),
    "text and a pipe": (TEXT, ("hi",), "look at this"),
    "no prompt": (TEXT, (), ""),
    "blank prompt": (TEXT, ("  ",), ""),
    "blank pipe": (TEXT, (), " \n "),
    "json": (TEXT, ("hi", "--output-format", "json"), None),
    "json, verbose": (TEXT, ("hi", "--output-format", "json", "--verbose"), None),
    "stream-json": (TEXT, ("hi", *STREAM), None),
    "stream-json, partial": (TEXT, ("hi", *STREAM, "--include-partial-messages"), None),
    "two prompts": (TEXT, LINES, USER % ("hi", ONE) + USER % ("again", TWO)),
    "a prompt twice": (TEXT, LINES, USER % ("hi", ONE) + USER % ("hi", ONE)),
    "replayed": (TEXT, (*LINES, "--replay-user-messages"), USER % ("hi", ONE)),
    "a blank line of input": (TEXT, LINES, USER % (" ", ONE) + USER % ("hi", TWO)),
    "no line of input": (TEXT, LINES, ""),
    "lines in, text out": (TEXT, ("--input-format", "stream-json"), USER % ("hi", ONE)),
    "lines in, json out": (TEXT, ("--input-format", "stream-json", "--output-format", "json"), USER % ("hi", ONE)),
    "control": (TEXT, LINES, MODE + USER % ("hi", ONE)),
    "unknown lines": (TEXT, LINES, '{"type":"keep_alive"}\n{"type":"whatever"}\n' + USER % ("hi", ONE)),
    "a tool that is allowed": (TOOLS, ("look", "--allowedTools", "Bash"), None),
    "a tool that is not": (TOOLS, ("look", "--output-format", "json"), None),
    "a model that fails": (FAIL, ("hi",), None),
    "a model that fails, json": (FAIL, ("hi", "--output-format", "json"), None),
    "an unknown flag": (TEXT, ("hi", "--verbos"), None),
    "a value that does not fit": (TEXT, ("hi", "--max-turns", "0"), None),
    "two flags that do not fit": (TEXT, ("hi", "--output-format", "stream-json"), None),
    "nobody to resume": (TEXT, ("hi", "--resume", "nobody"), None),
    "nobody to resume, json": (TEXT, ("hi", "--resume", "nobody", "--output-format", "json"), None),
    "init only": (TEXT, ("--init-only",), None),
    "a setting that is wrong": (TEXT, ("hi", "--settings", '{"permissions": {"alow": []}}'), None),
    "a file for the system prompt": (TEXT, ("hi", "--system-prompt-file", "note.txt"), None),
    "a file that is not there": (TEXT, ("hi", "--system-prompt-file", "nothing.txt"), None),
    "a prompt behind two dashes": (TEXT, ("--", "--attach"), None),
    "structured": ("name: s\nturns:\n- calls: [{tool: StructuredOutput, input: {a: 1}}]\n- text: done\n",
                   ("hi", "--output-format", "json", "--json-schema", '{"type":"object","properties":{"a":{"type":"integer"}}}'),
                   None),
}
VARIES = re.compile(r'("(?:uuid|session_id|request_id|timestamp|memory_paths)":)(?:"[^"]*"|\{[^}]*\})|'
                    r'("(?:duration_ms|duration_api_ms|ttft_ms|elapsed_time_seconds|hook_id)":)[^,}]+')


def comparable(text: str) -> str:
    """Without what differs from run to run: ids and times."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "ID", VARIES.sub(r"\1\2_", text))


@pytest.mark.parametrize("case", CASES)
def test_it_does_what_print_mode_does(shared: Any, case: str) -> None:
    script, args, stdin = CASES[case]
    (shared.project / "note.txt").write_text("a note\n")
    model = ("--model", shared.script(script))
    cut = args.index("--") if "--" in args else len(args)
    plain = shared.run("-p", *args[:cut], *model, *args[cut:], stdin=stdin, MOOD="fine")
    attached = shared.run("-p", "--attach", *args[:cut], *model, *args[cut:], stdin=stdin, MOOD="fine")
    assert (attached.returncode, comparable(attached.stdout)) == (plain.returncode, comparable(plain.stdout)), attached.stderr
    assert attached.stderr == plain.stderr
    if case == "a tool that is allowed":
        assert attached.stdout == f"It says fine in {shared.project}\na note\n"


def test_a_malformed_line_ends_the_run_behind_the_prompts_before_it(shared: Any) -> None:
    done = shared.run("-p", "--attach", *LINES, "--model", shared.script(TEXT), stdin=USER % ("hi", ONE) + "nonsense\n")
    assert done.returncode == 1
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()][-1] == "result"
    assert "line 2 of stdin is not valid JSON" in done.stderr and done.stderr.count("\n") == 1


def test_who_reads_slowly_loses_nothing(shared: Any) -> None:
    """10 MB through a pipe that is read at the end."""
    count = 20
    model = shared.script("name: s\nmodel: {context_window: 100000000}\nturns:\n" + count * "- text: '{{last_prompt}}'\n",
                          "echo.yaml")
    with subprocess.Popen([sys.executable, "-m", "kernel", "-p", "--attach", *LINES, "--model", model], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=shared.env, cwd=shared.project) as run:
        assert run.stdin is not None and run.stdout is not None and run.stderr is not None
        for n in range(count):
            run.stdin.write(USER % (f"{n} {250_000 * 'x'}", f"6a0f7a8e-0000-4000-8000-{n:012}"))
        run.stdin.close()
        first = run.stdout.readline()

        def closed() -> bool:
            row = shared.client().request("GET", f"/v1/sessions/{json.loads(first)['session_id']}")
            return bool(row["state"] == "closed")

        while not closed():
            time.sleep(0.05)
        said = [json.loads(line) for line in run.stdout]
        assert [m["result"].split()[0] for m in said if m["type"] == "result"] == [str(n) for n in range(count)]
        assert run.stderr.read() == "" and run.wait() == 0


def test_a_program_answers_questions_over_the_streams(shared: Any) -> None:
    """The control protocol as the Agent SDK speaks it, through the client."""
    folder = shared.folder("asked")
    model = shared.script("name: s\nturns:\n- calls: [{tool: Write, input: {file_path: made.txt, content: by a tool}}]\n"
                          "- text: done\n", folder=folder)
    with subprocess.Popen([sys.executable, "-m", "kernel", "-p", "--attach", *LINES, "--model", model, "--permission-prompt-tool",
                           "stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=shared.env, cwd=folder) as run:
        assert run.stdin is not None and run.stdout is not None

        def say(line: str) -> None:
            assert run.stdin is not None
            run.stdin.write(line)
            run.stdin.flush()

        say('{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}\n' + USER % ("go", ONE))
        said = []
        for line in run.stdout:
            said.append(json.loads(line))
            if said[-1]["type"] == "control_request":
                assert said[-1]["request"]["subtype"] == "can_use_tool"
                changed = {"file_path": "made.txt", "content": "by a person"}
                say(json.dumps({"type": "control_response", "response": {
                    "subtype": "success", "request_id": said[-1]["request_id"],
                    "response": {"behavior": "allow", "updatedInput": changed}}}) + "\n")
            if said[-1]["type"] == "result":
                run.stdin.close()
        assert said[0]["type"] == "control_response" and said[0]["response"]["request_id"] == "i"
        assert (said[-1]["type"], said[-1]["result"], run.wait()) == ("result", "done", 0)
    assert (folder / "made.txt").read_text() == "by a person"


def test_without_a_server_it_says_what_to_do(world: Any) -> None:
    done = world.run("-p", "--attach", "hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (f"Error: no server answers at {world.socket} (No such file or directory); "
                           "start one with: kernel serve\n")
    assert world.run("-p", "--attach=/nowhere/s", "hi").stderr.startswith("Error: no server answers at /nowhere/s ")


def test_where_the_plugin_is_blocked_it_is_refused(shared: Any) -> None:
    done = shared.run("-p", "--attach", "hi", "--block", "serve")
    assert (done.returncode, done.stdout) == (1, "")
    assert "--attach needs the plugin 'serve', which is blocked" in done.stderr


@pytest.mark.parametrize(("flags", "said"), [
    (("--rewind-files", "x", "--resume", "y"), "--rewind-files works on a conversation that is not open"),
    (("--harness", "h.yaml"), "a locked harness owns its whole process")])
def test_what_needs_a_process_of_its_own_is_refused(shared: Any, flags: tuple[str, ...], said: str) -> None:
    done = shared.run("-p", "--attach", "hi", *flags, "--model", shared.script(TEXT))
    assert (done.returncode, done.stdout) == (1, "") and said in done.stderr


@pytest.mark.skipif(not installed("durable"), reason="the plugin durable is not installed")
def test_a_durable_run_is_refused(shared: Any) -> None:
    done = shared.run("-p", "--attach", "hi", "--durable", "--model", shared.script(TEXT))
    assert (done.returncode, done.stdout) == (1, "") and "durable runs have a process of their own" in done.stderr


def test_what_the_client_imports(shared: Any) -> None:
    program = ("import json, sys\nfrom kernel.cli import main\ncode = main(['-p', 'hi', '--attach', '--model', sys.argv[1]])\n"
               "print(json.dumps([code, sorted(sys.modules)]), file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", program, shared.script(TEXT)], cwd=shared.project, env=shared.env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "hello\n", done.stderr
    code, modules = json.loads(done.stderr.splitlines()[-1])
    assert code == 0
    assert not {"msgspec", "pluggy", "anyio", "asyncio", "argparse", "typer", "http.client", "email", "ssl", "threading",
                "kernel.harness", "kernel.plugins", "kernel.settings", "kernel.options"} & set(modules)
