"""What a server gives back, as the model sees it (MCP contract, section 5)."""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel import Block, ToolResult
from kernel_mcp.schemas import clean_text, mismatch

if TYPE_CHECKING:
    from kernel import Session

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
MAX_IMAGE_CHARS = 5 * 1024 * 1024
"""Base64 characters of an image that the model is sent; a larger one is saved."""
PREVIEW = 2_000
READ_HINT = "Read it in parts (Read with offset and limit), or search it with Grep; do not read it whole."


def tool_result(session: Session, call_id: str, server: str, result: Any, *, limit: int, warn: int,
                output_schema: Any = None) -> ToolResult:
    """A tool's result: content as blocks or text, cut to size, with the error flag.

    :param limit: characters of text that the model sees; what is longer goes to a file.
    :param warn: above it the person is told.
    """
    blocks: list[Block] = []
    texts: list[str] = []
    structured = result.structured_content
    marks = ""
    if structured is not None and not result.is_error:
        texts.append(json.dumps(structured, ensure_ascii=False))
        if wrong := mismatch(output_schema, structured):
            marks = f"\n(This result does not fit the tool's declared output schema: {wrong})"
            session.debug(f"mcp {server}: the structured result does not fit its schema: {wrong}")
    for number, item in enumerate(result.content):
        if item.type == "text":
            if structured is None or result.is_error:
                texts.append(item.text)
        elif (block := image_block(session, f"{call_id}-{number}", item)) is not None:
            blocks.append(block)
        else:
            texts.append(other_text(session, f"{call_id}-{number}", item))
    text = clean_text("\n".join(texts)) + marks
    text, path = fit(session, call_id, server, text, limit, warn)
    content: str | list[Block] = text if not blocks else [*([{"type": "text", "text": text}] if text else []), *blocks]
    more: dict[str, Any] = {"truncated": path is not None, "spill_path": path}
    if result.is_error:
        return ToolResult(content=content or "The tool reported an error without a text.", status="fatal_error",
                          error_code="mcp_tool_error", **more)
    return ToolResult(content=content or "(no output)", status="success" if content else "empty", **more)


def fit(session: Session, name: str, server: str, text: str, limit: int, warn: int) -> tuple[str, str | None]:
    """The text, or its beginning and the file that holds it all."""
    if len(text) <= limit:
        if len(text) > warn:
            session.notice(f"a result of the MCP server {server!r} is large: about {len(text) // 4:,} tokens", level="info")
        return text, None
    path, where = session.kept(name, text)
    lines = text.count("\n") + 1
    return (f"{text[:min(PREVIEW, limit)]}\n... (the result is too long: {len(text):,} characters in {lines:,} lines, the limit "
            f"is {limit:,}; the whole text {where}. {READ_HINT if path else ''})", path)


def image_block(session: Session, name: str, item: Any) -> Block | None:
    """An image that the model can look at; ``None`` for everything else."""
    if item.type != "image" or item.mime_type not in IMAGES or len(item.data) > MAX_IMAGE_CHARS:
        return None
    try:
        base64.b64decode(item.data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": item.mime_type, "data": item.data}}


def other_text(session: Session, name: str, item: Any) -> str:
    """Content that is no text, as text: links in words, bytes by the path they were saved under."""
    if item.type == "resource_link":
        about = ": ".join(t for t in (item.name, item.description) if t)
        return f"[Resource {item.uri} {about}]".replace(" ]", "]")
    if item.type == "resource":
        return contents_text(session, name, item.resource)
    if item.type in ("image", "audio"):
        return saved_text(session, name, item.data, item.mime_type)
    return f"[{item.type}]"


def contents_text(session: Session, name: str, contents: Any) -> str:
    """One part of a resource: its text, or where its bytes are."""
    text = getattr(contents, "text", None)
    if text is not None:
        return str(text)
    return saved_text(session, name, contents.blob, contents.mime_type)


def saved_text(session: Session, name: str, data: str, mime_type: str | None) -> str:
    try:
        path = save(session, name, data, mime_type)
    except (ValueError, OSError) as error:
        return f"[{mime_type or 'binary'} content that could not be saved: {error}]"
    return f"[{mime_type or 'binary'} content, saved to {path}]"


def save(session: Session, name: str, data: str, mime_type: str | None) -> str:
    """Write base64 content to a file of its own and return the path.

    :raises ValueError: the data is no base64.
    """
    try:
        raw = base64.b64decode(data, validate=True)
    except binascii.Error:
        raise ValueError("it is no base64") from None
    ending = mimetypes.guess_extension((mime_type or "").partition(";")[0].strip()) or ".bin"
    path = _folder(session) / f"{''.join(c if c.isalnum() or c in '-_' else '-' for c in name)[:100]}{ending}"
    path.write_bytes(raw)
    path.chmod(0o600)
    return str(path)


def _folder(session: Session) -> Path:
    if session.transcript.path and session.transcript.kept:
        folder = Path(session.transcript.path).with_suffix("") / "tool-results"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder
    if "mcp.files" not in session.plugin_state:
        from tempfile import mkdtemp

        session.plugin_state["mcp.files"] = mkdtemp(prefix="kernel-mcp-")
    return Path(session.plugin_state["mcp.files"])
