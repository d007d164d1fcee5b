"""``kernel -p``: flags -> options -> harness -> front end."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from kernel.cli.flags import FLAGS, parser
from kernel.errors import UsageError
from kernel.harness import Harness
from kernel.options import Options, here

FORMATS = {"output_format": ("text", "json", "stream-json"), "input_format": ("text", "stream-json")}
EFFORTS = ("low", "medium", "high", "xhigh", "max")


def main(args: list[str]) -> int:
    harness = harness_from(args)
    options = harness.options
    if "rewind_files" in options.extra:
        return _rewind(harness, options.extra["rewind_files"])
    name = options.front_end or (options.output_format if options.print_mode else "terminal")
    front_end = harness.one("front_ends", name)
    if front_end is None:
        if name == "terminal":
            from kernel.cli.flags import help_text

            print(help_text())
            return 0
        plugin = harness.plugins.provider("front_ends", name)
        why = f"the plugin {plugin.name!r} is {plugin.state}: {'; '.join(plugin.errors)}" if plugin else "install kernel-headless"
        raise UsageError(f"no plugin provides the front end {name!r}", hint=why)
    import anyio

    return int(anyio.run(front_end.run, harness))


def harness_from(args: list[str], cwd: Path | None = None) -> Harness:
    """The harness that a command line describes; nothing is opened yet.

    :param cwd: an absolute path that relative ones count from and the run works in; the process's by default.
    :raises KernelError: the command line, the settings or a plugin that a flag needs cannot be used.
    """
    harness = Harness(parse(args, cwd))
    _require_plugins(harness, args)
    _debug_log(harness)
    return harness


def _rewind(harness: Harness, message_id: str) -> int:
    """``--rewind-files``: no prompt, no hooks, no model; the session is opened for its checkpoints only."""
    if not harness.options.resume:
        raise UsageError("--rewind-files needs --resume ID")
    transcript = harness.open_transcript(harness.options)
    rewind = getattr(transcript, "rewind_files", None)
    try:
        if rewind is None:
            raise UsageError("File rewinding is not enabled", hint="the store of this session keeps no checkpoints")
        done = rewind(message_id)
    finally:
        transcript.close()
    for text in [*harness.announced, *transcript.problems]:
        print(f"Warning: {text}", file=sys.stderr)
    changed = done.get("filesChanged", [])
    print("\n".join([f"Files are as they were at {message_id}: {len(changed)} changed.", *changed]))
    for problem in done.get("failed", []):
        print(f"Error: {problem}", file=sys.stderr)
    return 1 if done.get("failed") else 0


def parse(args: list[str], cwd: Path | None = None) -> Options:
    """Options from the command line.

    :raises UsageError: an unknown flag, a value that does not fit, flags that exclude each other.
    """
    args = [f"{a}=" if a in ("--debug", "--attach") else a for a in args]
    known, rest = parser().parse_known_args(args)
    words = _words(rest, args)
    given = {k: v for k, v in vars(known).items() if v is not None}
    extra = {k.removeprefix("extra."): v for k, v in given.items() if k.startswith("extra.")}
    fields: dict[str, Any] = {k: v for k, v in given.items() if not k.startswith("extra.")}
    fields["prompt"] = words[0] if words else None
    print_mode = bool(given.get("print_mode")) or not sys.stdout.isatty() or not sys.stdin.isatty()
    fields["print_mode"] = print_mode
    if words and not given.get("print_mode"):
        _no_mistyped_command(words[0])
    fields["cwd"] = cwd = cwd or here()
    _convert(fields, extra, cwd)
    _check(fields, extra, print_mode)
    return Options(**fields, extra=extra)


def _words(rest: list[str], args: list[str]) -> list[str]:
    behind = args[args.index("--") + 1:] if "--" in args else []
    unknown = [a for a in rest if a.startswith("-") and a not in behind and a not in ("-", "--")]
    first = args[0] if args and args[0].replace("-", "").isalnum() and not args[0].startswith("-") else ""
    command = f"; if {first!r} was meant as a command: no plugin that is installed brings it" if first and first in rest else ""
    if unknown:
        from difflib import get_close_matches

        near = get_close_matches(unknown[0].split("=")[0], [n for f in FLAGS for n in f.names.split()], n=1)
        hint = f"did you mean {near[0]}?" if near else "kernel --help lists the flags"
        raise UsageError(f"unknown flag {unknown[0]}", hint=hint + command)
    words = [a for a in rest if a != "--"]
    if len(words) > 1:
        raise UsageError(f"more than one prompt: {words[0][:40]!r} and {words[1][:40]!r}",
                         hint=f"put the prompt in quotes{command}")
    return words


def _no_mistyped_command(word: str) -> None:
    from difflib import get_close_matches

    from kernel.cli.commands import summaries
    from kernel.cli.table import COMMANDS

    near = get_close_matches(word, [*COMMANDS, *summaries()], n=1, cutoff=0.7)
    if near and " " not in word:
        raise UsageError(f"unknown command {word!r}", hint=f"did you mean 'kernel {near[0]}'? A prompt needs -p")


def _convert(fields: dict[str, Any], extra: dict[str, Any], cwd: Path) -> None:
    for name, file in (("system_prompt", "system_prompt_file"), ("append_system_prompt", "append_system_prompt_file")):
        if file in extra:
            if name in fields:
                raise UsageError(f"--{name.replace('_', '-')} and --{file.replace('_', '-')} exclude each other")
            path = cwd / extra.pop(file)
            try:
                fields[name] = path.read_text("utf-8", "replace")
            except OSError as error:
                raise UsageError(f"--{file.replace('_', '-')} {path}: {error.strerror}") from None
    if "tools" in fields:
        names = fields["tools"].replace(",", " ").split()
        fields["tools"] = None if names == ["default"] else names
    if "betas" in fields:
        fields["betas"] = [b.strip() for b in fields["betas"].split(",") if b.strip()]
    if "setting_sources" in fields:
        fields["setting_sources"] = tuple(s.strip() for s in fields["setting_sources"].split(",") if s.strip())
    for name in ("add_dirs", "plugin_dirs"):
        if name in fields:
            fields[name] = [cwd / Path(p).expanduser() for p in fields[name]]
    harness = fields.get("harness") or os.environ.get("KERNEL_HARNESS")
    fields["harness"] = cwd / Path(harness).expanduser() if harness else None
    if extra.pop("skip_permissions", None):
        fields["permission_mode"] = "bypassPermissions"
    if extra.pop("no_persistence", None):
        fields["persist"] = False
    for switch, trigger in (("init", "init"), ("init_only", "init"), ("maintenance", "maintenance")):
        if extra.get(switch):
            fields["setup_trigger"] = trigger
    turns = os.environ.get("CLAUDE_CODE_MAX_TURNS", "")
    if "max_turns" not in fields and turns.isdecimal() and int(turns):
        fields["max_turns"] = int(turns)
    effort = os.environ.get("CLAUDE_CODE_EFFORT_LEVEL")
    if effort in EFFORTS:
        fields["effort"] = effort


def _check(fields: dict[str, Any], extra: dict[str, Any], print_mode: bool) -> None:
    for name, allowed in FORMATS.items():
        if fields.get(name, allowed[0]) not in allowed:
            raise UsageError(f"--{name.replace('_', '-')} {fields[name]}: expected one of {', '.join(allowed)}")
    if fields.get("effort") is not None and fields["effort"] not in EFFORTS:
        raise UsageError(f"--effort {fields['effort']}: expected one of {', '.join(EFFORTS)}")
    if fields.get("thinking") not in (None, "adaptive", "disabled"):
        raise UsageError(f"--thinking {fields['thinking']}: expected adaptive or disabled")
    if extra.get("thinking_display") not in (None, "summarized", "omitted"):
        raise UsageError(f"--thinking-display {extra['thinking_display']}: expected summarized or omitted")
    if fields.get("max_turns") is not None and fields["max_turns"] < 1:
        raise UsageError("--max-turns must be a positive integer")
    if fields.get("max_budget_usd") is not None and not fields["max_budget_usd"] > 0:  # nan is no limit either
        raise UsageError("--max-budget-usd must be a positive number")
    for source in fields.get("setting_sources", ()):
        if source not in ("user", "project", "local"):
            raise UsageError(f"--setting-sources: unknown source {source!r}", hint="user, project, local")
    for flag, name in (("--add-dir", "add_dirs"), ("--plugin-dir", "plugin_dirs")):
        for path in fields.get(name, ()):
            if not path.is_dir():
                raise UsageError(f"{flag} {path}: is no directory")
    if print_mode and fields.get("output_format") == "stream-json" and not fields.get("verbose"):
        raise UsageError("When using --print, --output-format=stream-json requires --verbose")
    streaming = fields.get("output_format") == "stream-json"
    for name in ("include_partial_messages", "include_hook_events"):
        if fields.get(name) and not streaming:
            raise UsageError(f"--{name.replace('_', '-')} needs --output-format stream-json")
    if fields.get("replay_user_messages") and not (streaming and fields.get("input_format") == "stream-json"):
        raise UsageError("--replay-user-messages needs --input-format and --output-format stream-json")
    if fields.get("resume") == "" and print_mode:
        raise UsageError("--resume needs a session id or name in print mode")
    if fields.get("fork_session") and not (fields.get("resume") or fields.get("continue_session")):
        raise UsageError("--fork-session needs --resume or --continue")


def _require_plugins(harness: Harness, args: list[str]) -> None:
    """A flag whose plugin is not there is refused: a switch without effect would be a silent lie."""
    typed = {a.split("=", 1)[0] for a in args}
    for flag in FLAGS:
        if flag.needs and typed.intersection(flag.names.split()):
            plugin = harness.plugins.get(flag.needs)
            if plugin is None or plugin.state != "ready":
                state = "not installed" if plugin is None else plugin.state
                raise UsageError(f"{flag.names.split()[0]} needs the plugin {flag.needs!r}, which is {state}")
    if harness.settings.managed("disableSideloadFlags") is True:
        typed |= {"--harness"} if harness.lock else set()
        refused = typed & {"--plugin-dir", "--agents", "--mcp-config", "--harness"}
        if refused:
            raise UsageError(f"{min(refused)} is switched off by managed settings (disableSideloadFlags)")


def _debug_log(harness: Harness) -> None:
    extra = harness.options.extra
    if "debug_file" in extra:
        number = os.open(harness.options.cwd / extra["debug_file"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        log = open(number, "a", encoding="utf-8", errors="replace", buffering=1)  # noqa: SIM115  # lives as long as the run
        harness.debug_sink = lambda text: print(text, file=log)
    elif "debug" in extra:
        harness.debug_sink = lambda text: print(f"[debug] {text}", file=sys.stderr)


