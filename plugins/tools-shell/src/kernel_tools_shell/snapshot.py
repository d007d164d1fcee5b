"""Aliases, functions and options of the user's start-up file, captured once per session (tools contract, 10.1).

The shell reads its start-up file as it would for a person: most such files do nothing in a shell that is not
interactive. There is no terminal, and a time limit; whatever goes wrong, commands run without the snapshot.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SECONDS = 5.0
MAX_BYTES = 4_000_000
_START = "__kernel_snapshot_starts__"
_OPTIONS = ("braceexpand", "noclobber", "noglob", "nounset", "pipefail")
_EMIT = {
    # Functions of one leading underscore are completions: many, large, and of no use to a command.
    "bash": f"""echo {_START}
        for f in $(builtin declare -F | while read -r _ _ n; do case $n in _[!_]*) ;; *) echo "$n";; esac; done); do
            builtin declare -f "$f"; done
        builtin alias -p
        builtin shopt -p | while read -r line; do
            case $line in *login_shell|*restricted_shell|*expand_aliases) ;; *) echo "$line";; esac; done
        for o in {' '.join(_OPTIONS)}; do builtin shopt -qo $o && echo "set -o $o"; done
        echo 'shopt -s expand_aliases'""",
    "zsh": f"""echo {_START}
        for f in ${{(k)functions}}; do case $f in _[^_]*) ;; *) builtin functions -- $f;; esac; done
        builtin alias -L
        for o in $(builtin setopt); do case $o in
            interactive|monitor|zle|shinstdin|login|privileged|restricted|singlecommand) ;;
            noexec|xtrace|verbose|errexit|errreturn) ;;
            *) echo "setopt $o";; esac; done""",
}
_FILES = {"bash": ".bashrc", "zsh": ".zshrc"}


async def take(shell: str, env: Mapping[str, str], target: Path, mark: str) -> str:
    """Write the snapshot to the target. What went wrong, in words; empty where it worked or there is nothing to capture."""
    import anyio

    from kernel_tools_shell.command import Command
    from kernel_tools_shell.processes import end
    from kernel_tools_shell.sink import Sink

    name = Path(shell).name
    home = (env.get("ZDOTDIR") if name == "zsh" else None) or env.get("HOME") or "~"
    start_up = Path(home, _FILES.get(name, "")).expanduser()
    if name not in _EMIT or not start_up.is_file():
        return ""
    try:
        command = Command([shell, "-i", "-c", f"exec 2>/dev/null; {_EMIT[name]}"], cwd=os.path.expanduser("~"), env=env,
                          sink=Sink(target.with_suffix(".tmp")), mark=mark)
    except OSError as error:
        return f"{shell} cannot be started: {error.strerror}"
    with anyio.move_on_after(SECONDS):
        await command.wait()
    with anyio.CancelScope(shield=True):  # whatever the start-up file left running goes with it
        await anyio.to_thread.run_sync(end, [command])
    found = command.sink.head(MAX_BYTES).decode("utf-8", "replace").rpartition(f"{_START}\n")
    command.sink.close(remove=True)
    if command.exit_code != 0 or not found[1]:
        return f"{start_up} could not be captured within {SECONDS:g} s; commands run without its aliases and functions"
    target.write_text(found[2], "utf-8")
    return ""
