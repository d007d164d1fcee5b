"""File commands: which of their words are files that they read or write (permissions contract, 5.8 and 7.2).

``uses`` reads generously, for deny and ask rules and protected paths: a word that may be a file is one. ``edits`` reads
strictly, for ``acceptEdits``: only flags that are listed, only words whose meaning is certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from .options import take_apart
from .scripts import sed_only_prints
from .syntax import Part, Word, literal_word
from .wrappers import git_plain

READS = frozenset((
    "cat head tail less more grep egrep fgrep rg sed awk gawk mawk cut sort wc diff cmp comm stat file xxd od hexdump strings "
    "base64 base32 nl tac rev uniq paste join column ls du find fd fdfind tree bat view zcat zgrep sha1sum sha256sum sha512sum "
    "md5sum cksum jq yq source . vi vim nano ed ex tar zip gzip gunzip bzip2 xz scp rsync iconv fold fmt pr expand unexpand "
    "shuf split csplit look readlink realpath").split())
"""Commands whose operands are files that they read; more than the contract's list, and only towards deny."""
WRITES = frozenset("touch rm rmdir mkdir unlink shred tee truncate chmod chown chgrp setfacl sponge".split())
MOVES = frozenset("mv cp install ln rsync scp".split())
_PATTERN_FIRST = frozenset("grep egrep fgrep rg sed awk gawk mawk zgrep fd fdfind jq yq".split())
_MODE_FIRST = frozenset("chmod chown chgrp setfacl".split())
_GIT_READS = frozenset("diff show log blame grep cat-file annotate difftool whatchanged archive".split())


_OUTPUTS = {"sort": ("-o", "--output"), "curl": ("-o", "--output"), "wget": ("-O", "--output-document"), "gcc": ("-o",),
            "cc": ("-o",), "tar": ("-f", "--file"), "openssl": ("-out",)}
"""Flags that name a file to be written."""


class Use(NamedTuple):
    """One file of a command. ``folder``: it is only meant where this word is a folder."""

    word: Word
    write: bool
    folder: Word | None = None


def uses(layer: list[Word]) -> Iterator[Use]:
    """The files of a command with these resolved words, as far as it is a file command."""
    name = layer[0].value
    if name == "dd":
        for word in layer[1:]:
            if word.value.startswith(("if=", "of=")):
                yield Use(_cut(word, 3), word.value.startswith("of="))
        return
    if name == "git":
        yield from _git(layer)
        return
    if name == "find" or name in _OUTPUTS:
        flags = ("-fprint", "-fprint0", "-fprintf", "-fls") if name == "find" else _OUTPUTS[name]
        for word, later in pairwise(layer):
            if word.value in flags:
                yield Use(later, True)
    if name not in READS and name not in WRITES and name not in MOVES:
        return
    in_place = name == "sed" and any(re.match(r"-[A-Za-z]*i|--in-p", w.value) for w in layer[1:])
    operands, glued = _operands(layer[1:])
    explicit = any(w.value in ("-e", "-f") or w.value.startswith(("--regexp", "--file", "--expression")) for w in layer[1:])
    if (name in _PATTERN_FIRST and not explicit) or name in _MODE_FIRST:
        operands = operands[1:]
    into = name in MOVES and any(re.match(r"-[A-Za-z]*t|--target-d", w.value) for w in layer[1:])
    for word in glued:  # sed -i.orig/* keeps copies there
        yield Use(word, name in WRITES or name in MOVES or in_place)
    if name in MOVES:
        yield from _moved(name, operands, [*operands, *glued] if into else operands[-1:])
        return
    for word in operands:
        yield Use(word, name in WRITES or in_place)
        if in_place:
            yield Use(word, False)


def _moved(name: str, operands: list[Word], targets: list[Word]) -> Iterator[Use]:
    """Sources and targets; what is put into a folder keeps its name there.

    :param targets: words that may be the target.
    """
    for word in operands:
        aimed = any(word is t for t in targets)
        yield Use(word, aimed or name == "mv")
        if not aimed or len(targets) > 1 or name == "ln":
            yield Use(word, False)
        for target in targets:
            if target is not word and word.literal is not None and target.literal is not None:
                kept = word.value.rstrip("/").rpartition("/")[2]
                yield Use(literal_word(f"{target.value}/{kept}", quoted=True), True, target)


