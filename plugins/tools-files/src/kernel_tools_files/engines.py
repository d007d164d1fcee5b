"""What does the searching: the program ``rg``, or a script of ours that writes the same form (tools contract, section 9).

Both are given the folder as working directory and name files relative to it, ``./a/b``, followed by a NUL byte. Lines are
``NUMBER:TEXT`` for matches and ``NUMBER-TEXT`` for lines around them; groups are parted by ``--``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

from kernel_tools_files.walk import VERSION_CONTROL

COLUMN_BYTES = 2_000
"""Lines are cut by the engine, so that a file of one huge line cannot fill the memory; 500 characters of any script fit in."""
FALLBACK = "(The program rg is missing, so Python's regular expressions were used, slower and without \\p{...} classes.)"


class Engine(NamedTuple):
    """A command to run; ``stdin`` is what it is told there, ``note`` what the model should know about it."""

    command: list[str]
    stdin: bytes = b""
    note: str = ""


def engine_for(input: dict[str, Any], entry: str) -> Engine:
    """The engine for one call.

    :param entry: what is searched, relative to the working directory: ``./`` or ``./NAME``.
    """
    program = find_rg()
    if program:
        return Engine([program, *_arguments(input), "--", entry])
    script = Path(__file__).with_name("pysearch.py")
    return Engine([sys.executable, "-I", str(script)], json.dumps({**input, "entry": entry}).encode(), FALLBACK)


def find_rg() -> str | None:
    """``rg`` beside the interpreter, where the distribution ripgrep puts it, then on the search path."""
    beside = shutil.which("rg", path=os.path.dirname(sys.executable))
    return beside or shutil.which("rg")


def _arguments(input: dict[str, Any]) -> list[str]:
    mode = input.get("output_mode", "files_with_matches")
    out = ["--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename", "--null", "--hidden", "--crlf",
           "--no-require-git", "--sortr=modified"]
    if mode == "content":
        out += [f"--max-columns={COLUMN_BYTES}", "--max-columns-preview",
                "--line-number" if input.get("-n", True) else "--no-line-number"]
        out += [f"{flag}{input[flag]}" for flag in ("-A", "-B") if flag in input]
        around = input.get("-C", input.get("context"))
        out += [f"-C{around}"] if around is not None else []
        out += ["--only-matching"] if input.get("-o") else []
    else:
        out.append("--count" if mode == "count" else "--files-with-matches")
    out += ["--ignore-case"] if input.get("-i") else []
    out += ["--multiline", "--multiline-dotall"] if input.get("multiline") else []
    out += [f"--type={input['type']}"] if "type" in input else []
    out += [f"--glob={input['glob']}"] if "glob" in input else []
    out += [f"--glob=!{folder}" for folder in sorted(VERSION_CONTROL)]  # the last glob that matches counts
    return [*out, f"--regexp={input['pattern']}"]
