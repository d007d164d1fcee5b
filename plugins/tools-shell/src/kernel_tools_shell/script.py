"""What the shell is given to run: the command, wrapped so that its last working directory is known."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel import env_switch

INLINE_BYTES = 100_000
"""Longer commands go through a file: the kernel takes 128 KiB per argument."""

CREDENTIALS = frozenset((
    "ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_CUSTOM_HEADERS CLAUDE_CODE_OAUTH_TOKEN OPENAI_API_KEY "
    "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_BEARER_TOKEN_BEDROCK GOOGLE_APPLICATION_CREDENTIALS "
    "AZURE_CLIENT_SECRET AZURE_OPENAI_API_KEY").split())
"""Taken away with ``CLAUDE_CODE_SUBPROCESS_ENV_SCRUB=1``."""


def find_shell() -> str:
    """The user's shell if it is bash or zsh, else bash, else sh."""
    for given in (os.environ.get("CLAUDE_CODE_SHELL"), os.environ.get("SHELL")):
        if given and Path(given).name in ("bash", "zsh") and (path := shutil.which(given)):
            return path
    return shutil.which("bash") or shutil.which("sh") or "/bin/sh"


def environment(session_environment: Mapping[str, str], session_id: str, effort: str | None) -> dict[str, str]:
    """The process's environment, the session's on top, and what tells a command where it runs (settings contract, 7.2)."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}  # ours alone (observability, 1)
    env |= session_environment
    env.pop("CLAUDE_ENV_FILE", None)  # for hooks only; here it is sourced
    if env_switch("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"):
        env = {name: value for name, value in env.items() if name not in CREDENTIALS}
    env |= {"CLAUDECODE": "1", "CLAUDE_CODE_CHILD_SESSION": "1", "CLAUDE_CODE_SESSION_ID": session_id,
            "CLAUDE_PID": str(os.getpid()), "GIT_EDITOR": "true"}
    if effort:
        env["CLAUDE_EFFORT"] = effort
    return env


def env_file(session_environment: Mapping[str, str]) -> list[str]:
    """The script of ``CLAUDE_ENV_FILE`` if it holds something: the session's, which begins with the launching user's."""
    file = session_environment.get("CLAUDE_ENV_FILE") or os.environ.get("CLAUDE_ENV_FILE")
    return [file] if file and os.path.isfile(file) and os.path.getsize(file) else []


def build(shell: str, command: str, *, cwd_file: Path, sources: Sequence[str | Path]) -> list[str]:
    """The argument list that runs the command.

    :param cwd_file: gets the working directory in which the command ended.
    :param sources: scripts that run before it, in the same shell; their stdout is dropped.

    How it works, and why so:

    - ``eval`` parses the command after aliases are known, and a syntax error in it stays its own.
    - All stands in one line, so that line numbers in messages are those of the command.
    - The directory is written when the shell exits, also by ``exit`` or ``set -e``. A command that sets traps of its own
      is followed by a second report (and does not tell its directory where it calls ``exit`` as well).
    - Reports redirect a group, so that neither ``set -x`` nor a vanished directory prints anything.
    """
    name = Path(shell).name
    pwd = "command pwd -P" if name == "sh" else "builtin pwd -P"
    target = f">| {shlex.quote(str(cwd_file))} 2>/dev/null"
    before = "".join(f". {shlex.quote(str(source))} >/dev/null; " for source in sources)
    text = command.encode("utf-8", "replace").decode()
    if len(text.encode()) > INLINE_BYTES:
        body = cwd_file.with_suffix(".sh")
        body.write_text(text, "utf-8")
        run = f". {shlex.quote(str(body))}"
    else:
        run = f"eval {shlex.quote(text) if name == 'sh' else _one_line(text)}"
    script = f"{before}trap {shlex.quote('{ ' + pwd + '; } ' + target)} EXIT; {run}"
    if "trap" in text:
        script += f"; {{ __status=$?; set +xv; {pwd}; }} {target}; exit $__status"
    prefix = os.environ.get("CLAUDE_CODE_SHELL_PREFIX", "").strip()
    return [shell, "-c", f"{prefix} {shlex.quote(script)}" if prefix else script, name]


def _one_line(text: str) -> str:
    """The text as one word without a line break, for bash and zsh."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"$'{escaped}'"
