"""What the model gets of an output (tools contract, 10.3)."""

from __future__ import annotations

import re
from typing import Any

from kernel import Block, env_number
from kernel_tools_shell.sink import Sink

INLINE_CHARS = 30_000
FAILURE_CHARS = 10_000
PREVIEW_CHARS = 2_000
SAVED_BYTES = 64 * 1024 * 1024
_WINDOW = 1 << 18  # bytes of each end of a large output that a failure may show
_IMAGE_CHARS = 5_000_000  # base64; larger ones are refused by the API
NOTHING = "(Bash completed with no output)"

_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|[PX^_][^\x1b]*\x1b\\"  # DCS, SOS, PM, APC
    r"|[ -/]*[0-~])?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_IMAGE = re.compile(r"data:(image/(?:png|jpeg|gif|webp));base64,([A-Za-z0-9+/\s]+=*\s*)")
_MAGIC = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}


def read_back() -> int:
    """Characters that are read back from an output: ``BASH_MAX_OUTPUT_LENGTH``, at most 150,000."""
    return min(env_number("BASH_MAX_OUTPUT_LENGTH", INLINE_CHARS), 150_000)


def clean(data: bytes) -> str:
    """Text for a model: replacement characters for what is no UTF-8, no NUL, no escape sequences, no blank end."""
    text = data.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return _CONTROL.sub("", text).replace("\r\n", "\n").rstrip()


def whole(sink: Sink) -> str:
    """The output, as far as it is ever saved."""
    return clean(sink.head(SAVED_BYTES))


def shortened(sink: Sink, limit: int = FAILURE_CHARS) -> str:
    """The output if it is no longer than the limit, else its head and its tail, together about as long."""
    if sink.size <= 2 * _WINDOW:
        text = clean(sink.head(2 * _WINDOW))
        if len(text) <= limit:
            return text
        start, end, left = text[:limit // 2], text[-(limit // 2):], f"{len(text) - limit} characters"
    else:
        start = clean(sink.head(_WINDOW))[:limit // 2]
        end = clean(sink.tail(_WINDOW))[-(limit // 2):]
        left = f"about {sink.size - limit} bytes"
    return f"{start}\n\n... [{left} left out] ...\n\n{end}"


def image(text: str) -> Block | None:
    """The image block of an output that is one image as a data URL, and nothing else."""
    if not text.startswith("data:image/") or len(text) > _IMAGE_CHARS:
        return None
    import base64
    import binascii

    found = _IMAGE.fullmatch(text.strip())
    if not found:
        return None
    data = "".join(found[2].split())
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not raw.startswith(_MAGIC[found[1]]):
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": found[1], "data": data}}


def render(structured: dict[str, Any]) -> str | list[Block]:
    """What the model sees of an output object, also of one that a hook rewrote."""
    stdout, stderr = str(structured.get("stdout") or ""), str(structured.get("stderr") or "")
    parts = [stdout] if stdout else []
    if path := structured.get("persistedOutputPath"):
        size = f"{structured.get('persistedOutputSize', 0):,} bytes"
        parts = [f"The output is too large to be shown ({size}). It is saved in {path}; read the parts you need with Read, or "
                 f"search it with Grep. It begins:\n\n{stdout[:PREVIEW_CHARS]}\n..."]
    if interpretation := structured.get("returnCodeInterpretation"):
        parts.append(f"(exit code 1: {interpretation})")
    if structured.get("interrupted"):
        parts.append("(The command was interrupted before it ended.)")
    parts += [text for text in (stderr, structured.get("backgroundCwdHint")) if text]
    if structured.get("isImage") and (block := image(stdout)):
        return [block, *({"type": "text", "text": text} for text in parts[1:])]
    return "\n".join(parts) or NOTHING
