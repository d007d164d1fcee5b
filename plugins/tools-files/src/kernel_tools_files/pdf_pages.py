"""Single pages of a PDF file as images, by the program ``pdftoppm`` (tools contract, 4.2: ``parts``)."""

from __future__ import annotations

import os
import shutil
from base64 import b64encode
from pathlib import Path
from typing import Any

import anyio

from kernel import Block, Session, ToolError, ToolResult, text_block
from kernel_tools_files import pdf
from kernel_tools_files.paths import Target, open_file
from kernel_tools_files.programs import run_program

PROGRAM = "pdftoppm"
SECONDS = 60.0
DOTS_PER_INCH = 100


async def render(target: Target, pages: str, session: Session) -> ToolResult:
    """The pages as images in the result, and as files in a folder of the session.

    :raises ToolError: ``invalid_arguments``, ``unreadable``, ``unsupported`` without the program, ``timeout``.
    """
    data = await anyio.to_thread.run_sync(_load, target)
    count = pdf.checked(data, target.shown)
    first, last = pdf.wanted_pages(pages, count)
    program = shutil.which(PROGRAM)
    if program is None:
        whole = f" The document has {count} pages: call again without pages." if count <= pdf.MAX_PAGES else ""
        raise ToolError("unsupported", f"Single pages are rendered by the program {PROGRAM} (poppler-utils), which is not "
                        f"installed.{whole} Whole documents of up to 10 pages need none; for the text alone, use Bash.")
    folder = await anyio.to_thread.run_sync(_folder, session)
    command = [program, "-q", "-r", str(DOTS_PER_INCH), "-jpeg", "-f", str(first), "-l", str(last), "-",
               os.path.join(folder, "page")]
    ended = await run_program(command, lambda piece: True, seconds=SECONDS, cwd=folder, stdin=data)
    if ended.timed_out:
        raise ToolError("timeout", f"{PROGRAM} took longer than {SECONDS:g} seconds for pages {first}-{last} of {target.shown}.")
    made = await anyio.to_thread.run_sync(_pictures, folder)
    if ended.code or not made:
        raise ToolError("unreadable", f"{target.shown} cannot be rendered: {ended.stderr.strip()[:500] or 'no page came out'}")
    structured = {"type": "parts", "file": {"filePath": target.shown, "originalSize": len(data), "count": len(made),
                                            "outputDir": folder}}
    content: list[Block] = [text_block(f"Pages {first} to {last} of {count} of {target.shown}:"), *made]
    return ToolResult(content=content, structured=structured)


def _load(target: Target) -> bytes:
    file, _ = open_file(target)
    with file:
        return file.read()


def _folder(session: Session) -> str:
    from tempfile import mkdtemp

    return mkdtemp(prefix="pages-", dir=_session_folder(session))


def _session_folder(session: Session) -> str | None:
    """Beside the transcript, where there is one; else the system's folder for temporary files."""
    path: Any = session.transcript.path
    if not path or not session.options.persist:
        return None
    folder = Path(path).with_suffix("") / "tool-results"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return str(folder)


def _pictures(folder: str) -> list[Block]:
    blocks: list[Block] = []
    for file in sorted(Path(folder).glob("page*.jpg")):
        data = b64encode(file.read_bytes()).decode()
        blocks.append({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": data}})
    return blocks
