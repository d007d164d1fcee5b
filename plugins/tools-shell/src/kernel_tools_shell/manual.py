"""The manuals of the tools: when to use them, when not, and their limits."""

from __future__ import annotations

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000

BASH_MANUAL = """\
# Bash
Runs one command line in the user's shell (bash or zsh) and gives back stdout and stderr together.

- Each call is a new process. Only the working directory carries over, and only while it stays inside the project or a \
directory that was added to it; otherwise it is set back and the result says so. Prefer absolute paths to `cd`.
- Prefer Read, Grep, Glob, Edit and Write to cat, grep, find, sed and echo: their results are exact and need less approval.
- Quote paths that hold spaces. Join commands that depend on each other with `&&`. Send independent commands as separate \
calls in one message; plain reading commands then run side by side.
- There is no terminal and no input: a program that asks, or opens an editor or pager, does not work. Use its options for \
unattended use.
- `timeout` is in milliseconds (120000 by default, 600000 at most). A command that takes longer moves to the background \
and goes on; one that begins with `sleep`, runs git, or cannot be parsed is killed instead.
- For servers, watchers and long builds set `run_in_background`. You are told when the command ends, so do not poll and do \
not add `&`. Read its output file, or use TaskOutput; TaskStop ends it. What a session started ends with the session.
- Up to 30,000 characters of output are shown, of a failing command 10,000; larger output is saved to a file, and you get \
its path and its beginning.
- Exit code 1 of grep, rg, find, diff, test, git diff and git grep is a result, not a failure. Other codes than 0 are failures.
- Give `description` as five to ten plain words, so that a person who is asked can judge the command.
"""

OUTPUT_MANUAL = """\
# TaskOutput
Gives the status and output of a background task. Reading the task's output file with Read does the same and is preferred. \
With `block` (the default) it waits for the end, at most `timeout` milliseconds; with `block: false` it returns at once.
"""

STOP_MANUAL = """\
# TaskStop
Ends a background task and everything that it started.
"""
