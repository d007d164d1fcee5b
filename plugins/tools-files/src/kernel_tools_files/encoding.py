"""How a file's bytes are text: encoding and byte order mark, kept when the file is written back (tools contract, 3.2 and 4.1)."""

from __future__ import annotations

import codecs
from typing import NamedTuple

from kernel import ToolError


class Encoding(NamedTuple):
    """A codec and the byte order mark that stands before the text."""

    codec: str = "utf-8"
    mark: bytes = b""

    @property
    def note(self) -> str:
        """What the model should know about it; empty for UTF-8."""
        if self.codec == "latin-1":
            return "The file is not valid UTF-8; its bytes are shown as Latin-1."
        return f"The file is {self.codec.upper()} with a byte order mark." if self.codec.startswith("utf-16") else ""


UTF8 = Encoding()
LATIN1 = Encoding("latin-1")


def candidates(head: bytes) -> list[Encoding]:
    """Encodings to try in turn, from the first four bytes. Latin-1 accepts anything, so it comes last."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return []
    if head.startswith(codecs.BOM_UTF16_LE):
        return [Encoding("utf-16-le", codecs.BOM_UTF16_LE)]
    if head.startswith(codecs.BOM_UTF16_BE):
        return [Encoding("utf-16-be", codecs.BOM_UTF16_BE)]
    if head.startswith(codecs.BOM_UTF8):
        return [Encoding("utf-8", codecs.BOM_UTF8), LATIN1]
    return [UTF8, LATIN1]


def decode(data: bytes, path: str) -> tuple[str, Encoding]:
    """The text of a whole file.

    :raises ToolError: ``binary_file``.
    """
    for encoding in candidates(data[:4]):
        try:
            text = data[len(encoding.mark):].decode(encoding.codec)
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            break
        return text, encoding
    raise binary(path)


def encode(text: str, encoding: Encoding, field: str) -> bytes:
    """The bytes of a whole file.

    :raises ToolError: ``encoding``: the text has a character that the file's encoding has no bytes for.
    """
    try:
        return encoding.mark + text.encode(encoding.codec)
    except UnicodeEncodeError as error:
        number = ord(text[error.start])
        if 0xD800 <= number <= 0xDFFF:
            raise ToolError("invalid_arguments", f"{field}: holds half of a surrogate pair (U+{number:04X}), which no text file "
                            "can hold") from None
        raise ToolError("encoding", f"The file is {encoding.codec}, which has no bytes for {chr(number)!r} (U+{number:04X}). "
                        "Convert the file to UTF-8 first, for example with iconv in Bash, or use other characters.") from None


def binary(path: str) -> ToolError:
    return ToolError("binary_file", f"{path} is a binary file, which Read cannot show and Edit cannot change. Shown are text, "
                     "PNG, JPEG, GIF and WebP images, PDF and notebooks. Use a program through Bash (`file`, `xxd`, `strings`).")
