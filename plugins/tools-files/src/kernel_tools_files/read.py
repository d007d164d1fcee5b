"""The tool ``Read`` (tools contract, section 4)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

import anyio

from kernel import Block, ReadState, ToolContext, ToolError, ToolResult, text_block
from kernel_tools_files import manuals, schemas
from kernel_tools_files.pages import CHARS_PER_TOKEN, Page, numbered, read_page, token_limit
from kernel_tools_files.paths import FileTool, Target, open_file
from kernel_tools_files.rules import ReadRules, missing
from kernel_tools_files.seen import digest, state_of

UNLIMITED = 1 << 40


class Found(NamedTuple):
    """What Read made of a file. ``notes`` stand behind the content; ``state`` is the new read-file state, if there is one."""

    structured: dict[str, Any]
    state: ReadState | None
    notes: list[str]
    partial: bool = False


class Read(FileTool):
    name = "Read"
    aliases = ("View",)
    description = "Reads a file: text with line numbers, images, PDF files, notebooks."
    input_schema = schemas.READ
    output_schema = schemas.READ_OUTPUT
    rule_field = "file_path"
    max_result_chars = UNLIMITED  # it has a limit of its own; a result moved to a file would only be read again

    def prompt(self) -> str:
        return manuals.READ

    def is_read_only(self, input: dict[str, Any]) -> bool:
        return True

    def repair_input(self, input: dict[str, Any]) -> dict[str, Any]:
        input = super().repair_input(input)
        return {key: value for key, value in input.items() if key != "allow_large"}  # known to later models, no effect here

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        target = self.target(input)
        try:
            found = await anyio.to_thread.run_sync(_read, target, input, state_of(context, target), abandon_on_cancel=True)
            if isinstance(found, str):  # a PDF file whose pages are to be rendered by a program
                from kernel_tools_files.pdf_pages import render

                return await render(target, input["pages"], context.session)
        except FileNotFoundError:
            raise await missing(target, context, ReadRules(context, self)) from None
        if found.state is not None:
            context.read_files[target.real] = found.state
        content = self.from_structured(found.structured)
        notes = "\n".join(found.notes)
        if notes:
            content = f"{content}\n\n{notes}".lstrip() if isinstance(content, str) else [*content, text_block(notes)]
        return ToolResult(content=content, structured=found.structured, truncated=found.partial,
                          status="partial" if found.partial else "success")

    def from_structured(self, structured: Any) -> str | list[Block]:
        file = structured["file"]
        kind = structured["type"]
        if kind == "text":
            lines = file["content"].removesuffix("\n").split("\n") if file["content"] else []
            return numbered(lines, file["startLine"])
        if kind == "image":
            return [_image(file["type"], file["base64"])]
        if kind == "pdf":
            return [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": file["base64"]}}]
        if kind == "notebook":
            from kernel_tools_files.notebooks import as_text

            return [text_block(piece) if isinstance(piece, str) else _image(piece["mediaType"], piece["base64"])
                    for piece in as_text(file["cells"])]
        if kind == "parts":
            return f"{file['count']} pages of {file['filePath']} are in {file['outputDir']} as images."
        return f"{file['filePath']} has not changed since you read it; its content stands in the earlier result."


def _image(media_type: str, data: str) -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


# -- in a thread --------------------------------------------------------------------------------------------------------
def _read(target: Target, input: dict[str, Any], state: ReadState | None) -> Found | str:
    from kernel_tools_files import images, pdf

    file, stat = open_file(target)
    with file:
        head = file.read(16)
        file.seek(0)
        if kind := images.media_type(head):
            found = _whole(file, stat, state, target, lambda data: _image_file(data, kind, target))
        elif pdf.is_pdf(head):
            if input.get("pages"):
                return "pages"
            found = _whole(file, stat, state, target, lambda data: _pdf_file(data, target))
        elif input.get("pages"):
            raise ToolError("invalid_arguments", f"pages: only for PDF files; {target.shown} is none. Use offset and limit.")
        elif target.path.lower().endswith(".ipynb"):
            found = _whole(file, stat, state, target, lambda data: _notebook_file(data, target))
        else:
            found = _text_file(file, stat, state, target, input)
    return found


def _unchanged(target: Target) -> Found:
    return Found({"type": "file_unchanged", "file": {"filePath": target.shown}}, None, [])


def _text_file(file: BinaryIO, stat: os.stat_result, state: ReadState | None, target: Target, input: dict[str, Any]) -> Found:
    explicit = "offset" in input or "limit" in input
    page = read_page(file, target.shown, start=max(1, input.get("offset", 1)), limit=input.get("limit"), explicit=explicit,
                     max_chars=token_limit() * CHARS_PER_TOKEN, check=anyio.from_thread.check_cancelled)
    new = ReadState(mtime_ns=stat.st_mtime_ns, size=stat.st_size, digest=page.digest, start=page.start, end=page.end,
                    partial=page.capped)
    if state is not None and page.lines and _same(state, new):
        return _unchanged(target)
    structured = {"type": "text", "file": {"filePath": target.shown, "content": page.content, "numLines": len(page.lines),
                                           "startLine": page.start, "totalLines": page.total}}
    if page.capped:
        structured["file"]["truncatedByTokenCap"] = True  # type: ignore[index]
    seen = new if page.lines or page.total == 0 else None  # a range behind the end shows nothing
    return Found(structured, seen, _notes(page, target), page.capped)


def _same(old: ReadState, new: ReadState) -> bool:
    """The same lines, which Read has put into the conversation before, of the same content."""
    content = old.digest == new.digest if new.digest else (old.mtime_ns, old.size) == (new.mtime_ns, new.size)
    return content and old.start is not None and (old.start, old.end, old.partial) == (new.start, new.end, new.partial)


def _notes(page: Page, target: Target) -> list[str]:
    if page.total == 0:
        return [f"{target.shown} exists, but it is empty."]
    if not page.lines:
        return [f"{target.shown} has {page.total} lines; offset {page.start} is behind its end."]
    notes = []
    if page.capped:
        notes.append(f"PARTIAL view: lines {page.start} to {page.end} of {page.total}. The file is longer than one call may "
                     f"show (about {token_limit()} tokens). Go on with offset={page.end + 1} and a limit, or find the place "
                     "with Grep.")
    if page.cut:
        notes.append(f"({page.cut} of these lines are longer than 2,000 characters and were cut.)")
    if page.encoding.note:
        notes.append(f"({page.encoding.note})")
    return notes


def _whole(file: BinaryIO, stat: os.stat_result, state: ReadState | None, target: Target,
           make: Callable[[bytes], dict[str, Any]]) -> Found:
    """A file that is shown as a whole; ``start`` 1 without an ``end`` says so in its state."""
    from kernel_tools_files.notebooks import MAX_BYTES

    if stat.st_size > MAX_BYTES:
        raise ToolError("too_large", f"{target.shown} has {stat.st_size} bytes; the limit is {MAX_BYTES}. Take a part of it "
                        "through Bash, for example with `jq '.cells[0:5]'` for a notebook, or `pdftotext` for a PDF file.")
    data = file.read()
    new = ReadState(mtime_ns=stat.st_mtime_ns, size=stat.st_size, digest=digest(data), start=1)
    if state is not None and _same(state, new):
        return _unchanged(target)
    return Found(make(data), new, [])


def _image_file(data: bytes, kind: str, target: Target) -> dict[str, Any]:
    from base64 import b64encode

    from kernel_tools_files.images import prepared

    image = prepared(data, kind, target.shown)
    file: dict[str, Any] = {"base64": b64encode(image.data).decode(), "type": image.media_type, "originalSize": len(data)}
    if image.dimensions:
        file["dimensions"] = image.dimensions
    return {"type": "image", "file": file}


def _pdf_file(data: bytes, target: Target) -> dict[str, Any]:
    from base64 import b64encode

    from kernel_tools_files import pdf

    pages = pdf.checked(data, target.shown)
    if pages > pdf.MAX_PAGES:
        raise ToolError("too_large", f"{target.shown} has {pages} pages; up to {pdf.MAX_PAGES} are shown as a whole. Give "
                        f"pages, for example pages=\"1-5\", at most {pdf.MAX_PART} in one call.")
    if len(data) > pdf.MAX_BYTES:
        raise ToolError("too_large", f"{target.shown} has {len(data)} bytes; the limit for a PDF file is {pdf.MAX_BYTES}. Give "
                        "pages, for example pages=\"1\", or use `pdftotext` through Bash.")
    return {"type": "pdf", "file": {"filePath": target.shown, "base64": b64encode(data).decode(), "originalSize": len(data)}}


def _notebook_file(data: bytes, target: Target) -> dict[str, Any]:
    from kernel_tools_files import notebooks
    from kernel_tools_files.encoding import decode

    cells = notebooks.view(notebooks.parse(decode(data, target.shown)[0], target.shown))
    chars = sum(len(piece) for piece in notebooks.as_text(cells) if isinstance(piece, str))
    if chars > token_limit() * CHARS_PER_TOKEN:
        raise ToolError("too_large", f"The cells of {target.shown} have {chars} characters; the limit is {token_limit()} tokens "
                        f"({token_limit() * CHARS_PER_TOKEN} characters). Take a part through Bash, for example with "
                        f"`jq '.cells[0:5]' {target.shown}`.")
    return {"type": "notebook", "file": {"filePath": target.shown, "cells": cells}}
