"""PDF files for the model: whole up to 10 pages, single pages as images (tools contract, 4.2).

Pages are counted without a PDF library: the page tree's ``/Count``, read from the plain objects and from the compressed object
streams. Single pages are rendered by ``pdftoppm`` (poppler), where that program is installed.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from itertools import islice

from kernel import ToolError

MAX_PAGES = 10
"""Of a document that is shown as a whole."""
MAX_PART = 20
"""Pages in one call with ``pages``."""
MAX_BYTES = 20_000_000
"""The Messages API takes requests of 32 MB; base64 adds a third."""
INFLATED = 64 << 20
"""Bytes of compressed objects that are looked at in all."""

NODES = 10_000
"""Nodes of the page tree that are looked at in all."""
REACH = 200_000
"""Bytes around a node's type that its dictionary may take."""

_STREAM = re.compile(rb"\bstream\r?\n")
_NODE = re.compile(rb"/Type\s*/Pages\b")
_COUNT = re.compile(rb"/Count\s+(\d{1,7})\b")
_PAGE = re.compile(rb"/Type\s*/Page\b(?!s)")
_RANGE = re.compile(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?")


def is_pdf(head: bytes) -> bool:
    return head.startswith(b"%PDF-")


def checked(data: bytes, path: str) -> int:
    """The number of pages.

    :raises ToolError: ``unreadable`` for a protected or broken file.
    """
    if re.search(rb"/Encrypt\s+\d+\s+\d+\s+R", data):
        raise ToolError("unreadable", f"{path} is protected, so its pages cannot be shown. Ask for a copy without a password.")
    pages = page_count(data)
    if not pages or b"%%EOF" not in data[-2048:]:
        raise ToolError("unreadable", f"{path} is broken or of an unusual form: its pages cannot be counted. Shown are PDF "
                        "files with a page tree; try `pdftotext` through Bash.")
    return pages


def page_count(data: bytes) -> int:
    """The largest count of a page tree's node, which is the root's; else the number of page objects; else 0."""
    counts, pages = [0], 0
    for part in _objects(data):
        for node in islice(_NODE.finditer(part), NODES):
            counts += [int(count) for count in _COUNT.findall(_dictionary(part, node.start()))]
        pages += len(_PAGE.findall(part))
    return max(counts) or pages


def _dictionary(part: bytes, at: int) -> bytes:
    """The innermost ``<< ... >>`` around a place."""
    start, floor, depth = at, max(0, at - REACH), 0
    while True:
        opens, closes = part.rfind(b"<<", floor, start), part.rfind(b">>", floor, start)
        if opens < 0:
            return b""
        start = max(opens, closes)
        if opens > closes and depth == 0:
            break
        depth += -1 if opens > closes else 1
    end, ceiling, depth = at, at + REACH, 0
    while True:
        opens, closes = part.find(b"<<", end, ceiling), part.find(b">>", end, ceiling)
        if closes < 0:
            return b""
        if 0 <= opens < closes:
            depth, end = depth + 1, opens + 2
        elif depth:
            depth, end = depth - 1, closes + 2
        else:
            return part[start:closes]


def _objects(data: bytes) -> Iterator[bytes]:
    """The file's plain bytes, then its object streams, inflated."""
    yield data
    left = INFLATED
    for found in _STREAM.finditer(data):
        head = data[max(0, found.start() - 1000):found.start()].rpartition(b"obj")[2]
        if b"/ObjStm" not in head or b"/FlateDecode" not in head:
            continue
        try:
            part = zlib.decompressobj().decompress(data[found.end():], left)
        except zlib.error:
            continue
        left -= len(part)
        yield part
        if left <= 0:
            return


def wanted_pages(pages: str, count: int) -> tuple[int, int]:
    """First and last page of ``3`` or ``1-5``.

    :raises ToolError: ``invalid_arguments``.
    """
    found = _RANGE.fullmatch(pages)
    first = int(found[1]) if found else 0
    last = int(found[2] or first) if found else 0
    if not 1 <= first <= last:
        raise ToolError("invalid_arguments", f"pages: expected a page or a range such as 3 or 1-5, received {pages[:50]!r}")
    if first > count:
        raise ToolError("invalid_arguments", f"pages: the document has {count} pages, received {pages.strip()}")
    last = min(last, count)
    if last - first >= MAX_PART:
        raise ToolError("invalid_arguments", f"pages: at most {MAX_PART} pages in one call, received {last - first + 1}")
    return first, last
