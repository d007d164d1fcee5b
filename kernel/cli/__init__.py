"""The ``kernel`` command. ``--version`` and ``--help`` import next to nothing; each command is imported when it is called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from kernel import CONTRACT, __version__
from kernel.cli.table import ALIASES, COMMANDS, OWN

if TYPE_CHECKING:
    from kernel.frontend import Command


def main(args: list[str] | None = None) -> int:
    """Run the command line and return the exit code; the console script passes it on."""
    if not _streams_are_open():
        return 1
    try:
        code = _main(sys.argv[1:] if args is None else args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _pipe_closed()
    except OSError as error:
        print(f"Error: stdout cannot be written: {error.strerror}", file=sys.stderr)
        return _pipe_closed()


def _streams_are_open() -> bool:
    """Whether stdin, stdout and stderr are there. A closed one is filled up, so that no other file gets its number."""
    import os

    closed = []
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            closed.append(os.open(os.devnull, os.O_RDWR))
    if 2 in closed:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  # for the life of the process
    if 1 in closed:
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        print("Error: stdout is closed, so there is nowhere to answer", file=sys.stderr)
    return 1 not in closed


def _main(args: list[str]) -> int:
    first = args[0] if args else ""
    if first in ("-v", "--version"):
        print(f"{CONTRACT} (kernel {__version__})")
        return 0
    if first in ("-h", "--help"):
        from kernel.cli.flags import help_text
        from kernel.discover import commands

        print(help_text(commands(sys.path)))
        return 0
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # it is not ignored, as in a script's background
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # until somebody listens: ends the process without a traceback
    return _call(_command, args)


def _command(args: list[str]) -> int:
    """Run what the first word or two name: a plugin's command (``plugins install``), ours, or else the whole line is a run."""
    name = ALIASES.get(args[0], args[0]) if args else ""
    if _is_word(name) and name != "run":
        names = [f"{name} {word}" for word in args[1:2] if _is_word(word)]  # the longer name is the more special one
        names += [] if name in COMMANDS else [name]
        if found := _of_a_plugin(names):
            return found[1].run(args[len(found[0].split()):])
        if name not in COMMANDS and args[1:] in ([], ["-h"], ["--help"]):
            from kernel.cli.commands import group_help

            if told := group_help(name):
                print(told)
                return 0 if args[1:] else 2
    if name in COMMANDS and name != "run":
        return int(import_module(COMMANDS[name][0]).main(args[1:]))
    if any(a.partition("=")[0] == "--attach" for a in args[:args.index("--") if "--" in args else None]):
        return _attached(args[1:] if name == "run" else args)
    _enter_harness(args)
    return int(import_module("kernel.cli.run").main(["-p", *args[1:]] if name == "run" else args))


def _attached(args: list[str]) -> int:
    """A run in another process: what a run needs is imported there, and here next to nothing (decision 35)."""
    from kernel.discover import scan
    from kernel.errors import UsageError

    found = next((f for f in scan(sys.path) if f.name == "serve"), None)
    if found is None:
        raise UsageError("--attach needs the plugin 'serve', which is not installed", hint="pip install kernel-serve")
    return int(import_module(f"{found.module.rpartition('.')[0]}.attach").main(args))


def _of_a_plugin(names: list[str]) -> tuple[str, Command] | None:
    """The command that a plugin brings. Where that plugin cannot be used, a command of ours takes its place and says so."""
    if not names:
        return None
    from kernel.cli.commands import plugin_command
    from kernel.errors import PluginError

    try:
        return plugin_command(names)
    except PluginError as error:
        if names[0] not in OWN:
            raise
        print(f"Warning: {error}", file=sys.stderr)
        return None


def _enter_harness(args: list[str]) -> None:
    """A locked harness brings what the kernel itself imports, too; so it comes before everything else."""
    import os

    given = os.environ.get("KERNEL_HARNESS", "")
    for flag, value in zip(args, [*args[1:], ""], strict=False):
        if flag == "--":
            break
        given = value if flag == "--harness" else flag.removeprefix("--harness=") if flag.startswith("--harness=") else given
    if given:
        from pathlib import Path

        from kernel.lock import enter

        enter(Path(given).expanduser(), alone=True)


def _is_word(text: str) -> bool:
    return text.replace("-", "").isalnum() and not text.startswith("-")


def _call(run: Callable[[list[str]], int], args: list[str]) -> int:
    """Call a command; an error that is meant for people is one line, anything else is ours and goes to a file."""
    from kernel.errors import KernelError

    try:
        return int(run(args))
    except KernelError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        raise
    except Exception as error:
        return _our_fault(error)


def _pipe_closed() -> int:
    """The reader of stdout is gone: no traceback, and nothing more is written when the interpreter ends."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 1


def _our_fault(error: Exception) -> int:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="kernel-crash-", suffix=".log", delete=False, encoding="utf-8") as log:
        traceback.print_exception(error, file=log)
    print(f"Error: an unexpected fault of kernel ({type(error).__name__}: {error}); details are in {log.name}", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())
