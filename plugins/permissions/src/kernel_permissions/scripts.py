"""Which sed and awk programs only print. A small grammar for each; what does not fit is not read-only.

All repetition is possessive, so that no program can make matching slow. A ``[...]`` in a regular expression is read as a
whole and may not hold the delimiter: programs differ on whether it would end the expression.
"""

from __future__ import annotations

import re
import sys

PROVED = sys.version_info >= (3, 11, 5)
"""Older Pythons read possessive repetition wrongly and take programs that do not fit; there every program is asked about."""

_CLASS = r"\[\^?+(?:\[:[a-z]++:\]|[^\]\[\\\n/])++\]"
_REGEX = rf"/(?:[^/\\\n\[]|\\[^\n]|{_CLASS})*+/"
_ADDRESS = rf"(?:[0-9]++(?:~[0-9]++)?+|\$|{_REGEX}I?+)"
_OTHER_CLASS = r"\[\^?+(?:\[:[a-z]++:\]|(?!(?P=d))[^\]\[\\\n])++\]"
_SED_COMMAND = re.compile(
    rf"\s*+(?:{_ADDRESS}\s*+(?:,\s*+[+~]?+{_ADDRESS}\s*+)?+)?+!?+\s*+"
    rf"(?:s(?P<d>[/|,#@!:%])(?:(?!(?P=d))[^\\\n\[]|\\[^\n]|{_OTHER_CLASS})*+(?P=d)(?:(?!(?P=d))[^\\\n]|\\[^\n])*+(?P=d)[gpiI0-9]*+"
    r"|y/(?:[^/\\\n]|\\[^\n])*+/(?:[^/\\\n]|\\[^\n])*+/"
    r"|[pdqQ=lnNgGhHxDP])?+\s*+")
"""One command: an address, then printing, deleting, moving between spaces, ``s`` with harmless flags, ``y``. Not ``w``, ``e``,
``r``, ``W``, ``R``, ``F``, ``i``, ``a``, ``c``, labels or blocks."""


def sed_only_prints(script: str) -> bool:
    if not PROVED or len(script) > 1_000:
        return False
    position = 0
    while True:
        match = _SED_COMMAND.match(script, position)
        if match is None:
            return False
        position = match.end()
        if position == len(script):
            return True
        if script[position] not in ";\n":
            return False
        position += 1


_VALUE = r"(?:\$(?:[0-9]++|NF)|\$\(NF-[0-9]++\)|NR|NF|FNR|[0-9]++|\"[^\"\\\n]*+\")"
_PATTERN = rf"(?:!?+{_REGEX}|{_VALUE}\s*+(?:(?:==|!=|<=|>=|<|>)\s*+{_VALUE}|!?~\s*+{_REGEX}))"
_AWK = re.compile(
    rf"\s*+(?:{_PATTERN}(?:\s*+(?:&&|\|\|)\s*+{_PATTERN})*+\s*+)?+"
    rf"(?:\{{\s*+print(?:\s++{_VALUE}(?:(?:\s*+,\s*+|\s++|(?=[\"$])){_VALUE})*+)?+\s*+(?:;\s*+(?:exit\s*+;?+\s*+)?+)?+\}})?+\s*+")
"""A pattern, then ``print`` with fields, counters, numbers and strings: no call, no pipe, no file, no assignment."""


def awk_only_prints(program: str) -> bool:
    return PROVED and len(program) <= 1_000 and bool(program.strip()) and _AWK.fullmatch(program) is not None
