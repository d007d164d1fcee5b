"""Lines of a text file for Read: a page or a range, in one pass and in little memory (tools contract, 4.1)."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from kernel import ToolError, env_number
from kernel_tools_files.encoding import Encoding, binary, candidates

CHUNK = 1 << 20
LINE_CHARS = 2_000
"""Longer lines are cut, with a mark."""
DEFAULT_TOKENS = 25_000
CHARS_PER_TOKEN = 4
"""A token is counted as four characters of what the model is shown, line numbers included. An estimate: no tokenizer runs."""
DIGEST_BYTES = 64 << 20
"""Above it a file's state goes by time and size; hashing would cost more than reading."""


def token_limit() -> int:
    """``CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS``, or 25,000."""
    return env_number("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", DEFAULT_TOKENS)


class Page(NamedTuple):
    """``lines`` without line ends, from line ``start`` of ``total``. ``capped``: the token limit ended the page.

    ``cut``: lines that were shortened. ``ended``: the last line has a line end. ``digest`` is empty for large files.
    """

    lines: list[str]
    start: int
    total: int
    capped: bool
    cut: int
    ended: bool
    encoding: Encoding
    digest: str

    @property
    def end(self) -> int:
        return self.start + len(self.lines) - 1

    @property
    def content(self) -> str:
        return "\n".join(self.lines) + ("\n" if self.lines and self.ended else "")


def numbered(lines: list[str], start: int) -> str:
    """What the model sees: number, tab, text."""
    return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, start))


def read_page(file: BinaryIO, path: str, *, start: int, limit: int | None, explicit: bool, max_chars: int,
              check: Callable[[], None]) -> Page:
    """Read a page.

    :param start: first line, from 1.
    :param limit: number of lines; ``None`` to the end.
    :param explicit: the caller named a range, so that a range over ``max_chars`` is an error instead of a first page.
    :param check: called once a mebibyte; raises where the call was cancelled.
    :raises ToolError: ``too_large``, ``binary_file``.
    """
    file.seek(0)
    for encoding in candidates(file.read(4)):
        file.seek(0)
        scan = _Scan(path, start, limit, explicit, max_chars)
        try:
            for text in _texts(file, path, encoding, scan, check):
                scan.feed(text)
        except UnicodeDecodeError:
            continue
        return scan.page(encoding)
    raise binary(path)


def _texts(file: BinaryIO, path: str, encoding: Encoding, scan: _Scan, check: Callable[[], None]) -> Iterator[str]:
    from hashlib import sha256  # loads OpenSSL

    decoder = codecs.getincrementaldecoder(encoding.codec)("strict")
    hashing = sha256()
    size = 0
    while chunk := file.read(CHUNK):
        check()
        if size <= DIGEST_BYTES:
            hashing.update(chunk)
        text = decoder.decode(chunk[len(encoding.mark):] if size == 0 else chunk)
        size += len(chunk)
        if "\0" in text:
            raise binary(path)
        yield text
    yield decoder.decode(b"", final=True)
    scan.digest = hashing.hexdigest() if size <= DIGEST_BYTES else ""


class _Scan:
    """Takes text piece by piece, keeps the wanted lines and counts the others. A long line is never held as a whole."""

    def __init__(self, path: str, start: int, limit: int | None, explicit: bool, max_chars: int) -> None:
        self.path, self.start, self.explicit, self.max_chars = path, start, explicit, max_chars
        self.stop = start + limit if limit is not None else None
        self.lines: list[str] = []
        self.number = 1      # of the line that is being read
        self.head = ""       # its first characters, while it is wanted
        self.length = 0      # all of its characters so far
        self.last = ""       # its last character so far
        self.chars = 0       # of the page
        self.cut = 0
        self.capped = False
        self.ended = True
        self.digest = ""

    def feed(self, text: str) -> None:
        at = 0
        if self.number < self.start:
            ends = text.count("\n")
            if self.number + ends < self.start:
                self._pass_over(text, 0, ends)
                return
            for _ in range(self.start - self.number):
                at = text.find("\n", at) + 1
            self.number, self.length = self.start, 0
        while self._wanted():
            end = text.find("\n", at)
            self._grow(text[at:end] if end >= 0 else text[at:])
            if end < 0:
                return
            self._finish(ended=True)
            at = end + 1
        self._pass_over(text, at, text.count("\n", at))

    def _wanted(self) -> bool:
        return not self.capped and self.number >= self.start and (self.stop is None or self.number < self.stop)

    def _pass_over(self, text: str, at: int, ends: int) -> None:
        self.number += ends
        self.length = len(text) - 1 - text.rfind("\n") if ends else self.length + len(text) - at

    def _grow(self, text: str) -> None:
        room = LINE_CHARS + 1 - len(self.head)  # one more, for the carriage return of a line that just fits
        self.head += text[:max(0, room)]
        self.length += len(text)
        self.last = text[-1:] or self.last

    def _finish(self, *, ended: bool) -> None:
        """The line is complete: keep it, or end the page before it."""
        line, length = self.head, self.length
        if ended and length and self.last == "\r":
            length -= 1
            line = line[:length]
        self.head, self.length = "", 0
        self.number += 1
        cut = length > LINE_CHARS
        if cut:
            line = f"{line[:LINE_CHARS]}… (line cut: {length} characters in all)"
        self.chars += len(str(self.number - 1)) + 1 + len(line) + (1 if self.lines else 0)
        if self.chars > self.max_chars and self.explicit:
            raise self._too_large()
        if self.chars > self.max_chars and self.lines:
            self.capped = True
            return
        self.lines.append(line)
        self.cut += cut
        self.ended = ended

    def _too_large(self) -> ToolError:
        fits = len(self.lines)
        advice = (f"Lines {self.start} to {self.start + fits - 1} fit: call again with limit={fits} or less." if fits
                  else f"Line {self.start} alone is too long: search in it with Grep.")
        return ToolError("too_large", f"The lines asked for from {self.path} are more than the limit of "
                         f"{self.max_chars // CHARS_PER_TOKEN} tokens, so nothing was read. {advice}")

    def page(self, encoding: Encoding) -> Page:
        if self.length:  # the last line of the file has no line end
            if self._wanted():
                self._finish(ended=False)
            else:
                self.number += 1
        return Page(self.lines, self.start, self.number - 1, self.capped, self.cut, self.ended, encoding, self.digest)
