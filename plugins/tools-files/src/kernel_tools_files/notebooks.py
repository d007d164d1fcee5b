"""The notebook format: cells as the model sees them, and changes that leave the rest of the file as it is (nbformat 4)."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from kernel import ToolError
from kernel_tools_files.matching import only_returns, with_returns

OUTPUT_CHARS = 10_000
"""Longer outputs of a cell are cut."""
MAX_BYTES = 100_000_000
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LETTER_ESCAPE = re.compile(r"\\u(?!00[01])")
"""Control characters are always escaped in JSON; other characters where the writer chose so."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")

Notebook = dict[str, Any]
Cell = dict[str, Any]


def parse(text: str, path: str) -> Notebook:
    """:raises ToolError: ``invalid_notebook``."""
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ToolError("invalid_notebook", f"{path} is not a notebook: {error}. Repair its JSON with Edit on a copy, or through "
                        "Bash.") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(c, dict) for c in cells):
        raise ToolError("invalid_notebook", f"{path} is not a notebook of format 4: it has no list of cells.")
    made: Notebook = notebook
    return made


def serialise(notebook: Notebook, before: str) -> str:
    """JSON in the style of the text that it replaces: its indentation, its escapes, its line ends."""
    found = re.match(r"\{\r?\n([ \t]+)", before)
    indent = found[1] if found else None
    compact = (",", ":") if not indent and '": ' not in before else None
    escaped = before.isascii() and _LETTER_ESCAPE.search(before) is not None
    text = json.dumps(notebook, ensure_ascii=escaped, indent=indent, separators=compact)
    if only_returns(before):
        text = with_returns(text)
    return text + before[len(before.rstrip("\r\n")):]


def text_of(source: Any) -> str:
    """Sources and outputs are a text or a list of lines."""
    if isinstance(source, list):
        return "".join(str(part) for part in source)
    return source if isinstance(source, str) else ""


def language(notebook: Notebook) -> str:
    metadata = notebook.get("metadata")
    for key, field in (("language_info", "name"), ("kernelspec", "language")):
        part = metadata.get(key) if isinstance(metadata, dict) else None
        if isinstance(part, dict) and isinstance(part.get(field), str):
            return str(part[field])
    return "python"


def cell_id(cell: Cell, number: int) -> str:
    """The cell's own id, or ``cell-N`` in notebooks without."""
    return cell["id"] if isinstance(cell.get("id"), str) and cell["id"] else f"cell-{number}"


def index_of(notebook: Notebook, wanted: str, path: str) -> int:
    """The place of a cell.

    :raises ToolError: ``not_found``, with the ids that there are.
    """
    cells = notebook["cells"]
    for number, cell in enumerate(cells):
        if cell_id(cell, number) == wanted:
            return number
    counted = re.fullmatch(r"cell-(\d{1,9})", wanted)
    if counted and int(counted[1]) < len(cells):
        return int(counted[1])
    ids = [cell_id(cell, number) for number, cell in enumerate(cells)]
    shown = ", ".join(ids[:20]) + (" ..." if len(ids) > 20 else "")
    raise ToolError("not_found", f"{path} has no cell {wanted!r}. Its cells are: {shown or 'none'}.")


# -- reading --------------------------------------------------------------------------------------------------------------
def view(notebook: Notebook) -> list[dict[str, Any]]:
    """The cells as the structured result has them: ``cellId``, ``cellType``, ``source``, and of code cells ``language``,
    ``executionCount`` and ``outputs`` with ``outputType``, ``text`` and ``image {mediaType, base64}``."""
    out = []
    for number, cell in enumerate(notebook["cells"]):
        kind = str(cell.get("cell_type"))
        shown: dict[str, Any] = {"cellId": cell_id(cell, number), "cellType": kind, "source": text_of(cell.get("source"))}
        if kind == "code":
            outputs = cell.get("outputs")
            shown["language"] = language(notebook)
            if isinstance(cell.get("execution_count"), int):
                shown["executionCount"] = cell["execution_count"]
            if isinstance(outputs, list) and outputs:
                shown["outputs"] = [_output(o) for o in outputs if isinstance(o, dict)]
        out.append(shown)
    return out


def _output(output: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"outputType": str(output.get("output_type"))}
    data = output.get("data")
    data = data if isinstance(data, dict) else {}
    if shown["outputType"] == "stream":
        text = text_of(output.get("text"))
    elif shown["outputType"] == "error":
        trace = output.get("traceback")
        lines = [str(line) for line in trace] if isinstance(trace, list) else []
        text = "\n".join(lines) or f"{output.get('ename')}: {output.get('evalue')}"
    else:
        text = text_of(data.get("text/plain"))
    text = _ESCAPES.sub("", text)
    if len(text) > OUTPUT_CHARS:
        text = f"{text[:OUTPUT_CHARS]}… (output cut: {len(text)} characters in all)"
    if text:
        shown["text"] = text
    for kind in IMAGES:
        if image := "".join(text_of(data.get(kind)).split()):
            shown["image"] = {"mediaType": kind, "base64": image}
            break
    return shown


def as_text(cells: list[dict[str, Any]]) -> list[str | dict[str, Any]]:
    """What the model sees: pieces of text, and between them the images."""
    pieces: list[str | dict[str, Any]] = []
    lines: list[str] = []
    for cell in cells:
        count = f' execution_count="{cell["executionCount"]}"' if "executionCount" in cell else ""
        head = f'<cell id="{cell.get("cellId")}" type="{cell.get("cellType")}"{count}>'
        lines += [head, str(cell.get("source", "")), "</cell>"]
        for output in cell.get("outputs", ()):
            if "text" in output:
                lines += [f'<output type="{output.get("outputType")}">', output["text"].rstrip("\n"), "</output>"]
            if "image" in output:
                pieces += ["\n".join(lines), output["image"]]
                lines = []
    if lines:
        pieces.append("\n".join(lines))
    return pieces


# -- changing -------------------------------------------------------------------------------------------------------------
def set_source(cell: Cell, source: str) -> None:
    """Keeps the cell's own form: a list of lines or one text. Code loses what its old source had put out."""
    cell["source"] = source if isinstance(cell.get("source"), str) else source.splitlines(keepends=True)
    if cell.get("cell_type") == "code":
        cell["outputs"] = []
        cell["execution_count"] = None


def set_type(cell: Cell, kind: str) -> None:
    if cell.get("cell_type") == kind:
        return
    cell["cell_type"] = kind
    if kind == "code":
        cell.update(execution_count=None, outputs=[])
    else:
        cell.pop("outputs", None)
        cell.pop("execution_count", None)


def new_cell(notebook: Notebook, kind: str, source: str) -> Cell:
    """A cell in the form of the notebook's others; with an id where the format knows ids (from 4.5)."""
    whole = any(isinstance(c.get("source"), str) for c in notebook["cells"])
    cell: Cell = {"cell_type": kind, "metadata": {}, "source": source if whole else source.splitlines(keepends=True)}
    if kind == "code":
        cell = {"cell_type": kind, "execution_count": None, "metadata": {}, "outputs": [], "source": cell["source"]}
    minor = notebook.get("nbformat_minor")
    if notebook.get("nbformat") == 4 and isinstance(minor, int) and minor >= 5:
        taken = {c.get("id") for c in notebook["cells"]}
        while (made := os.urandom(4).hex()) in taken:
            pass
        cell = {"cell_type": kind, **({"execution_count": None} if kind == "code" else {}), "id": made,
                **{k: v for k, v in cell.items() if k not in ("cell_type", "execution_count")}}
    return cell
