"""Images for the model: recognised by content, passed on within its limits (tools contract, 4.2)."""

from __future__ import annotations

import struct
from importlib import import_module
from typing import Any, NamedTuple

from kernel import ToolError

MAX_BYTES = 3_750_000
"""Of the file; 5 MB as base64, the Messages API's limit for one image."""
MAX_SIDE = 8_000
"""Pixels; the API refuses larger images."""
GOOD_BYTES = 500_000
"""Above it an image is made smaller, where Pillow is installed."""
GOOD_SIDE = 2_000
QUALITIES = (85, 70, 55, 40)


class Image(NamedTuple):
    """Bytes as they go to the model. ``original``: width and height of the file, ``None`` where they are not known."""

    data: bytes
    media_type: str
    original: tuple[int, int] | None
    shown: tuple[int, int] | None

    @property
    def dimensions(self) -> dict[str, int]:
        sizes = {"original": self.original, "display": self.shown}
        return {f"{kind}{side}": size[at] for kind, size in sizes.items() if size for at, side in enumerate(("Width", "Height"))}


def media_type(head: bytes) -> str | None:
    """The image type by the first bytes of the file; the name does not count."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def prepared(data: bytes, kind: str, path: str) -> Image:
    """The image within the limits: as it is, or made smaller by Pillow.

    :raises ToolError: ``too_large`` without Pillow, ``unreadable`` for a broken image. Nothing is shown then.
    """
    size = dimensions(data, kind)
    if size == (0, 0):
        raise ToolError("unreadable", f"{path} is a broken image: it has no pixels.")
    fits = len(data) <= MAX_BYTES and (size is None or max(size) <= MAX_SIDE)
    if len(data) <= GOOD_BYTES and (size is None or max(size) <= GOOD_SIDE):
        return Image(data, kind, size, size)
    smaller = _smaller(data, path)
    if smaller is not None:
        return smaller
    if fits:
        return Image(data, kind, size, size)
    told = f", {size[0]} x {size[1]} pixels" if size else ""
    raise ToolError("too_large", f"{path} has {len(data)} bytes{told}; the limits are {MAX_BYTES} bytes and {MAX_SIDE} pixels on "
                    "a side. Make a smaller copy through Bash, for example with `convert IN -resize 1600x1600 OUT.jpg`.")


def _smaller(data: bytes, path: str) -> Image | None:
    """The image at most 2,000 pixels on a side, as JPEG where it is still large; ``None`` without Pillow."""
    try:
        pillow: Any = import_module("PIL.Image")  # optional, and slow to import
    except ImportError:
        return None
    from io import BytesIO

    try:
        with pillow.open(BytesIO(data)) as image:
            original = image.size
            image.load()
            image.thumbnail((GOOD_SIDE, GOOD_SIDE))
            best, kind = _saved(image, "PNG"), "image/png"
            if len(best) > GOOD_BYTES:
                flat = _flat(image, pillow)
                kind = "image/jpeg"
                for quality in QUALITIES:
                    best = _saved(flat, "JPEG", quality=quality)
                    if len(best) <= GOOD_BYTES:
                        break
            return Image(best, kind, original, image.size)
    except Exception as error:  # Pillow raises many kinds for broken files, and for bombs
        raise ToolError("unreadable", f"{path} cannot be shown as an image: {type(error).__name__}: {error}") from None


def _saved(image: Any, kind: str, **options: Any) -> bytes:
    from io import BytesIO

    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def _flat(image: Any, pillow: Any) -> Any:
    """Without transparency, which JPEG has not: laid on white."""
    if image.mode not in ("RGBA", "LA", "P"):
        return image.convert("RGB")
    rgba = image.convert("RGBA")
    flat = pillow.new("RGB", rgba.size, "white")
    flat.paste(rgba, mask=rgba.getchannel("A"))
    return flat


def dimensions(data: bytes, kind: str) -> tuple[int, int] | None:
    """Width and height from the header; ``None`` where the header is not understood."""
    try:
        return {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg, "image/webp": _webp}[kind](data)
    except (struct.error, IndexError):
        return None


def _png(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while True:
        while data[at] != 0xFF:
            at += 1
        while data[at] == 0xFF:
            at += 1
        marker = data[at]
        at += 1
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame header
            height, width = struct.unpack_from(">HH", data, at + 3)
            return width, height
        if marker == 0xD9:
            return None
        if marker != 0x01 and not 0xD0 <= marker <= 0xD8:
            at += struct.unpack_from(">H", data, at)[0]


def _webp(data: bytes) -> tuple[int, int] | None:
    form = data[12:16]
    if len(data) < 30:
        return None
    if form == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if form == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None
