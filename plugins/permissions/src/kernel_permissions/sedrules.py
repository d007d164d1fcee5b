"""Whether a call of sed does more than print and edit: its commands ``w`` and ``e`` write other files and run programs."""

from __future__ import annotations

import re

from .scripts import sed_only_prints
from .syntax import Word, literal_word

_FLAGS = re.compile(r"-[nErsuz]*(?:(?P<e>e)(?P<script>.*)|(?P<l>l)(?P<width>[0-9]*)|i.*)?", re.DOTALL)
_LONG = re.compile(r"--(?:quiet|silent|regexp-extended|separate|null-data|posix|unbuffered|line-length=[0-9]+|in-place(?:=.*)?)",
                   re.DOTALL)


def does_more(words: list[Word]) -> bool:
    """Whether a sed with these arguments may do more. What is not understood may.

    A rule such as ``Bash(sed *)`` is meant for printing and editing, and approves nothing else.
    """
    scripts: list[Word] = []
    operands: list[Word] = []
    rest = iter(words)
    for word in rest:
        text = word.value
        if word.dynamic or word.brace or not text.startswith("-") or text == "-":
            operands.append(word)
        elif text == "--":
            operands += rest
        elif text.startswith("--expression"):
            name, equals, script = text.partition("=")
            if name != "--expression":
                return True
            scripts.append(literal_word(script, quoted=True) if equals else next(rest, literal_word("e")))
        elif text.startswith("--"):
            if not _LONG.fullmatch(text):
                return True
        else:
            match = _FLAGS.fullmatch(text)
            if match is None:
                return True
            if match["e"]:
                scripts.append(literal_word(match["script"], quoted=True) if match["script"] else next(rest, literal_word("e")))
            elif match["l"] and not match["width"]:
                next(rest, None)
    scripts = scripts or operands[:1]
    return any(w.dynamic or w.brace or w.glob or not sed_only_prints(w.value) for w in scripts)
