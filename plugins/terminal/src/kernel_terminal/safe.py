"""Text that a stranger wrote (a model, a tool, a file, a server) as text that cannot steer the terminal.

Nothing that comes out of here holds a control character but the line end and the tab, or one that changes the order in which
text is read. ``exact`` shows such characters, and those that are seen as nothing, for what a person is about to allow;
``plain`` leaves out what only colours.
"""

from __future__ import annotations

import re

_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb]")
_SEQUENCE = re.compile("(?:\x1b\\[|\x9b)[0-9;:?<=>]*[ -/]*[@-~]"  # colours, cursor
                       "|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"  # titles, links
                       "|\x1b[()][0-9A-B]")  # character sets
_UNSEEN = re.compile("[\xad\u034f\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
                     "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000110bd\U000110cd\U00013430-\U0001343f"
                     "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]")
"""Format characters and others that take no room or look like a blank: a text may hold them between letters, unseen."""
TAB = "    "


def plain(text: object) -> str:
    """Lines of output: sequences for colours and titles are gone, other control characters are U+FFFD, tabs are blanks."""
    given = str(text)
    if given.isascii() and given.isprintable():
        return given
    given = _SEQUENCE.sub("", given.replace("\r\n", "\n"))
    return _STEERS.sub("\ufffd", given.replace("\r", "\n")).replace("\t", TAB)


def exact(text: object) -> str:
    """What will be executed, with nothing left out: each character that steers or cannot be seen is shown as its escape."""
    given = str(text)
    if not given.isascii():
        given = _UNSEEN.sub(lambda match: _escape(match[0]), given)
    return _STEERS.sub(lambda match: _escape(match[0]), given).replace("\t", TAB)


def exact_line(text: object) -> str:
    """``exact`` on one line."""
    return exact(text).replace("\n", "\\n")


def one_line(text: object, limit: int = 300) -> str:
    """``plain`` on one line, at most so many characters."""
    joined = " ".join(plain(str(text)[: 4 * limit]).split())
    return joined if len(joined) <= limit else f"{joined[: limit - 1]}…"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