def _git(layer: list[Word]) -> Iterator[Use]:
    """Files that git prints; a revision read as a file does no harm."""
    words = git_plain(layer) or layer
    if len(words) > 1 and words[1].value in _GIT_READS:
        for word in words[2:]:
            if not word.value.startswith("-") and not word.dynamic:
                yield Use(literal_word(word.value.rpartition(":")[2], quoted=not word.glob), False)


def _operands(words: list[Word]) -> tuple[list[Word], list[Word]]:
    """Words that are no flags, and what is glued to a flag behind ``=``."""
    operands: list[Word] = []
    glued: list[Word] = []
    ended = False
    for word in words:
        text = word.value
        if ended or not text.startswith("-") or text == "-":
            operands.append(word)
        elif text == "--":
            ended = True
        elif text.startswith("--") and "=" in text:
            glued.append(_cut(word, text.index("=") + 1))
        elif not text.startswith("--") and len(text) > 2 and (text[1] in "fot" or any(c in text for c in "./~")):
            glued.append(_cut(word, 2))
    return operands, glued


def _cut(word: Word, start: int) -> Word:
    """The word behind its first characters, with its variables kept."""
    parts: list[Part] = []
    for part in word.parts:
        text = part.text if part.kind in "uq" else part.raw
        if start >= len(text):
            start -= len(text)
        else:
            parts.append(part._replace(text=part.text[start:], raw=part.raw[start:]) if start else part)
            start = 0
    return Word("".join(p.raw for p in parts), tuple(parts)) if parts else literal_word("")


_EDITS = {
    "mkdir": "p v m: --parents --verbose --mode=",
    "touch": "a c m d: t: r@ --no-create --date= --reference@ --time=",
    "rm": "f i I r R d v --force --recursive --dir --verbose --one-file-system --interactive?",
    "rmdir": "p v --parents --verbose --ignore-fail-on-non-empty",
    "mv": "f i n u v T --force --interactive --no-clobber --update? --verbose --no-target-directory",
    "cp": "a d f i n p P r R u v T x --archive --force --interactive --no-clobber --no-dereference "
          "--preserve? --recursive --update? --verbose --no-target-directory --one-file-system",
}
_SED_EDITS = "i n E r e: s u z --in-place --expression= --quiet --silent --regexp-extended --separate --null-data --posix"


class Edit(NamedTuple):
    """What a file command would read and write.

    ``sources`` go into the last of ``writes`` where that is a folder; ``whole``: folders are copied with all they hold.
    """

    reads: list[Word]
    writes: list[Word]
    sources: list[Word]
    whole: bool = False


def edits(words: list[Word]) -> Edit | str:
    """The files of one of the seven commands that ``acceptEdits`` allows, or why it is not understood."""
    name = words[0].text
    flags = _SED_EDITS if name == "sed" else _EDITS.get(name)
    if flags is None or not words[0].plain:
        return f"{name[:60]!r} is not among the commands that acceptEdits allows"
    taken = take_apart(words[1:], flags)
    if isinstance(taken, str):
        return taken
    operands = list(taken.operands)
    if name == "sed":
        given = taken.flags & {"e", "--expression"}
        scripts, files = (list(taken.values), operands) if given else (operands[:1], operands[1:])
        if not scripts or not all(sed_only_prints(w.value) for w in scripts):
            return "its script is not known to only edit"
        return Edit(files, files if taken.flags & {"i", "--in-place"} else [], [])
    if not operands:
        return "it has no operand"
    if name in ("mv", "cp"):
        if len(operands) < 2:
            return "it has no target"
        *sources, target = operands
        whole = name == "cp" and bool(taken.flags & {"a", "r", "R", "--archive", "--recursive"})
        return Edit(sources, [*(sources if name == "mv" else []), target], sources, whole)
    return Edit(list(taken.files), operands, [])
