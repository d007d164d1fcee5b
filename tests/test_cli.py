"""The ``kernel`` command: flags, errors, exit codes, and what it may import (headless contract, sections 1 and 2)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kernel import CONTRACT, __version__, cli
from kernel.cli import main, run
from kernel.cli.flags import FLAGS, help_text
from kernel.cli.run import parse
from kernel.errors import UsageError
from kernel.options import Options
from kernel.settings import Settings
from kernel.testing import plugin_folder

# -- flags -------------------------------------------------------------------------------------------------------------
PARSED: list[tuple[list[str], dict[str, Any]]] = [
    (["-p", "hello"], {"prompt": "hello", "print_mode": True}),
    (["hello there", "--print"], {"prompt": "hello there"}),
    (["-p"], {"prompt": None}),
    (["-p", "--", "--verbose"], {"prompt": "--verbose", "verbose": False}),
    (["-p", "x", "--output-format", "json"], {"output_format": "json"}),
    (["-p", "--output-format=stream-json", "--verbose", "--input-format", "stream-json"],
     {"output_format": "stream-json", "input_format": "stream-json", "verbose": True}),
    (["-p", "x", "--model", "opus", "--effort", "high"], {"model": "opus", "effort": "high"}),
    (["-p", "x", "--max-turns", "3", "--max-budget-usd", "0.5"], {"max_turns": 3, "max_budget_usd": 0.5}),
    (["-p", "x", "--max-thinking-tokens", "2000"], {"max_thinking_tokens": 2000}),
    (["-p", "x", "--thinking", "adaptive"], {"thinking": "adaptive"}),
    (["-p", "x", "--thinking-display", "omitted"], {"extra": {"thinking_display": "omitted"}}),
    (["-p", "x", "--betas", "a, b,"], {"betas": ["a", "b"]}),
    (["-p", "x", "--system-prompt", ""], {"system_prompt": ""}),
    (["-p", "x", "--append-system-prompt=-be brief"], {"append_system_prompt": "-be brief"}),
    (["-p", "x", "--tools", ""], {"tools": []}),
    (["-p", "x", "--tools", "default"], {"tools": None}),
    (["-p", "x", "--tools", "Read, Bash"], {"tools": ["Read", "Bash"]}),
    (["-p", "x", "--allowedTools", "Read", "Bash(git *)"], {"allowed_tools": ["Read", "Bash(git *)"]}),
    (["-p", "x", "--allowed-tools", "Read", "--allowedTools", "Edit"], {"allowed_tools": ["Read", "Edit"]}),
    (["-p", "x", "--disallowedTools", "Bash(rm *),Write"], {"disallowed_tools": ["Bash(rm *),Write"]}),
    (["-p", "x", "--permission-mode", "acceptEdits"], {"permission_mode": "acceptEdits"}),
    (["-p", "x", "--dangerously-skip-permissions"], {"permission_mode": "bypassPermissions"}),
    (["-p", "x", "--allow-dangerously-skip-permissions"], {"allow_bypass": True, "permission_mode": None}),
    (["-p", "x", "-c"], {"continue_session": True}),
    (["-p", "x", "--resume", "abc", "--fork-session"], {"resume": "abc", "fork_session": True}),
    (["-p", "x", "--resume=abc"], {"resume": "abc"}), (["-p", "x", "-r", "abc"], {"resume": "abc"}),
    (["-p", "x", "--session-id", "i", "-n", "me"], {"session_id": "i", "name": "me"}),
    (["-p", "x", "--no-session-persistence"], {"persist": False}),
    (["-p", "x", "--settings", '{"model": "m"}'], {"settings": '{"model": "m"}'}),
    (["-p", "x", "--setting-sources="], {"setting_sources": ()}),
    (["-p", "x", "--setting-sources", "user, local"], {"setting_sources": ("user", "local")}),
    (["-p", "x", "--block", "a", "b"], {"block": ["a", "b"]}),
    (["-p", "x", "--init"], {"setup_trigger": "init"}), (["-p", "x", "--maintenance"], {"setup_trigger": "maintenance"}),
    (["-p", "--debug", "x"], {"prompt": "x", "extra": {"debug": ""}}),
    (["-p", "x", "--debug=hooks"], {"extra": {"debug": "hooks"}}),
    (["-p", "--init-only"], {"setup_trigger": "init", "extra": {"init_only": True}}),
    (["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"], {"print_mode": True, "prompt": None}),
]


@pytest.mark.parametrize(("args", "expected"), PARSED, ids=[" ".join(a) for a, _ in PARSED])
def test_flags_become_options(args: list[str], expected: dict[str, Any]) -> None:
    options = parse(args)
    assert {name: getattr(options, name) for name in expected} == expected


def test_flags_that_are_not_given_leave_the_defaults() -> None:
    given, default = parse(["-p", "x"]), Options()
    assert [n for n in Options.__struct_fields__ if getattr(given, n) != getattr(default, n)] == ["prompt"]


REFUSED: list[tuple[list[str], str]] = [
    (["-p", "x", "--verbos"], "unknown flag --verbos (did you mean --verbose?)"),
    (["-p", "x", "--nothing-like-it"], "unknown flag --nothing-like-it (kernel --help lists the flags)"),
    (["-p", "x", "--output=json"], "unknown flag --output=json"),
    (["-p", "one", "two"], "more than one prompt: 'one' and 'two' (put the prompt in quotes)"),
    (["armada", "run"], "if 'armada' was meant as a command: no plugin that is installed brings it"),
    (["armada", "--ships", "3"], "if 'armada' was meant as a command: no plugin that is installed brings it"),
    (["-p", "x", "--output-format", "xml"], "--output-format xml: expected one of text, json, stream-json"),
    (["-p", "x", "--input-format", "json"], "--input-format json: expected one of text, stream-json"),
    (["-p", "x", "--output-format", "stream-json"], "When using --print, --output-format=stream-json requires --verbose"),
    (["-p", "x", "--include-partial-messages"], "--include-partial-messages needs --output-format stream-json"),
    (["-p", "x", "--include-hook-events", "--output-format", "json"], "--include-hook-events needs --output-format stream-json"),
    (["-p", "--replay-user-messages", "--output-format", "stream-json", "--verbose"], "--replay-user-messages needs"),
    (["-p", "x", "--effort", "huge"], "--effort huge: expected one of low, medium, high, xhigh, max"),
    *((["-p", "x", "--max-turns", value], "--max-turns") for value in ("0", "-1", "many", "1.5")),
    *((["-p", "x", "--max-budget-usd", value], "--max-budget-usd") for value in ("0", "nan", "much")),
    (["-p", "x", "--setting-sources", "user,global"], "--setting-sources: unknown source 'global'"),
    (["-p", "x", "--add-dir", "/nothing/here"], "--add-dir /nothing/here: is no directory"),
    (["-p", "x", "--plugin-dir", "/nothing/here"], "--plugin-dir /nothing/here: is no directory"),
    (["-p", "x", "--system-prompt", "a", "--system-prompt-file", "b"], "and --system-prompt-file exclude each other"),
    (["-p", "x", "--system-prompt-file", "/nothing/here"], "--system-prompt-file /nothing/here: No such file"),
    (["-p", "x", "--resume"], "--resume needs a session id or name"), (["-p", "x", "--fork-session"], "--fork-session needs"),
    (["-p", "x", "--model"], "--model"),
]


@pytest.mark.parametrize(("args", "says"), REFUSED, ids=[" ".join(a) for a, _ in REFUSED])
def test_flags_that_cannot_be_used_are_one_line_of_error_and_exit_1(args: list[str], says: str, capsys: Any) -> None:
    with pytest.raises(UsageError) as caught:
        parse(args)
    assert says in str(caught.value)
    assert main(args) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("Error: ") and err.count("\n") == 1 and says in err


@pytest.mark.parametrize(("word", "near"), [("docter", "doctor"), ("plugin-s", "plugins"), ("runn", "run")])
def test_a_mistyped_command_gets_a_hint_and_no_session(word: str, near: str, capsys: Any) -> None:
    assert main([word]) == 1
    assert f"unknown command '{word}' (did you mean 'kernel {near}'? A prompt needs -p)" in capsys.readouterr().err
    assert parse(["-p", word]).prompt == word, "with -p it is a prompt"
    assert parse([f"{word} please"]).prompt == f"{word} please"


def test_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "p.md").write_bytes(b"be \xff good")
    options = parse(["-p", "x", "--append-system-prompt-file", "p.md", "--add-dir", "sub", ".", "--plugin-dir", "sub"])
    assert options.append_system_prompt == "be � good"
    assert options.add_dirs == [tmp_path / "sub", tmp_path] and options.plugin_dirs == [tmp_path / "sub"]


@pytest.mark.parametrize(("variable", "value", "args", "field", "expected"), [
    ("CLAUDE_CODE_MAX_TURNS", "4", [], "max_turns", 4), ("CLAUDE_CODE_MAX_TURNS", "4", ["--max-turns", "2"], "max_turns", 2),
    ("CLAUDE_CODE_MAX_TURNS", "0", [], "max_turns", None), ("CLAUDE_CODE_MAX_TURNS", "²", [], "max_turns", None),
    ("CLAUDE_CODE_EFFORT_LEVEL", "max", ["--effort", "low"], "effort", "max"),
    ("CLAUDE_CODE_EFFORT_LEVEL", "x", [], "effort", None)])
def test_environment_twins(
        variable: str, value: str, args: list[str], field: str, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    assert getattr(parse(["-p", "x", *args]), field) == expected


@pytest.mark.parametrize("flag", [f for f in FLAGS if f.needs not in ("", "serve")], ids=lambda f: f.names.split()[0])
def test_a_flag_whose_plugin_is_missing_is_refused(flag: Any, capsys: Any) -> None:
    value = [] if flag.kind == "switch" else ["x"]
    assert main(["-p", "hi", *flag.names.split()[:1], *value, "--block", flag.needs]) == 1
    err = capsys.readouterr().err
    assert f"needs the plugin '{flag.needs}', which is" in err


def test_managed_settings_can_switch_sideloading_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (tmp_path / "managed-settings.json").write_text('{"disableSideloadFlags": true}')
    load = Settings.load
    monkeypatch.setattr(Settings, "load", lambda *a, **k: load(*a, **{**k, "managed_dir": str(tmp_path)}))
    assert main(["-p", "hi", "--plugin-dir", str(tmp_path)]) == 1
    assert "--plugin-dir is switched off by managed settings" in capsys.readouterr().err


# -- version, help, imports ----------------------------------------------------------------------------------------------
def python(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **env})


def modules_after(*args: str) -> tuple[str, set[str]]:
    """What the command printed, and the modules that it imported."""
    code = f"import sys; from kernel.cli import main; code = main({list(args)!r}); print('\\n#', code, *sys.modules)"
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    shown, _, rest = done.stdout.rpartition("\n#")
    return shown, set(rest.split())


@pytest.mark.parametrize("args", [["--version"], ["-v"], ["--help"], ["-h"]])
def test_version_and_help_import_nothing_heavy(args: list[str]) -> None:
    shown, modules = modules_after(*args)
    assert modules & {"pluggy", "msgspec", "typer", "anyio", "jsonschema", "argparse", "asyncio", "importlib.metadata"} == set()
    assert [m for m in modules if m.startswith("kernel_")] == []
    if args[0] in ("--version", "-v"):
        assert shown.strip() == f"{CONTRACT} (kernel {__version__})" == f"2.1.240 (kernel {__version__})"
    else:
        assert all(flag.names.split()[0] in shown for flag in FLAGS) and all(name in shown for name in cli.COMMANDS)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path with two plugins, as pip lays them out; importing one of them ends the process."""
    site = tmp_path / "site"
    for name, commands in (("garden", ["garden dig", "garden plant", "fence"]), ("faulty", ["garden burn"])):
        source = "raise SystemExit('imported')" if name == "faulty" else """
from kernel import hookimpl

class Command:
    def __init__(self, name):
        self.name, self.summary = name, f"what {name} is for"

    def run(self, args):
        print(self.name, *args)
        return 0

@hookimpl
def register_commands(register):
    for name in ("garden dig", "garden plant", "fence"):
        register(Command(name))
"""
        plugin_folder(site / f"{name}_pkg", name, {"__init__.py": "", "plugin.py": source},
                      kernel={"implements": ["register_commands"], "provides": {"commands": commands}})
        (site / f"{name}-1.0.dist-info").mkdir()
        (site / f"{name}-1.0.dist-info" / "entry_points.txt").write_text(f"[kernel.plugins]\n{name} = {name}_pkg.plugin\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    return site


def test_help_lists_the_commands_of_plugins_by_group_without_importing_them(site: Path) -> None:
    (site / "garden_pkg" / "plugin.py").write_text("raise SystemExit('imported')")
    shown = python("-m", "kernel", "--help").stdout
    assert "\n  garden       burn, dig, plant\n" in shown and "\n  fence        (plugin garden)\n" in shown
    (site / "garden_pkg" / ".claude-plugin" / "plugin.json").write_text("[1")
    assert "plant" not in python("-m", "kernel", "--help").stdout


@pytest.mark.parametrize(("args", "code"), [(["garden"], 2), (["garden", "--help"], 0), (["garden", "-h"], 0)])
def test_a_group_of_commands_says_what_each_is_for(site: Path, args: list[str], code: int) -> None:
    done = python("-m", "kernel", *args)
    assert done.returncode == code, done.stderr
    rows = dict(line.split(None, 1) for line in done.stdout.splitlines()[2:])
    assert rows["dig"] == "what garden dig is for (plugin garden)" and rows["burn"].startswith("cannot be used: ")
    assert python("-m", "kernel", "garden", "dig", "deep").stdout == "garden dig deep\n"


def test_help_of_plugins_has_a_summary_for_every_command() -> None:
    done = python("-m", "kernel", "plugins", "--help")
    rows = dict(line.split(None, 1) for line in done.stdout.splitlines()[2:])
    assert done.returncode == 0 and "list" in rows and all(rows.values())
    assert "cannot be used" not in done.stdout


# -- plugins that do not load ----------------------------------------------------------------------------------------------
def test_the_doctor_imports_every_plugin_and_names_what_fails(site: Path) -> None:
    done = python("-m", "kernel", "doctor", "--json")
    report = json.loads(done.stdout)
    states = {row["name"]: row["state"] for row in report["plugins"]}
    assert done.returncode == 1 and (states["faulty"], states["garden"]) == ("broken", "ready")
    assert [p for p in report["problems"] if "plugin faulty, module faulty_pkg.plugin: cannot be imported" in p]
    quick = json.loads(python("-m", "kernel", "doctor", "--json", "--no-load").stdout)
    assert {row["name"]: row["state"] for row in quick["plugins"]}["faulty"] == "ready"


def test_the_doctor_finds_what_fails_while_it_registers(site: Path) -> None:
    (site / "garden_pkg" / "plugin.py").write_text(
        "print('hello')\nfrom kernel import hookimpl\n@hookimpl\ndef register_commands(register):\n    import no_such_module\n")
    done = python("-m", "kernel", "doctor", "--json")
    assert [p for p in json.loads(done.stdout)["problems"] if "register_commands raised ModuleNotFoundError" in p]
    assert "hello" in done.stderr, "what a plugin prints is not in the report"


WITHOUT_MANAGER = pytest.mark.parametrize("blocked", [["manager"]], ids=["manager"])
"""Its list says more, and its tests are its own."""


@WITHOUT_MANAGER
def test_plugins_list_can_check_that_modules_load(site: Path, blocked: list[str], tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({"kernel": {"blocked": blocked}}))
    listing = ["-m", "kernel", "plugins", "list", "--json"]
    plain, checked = (python(*listing, *more, CLAUDE_CONFIG_DIR=str(tmp_path)) for more in ([], ["--check"]))
    assert {r["name"]: r["state"] for r in json.loads(plain.stdout)}["faulty"] == "ready" and plain.returncode == 0
    rows = {r["name"]: r for r in json.loads(checked.stdout)}
    assert checked.returncode == 1 and rows["faulty"]["state"] == "broken" and rows["garden"]["state"] == "ready"
    assert "cannot be imported" in rows["faulty"]["errors"][0]


@WITHOUT_MANAGER
def test_plugins_list_shows_the_events_that_a_plugin_answers(site: Path, blocked: list[str], tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({"kernel": {"blocked": blocked}}))
    plugin_folder(site / "garden_pkg", "garden", kernel={
        "implements": ["register_tools", "stop", "pre_tool_use"], "provides": {"tools": ["Dig"]}})
    plugin_folder(site / "faulty_pkg", "faulty", kernel={"implements": ["*"]})
    done = python("-m", "kernel", "plugins", "list", CLAUDE_CONFIG_DIR=str(tmp_path))
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    assert "tools: Dig, hooks: stop pre_tool_use" in lines["garden"] and "hooks: every event" in lines["faulty"]


def test_importing_the_kernel_costs_nothing() -> None:
    done = python("-c", "import sys, kernel; print(*sys.modules)")
    assert [m for m in done.stdout.split() if m.startswith(("kernel", "pluggy", "msgspec", "anyio"))] == ["kernel"]


def test_every_flag_has_a_place_in_the_options() -> None:
    for flag in FLAGS:
        assert flag.option.startswith("extra.") or flag.option in Options.__struct_fields__, flag
        assert flag.help and flag.names.split()[0] in help_text()


# -- commands ------------------------------------------------------------------------------------------------------------
def test_plugins_list_runs_no_plugin_code() -> None:
    shown, modules = modules_after("plugins", "list", "--json")
    rows = json.loads(shown)
    assert rows == sorted(rows, key=lambda r: r["name"])
    assert set(rows[0]) >= {"name", "version", "state", "source", "path", "description", "hooks", "provides", "capabilities",
                            "errors", "warnings"}
    packages = {f"kernel_{r['name'].replace('-', '_')}" for r in rows} - {"kernel_manager"}  # its list says more than ours
    assert modules & packages == set()
    assert [m for m in modules if m.startswith("kernel_") and m.split(".")[0] != "kernel_manager"] == []


def test_plugins_list_says_what_is_wrong(tmp_path: Path, capsys: Any) -> None:
    good = plugin_folder(tmp_path / "good", "good-one", kernel={"provides": {"tools": ["T"]}})
    assert main(["plugins", "list", "--plugin-dir", str(good), "--block", "permissions"]) == 0
    out = capsys.readouterr().out
    assert "good-one" in out and "tools: T" in out and "blocked by name" in out
    bad = tmp_path / "bad"
    plugin_folder(bad, "bad-one", {".claude-plugin/plugin.json": "{"})
    assert main(["plugin", "list", "--plugin-dir", str(good), "--plugin-dir", str(bad)]) == 1
    assert "is not valid JSON" in capsys.readouterr().out


def test_a_typer_application_comes_to_an_exit_code(capsys: Any) -> None:
    import typer

    from kernel import KernelError, run_app

    app = typer.Typer(add_completion=False)

    @app.command()
    def things(code: int = 0, broken: bool = False) -> int:
        if broken:
            raise KernelError("broken")
        if code == 7:
            raise typer.Exit(code)
        return code

    assert [run_app(app, args, "kernel things") for args in ([], ["--code", "5"], ["--code", "7"], ["--help"])] == [0, 5, 7, 0]
    assert "Usage: kernel things" in capsys.readouterr().out
    assert run_app(app, ["--bad"], "kernel things") == 2
    assert "--bad" in capsys.readouterr().err
    with pytest.raises(KernelError):
        run_app(app, ["--broken"], "kernel things")


def test_a_function_is_a_command_once_it_is_run(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel import TyperCommand

    (tmp_path / "my_actions.py").write_text("def count(upto: int) -> int:\n    return upto\n\n\n"
                                            "def told() -> None:\n    'Says more than the summary.'\n")
    command = TyperCommand("things count", "count things", "my_actions:count")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert command.summary == "count things" and "my_actions" not in sys.modules
    assert [command.run(args) for args in (["3"], ["many"], ["--help"])] == [3, 2, 0]
    said = capsys.readouterr()
    assert "Usage: kernel things count" in said.out and "Count things." in said.out and "upto" in said.err
    assert TyperCommand("things", "things", "my_actions:told").run(["--help"]) == 0
    assert "Says more than the summary." in capsys.readouterr().out


def test_wrong_usage_of_a_command_is_exit_2(capsys: Any) -> None:
    assert main(["plugins", "list", "--nothing"]) == 2
    assert main(["plugins", "nothing"]) == 2
    assert main(["doctor", "--nothing"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_doctor_as_json(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_PROVIDER", "script")
    code = main(["doctor", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert set(report) >= {"version", "contract", "python", "config_dir", "trusted", "settings", "plugins", "problems"}
    assert code == (1 if report["problems"] else 0)


def test_doctor_survives_settings_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text("{")
    assert main(["doctor"]) == 1
    assert "settings.json: is not valid JSON" in capsys.readouterr().out


# -- commands of plugins ----------------------------------------------------------------------------------------------------
COMMAND = """
from kernel import UsageError, hookimpl
class Hello:
    name, summary = "hello", "say hello"
    def run(self, args):
        if args == ["wrong"]:
            raise UsageError("not like that", hint="say hello nicely")
        print("hello", *args)
        return 7
@hookimpl
def register_commands(register): register(Hello())
"""


@pytest.mark.parametrize(("code", "args", "exit_code", "says"), [
    (COMMAND, ["you"], 7, "hello you"), (COMMAND, ["wrong"], 1, "Error: not like that (say hello nicely)"),
    ("1 / 0\n", [], 1, "plugin greeter: does not bring the command 'hello'"),
    (COMMAND.replace("register(Hello())", "pass"), [], 1, "does not bring the command 'hello': not registered")])
def test_a_plugin_can_bring_a_command(code: str, args: list[str], exit_code: int, says: str, tmp_path: Path) -> None:
    plugin_folder(tmp_path / "greeter_pkg", "greeter", {"__init__.py": "", "plugin.py": code},
                  kernel={"implements": ["register_commands"], "provides": {"commands": ["hello"]}})
    info = tmp_path / "greeter-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[kernel.plugins]\ngreeter = greeter_pkg.plugin\n")
    done = python("-m", "kernel", "hello", *args, PYTHONPATH=str(tmp_path))
    assert done.returncode == exit_code and says in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


# -- exit codes ---------------------------------------------------------------------------------------------------------------
def test_our_own_bug_is_exit_3_with_a_log(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(run, "main", lambda args: 1 / 0)
    assert main(["-p", "hi"]) == 3
    err = capsys.readouterr().err
    assert "an unexpected fault of kernel (ZeroDivisionError" in err and "Traceback" not in err
    log = Path(err.strip().rsplit("details are in ", 1)[1])
    assert "Traceback" in log.read_text()
    log.unlink()


def test_an_interrupt_is_exit_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(args: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "main", interrupted)
    assert main(["-p", "hi"]) == 130


def test_a_closed_pipe_is_no_traceback() -> None:
    done = subprocess.run(f"{sys.executable} -m kernel --help | head -1", shell=True, capture_output=True, text=True,
                          timeout=60, check=False)
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


def test_no_arguments_and_no_input_is_a_line_and_no_fault() -> None:
    done = subprocess.run([sys.executable, "-m", "kernel"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 1 and done.stderr.startswith("Error: Input must be provided"), done.stderr
