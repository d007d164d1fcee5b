"""Whether a text compiles as a JavaScript regular expression, checked with translation and not with Python's rules alone."""

from __future__ import annotations

import re
import warnings

MAX = 2000


def problem(pattern: str) -> str:
    """What keeps an expression from compiling under JavaScript's rules without flags; empty if nothing does."""
    if len(pattern) > MAX:
        return f"is longer than {MAX} characters"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(translated(pattern))  # both may raise
    except re.error as error:
        return str(error)
    except (RecursionError, OverflowError, ValueError) as error:
        return str(error)
    return ""


def translated(pattern: str) -> str:
    """The pattern for Python's engine: named groups and references, classes, literal braces and brackets."""
    out: list[str] = []
    at, inside = 0, False
    while at < len(pattern):
        char = pattern[at]
        two = pattern[at:at + 2]
        if char == "\\":
            name = re.match(r"\\k<([A-Za-z_$][\w$]*)>", pattern[at:])
            out.append(f"(?P={name[1]})" if name else two if len(two) == 2
                       and (two[1] in "dDwWsSbBnrtfv0xu\\" or not two[1].isalnum())
                       else re.escape(two[1]) if len(two) == 2 and two[1].isalpha() else two)
            at += len(name[0]) if name else 2
            continue
        if inside:
            out.append("\\[" if char == "[" else char)
            inside = char != "]"
        elif char == "[":
            inside = True
            if pattern[at:at + 2] == "[]":  # an empty class matches nothing
                out.append("(?!)")
                inside, at = False, at + 1
            elif pattern[at:at + 3] == "[^]":
                out.append("(?:.|\\n)")
                inside, at = False, at + 2
            else:
                out.append("[")
        elif re.match(r"\(\?<[A-Za-z_$]", pattern[at:]):
            out.append("(?P<")
            at += 3
            continue
        elif char == "{" and not re.match(r"\{\d+(?:,\d*)?\}", pattern[at:]):
            out.append("\\{")
        elif re.match(r"\(\?[#P]|\(\?[aiLmsux-]+[):]|\(\?\(", pattern[at:]):
            raise re.error("a group that JavaScript does not know")
        elif re.match(r"[*+?}]\+", pattern[at:]):
            raise re.error("a possessive quantifier, which JavaScript does not know")
        else:
            out.append(char)
        at += 1
    return "".join(out)
