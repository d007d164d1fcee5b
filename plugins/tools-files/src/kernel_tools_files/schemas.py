"""The input and output schemas of the six tools (tools contract, sections 4 to 9). Data only; output fields are camel case
but for NotebookEdit, whose documented names are not."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def _object(required: list[str], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _shape(required: list[str], **properties: Schema) -> Schema:
    """An output object: further keys are allowed, so that a hook's rewrite may add some."""
    return {"type": "object", "properties": properties, "required": required}


def _text(description: str = "") -> Schema:
    return {"type": "string", "description": description} if description else {"type": "string"}


def _whole(description: str = "", minimum: int = 0) -> Schema:
    return {"type": "integer", "minimum": minimum, **({"description": description} if description else {})}


def _flag(description: str = "") -> Schema:
    return {"type": "boolean", "description": description} if description else {"type": "boolean"}


def _choice(*values: str, description: str = "") -> Schema:
    return {"type": "string", "enum": list(values), **({"description": description} if description else {})}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_FILE_PATH = _text("The file; absolute, or relative to the working directory")
_COUNT = _whole()
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_PATCH = _list(_shape(
    ["oldStart", "oldLines", "newStart", "newLines", "lines"],
    oldStart=_COUNT, oldLines=_COUNT, newStart=_COUNT, newLines=_COUNT, lines=_list(_text())))


# -- inputs ---------------------------------------------------------------------------------------------------------------
READ = _object(
    ["file_path"],
    file_path=_FILE_PATH,
    offset=_whole("First line to read, from 1; only for files that are too long for one call"),
    limit=_whole("Number of lines to read; only for files that are too long for one call", 1),
    pages=_text("PDF only: the pages to read, for example 3 or 1-5; at most 20"))

WRITE = _object(
    ["file_path", "content"],
    file_path=_FILE_PATH,
    content=_text("The whole new content of the file"))

EDIT = _object(
    ["file_path", "old_string", "new_string"],
    file_path=_FILE_PATH,
    old_string=_text("The text to replace, exactly as it stands in the file; empty to create a file"),
    new_string=_text("The text to put in its place"),
    replace_all={**_flag("Replace every occurrence; otherwise there must be exactly one"), "default": False})

NOTEBOOK_EDIT = _object(
    ["notebook_path", "new_source"],
    notebook_path=_text("The .ipynb file; absolute, or relative to the working directory"),
    new_source=_text("The cell's new source; ignored by delete"),
    cell_id=_text("The cell to replace or delete, or the one behind which to insert; cell-N (from 0) where cells have no ids"),
    cell_type=_choice("code", "markdown", description="Needed for insert; otherwise the type stays as it is"),
    edit_mode={**_choice("replace", "insert", "delete", description="What to do"), "default": "replace"})

GLOB = _object(
    ["pattern"],
    pattern=_text("The glob: ** * ? [...] {a,b}"),
    path=_text("The folder to search; the working directory where it is left out"))

GREP = _object(
    ["pattern"],
    pattern=_text("The regular expression, in ripgrep's syntax"),
    path=_text("The file or folder to search; the working directory where it is left out"),
    glob=_text("Only files that match this glob, for example *.{ts,tsx}"),
    type=_text("Only files of this type, for example py, js, rust"),
    output_mode={**_choice("files_with_matches", "content", "count", description="What to list"),
                 "default": "files_with_matches"},
    **{"-i": _flag("Ignore case"),
       "-n": {**_flag("Show line numbers (content only)"), "default": True},
       "-o": _flag("Show only the matching parts (content only)"),
       "-A": _whole("Lines to show behind each match (content only)"),
       "-B": _whole("Lines to show before each match (content only)"),
       "-C": _whole("Lines to show around each match (content only)")},
    context=_whole("The same as -C"),
    head_limit={**_whole("At most so many lines (content) or entries; 0: no limit"), "default": 250},
    offset={**_whole("Skip so many lines or entries first"), "default": 0},
    multiline={**_flag("Let the pattern span lines; . matches line breaks too"), "default": False})


# -- outputs --------------------------------------------------------------------------------------------------------------
def _kind(name: str, file: Schema, **more: Schema) -> Schema:
    return _shape(["type", "file"], type={"const": name}, file=file, **more)


READ_OUTPUT: Schema = {"type": "object", "required": ["type", "file"], "oneOf": [
    _kind("text", _shape(["filePath", "content", "numLines", "startLine", "totalLines"],
                         filePath=_text(), content=_text(), numLines=_COUNT, startLine=_COUNT, totalLines=_COUNT,
                         truncatedByTokenCap=_flag())),
    _kind("image", _shape(["base64", "type", "originalSize"],
                          base64=_text(), type=_choice("image/jpeg", "image/png", "image/gif", "image/webp"), originalSize=_COUNT,
                          dimensions=_shape([], originalWidth=_COUNT, originalHeight=_COUNT, displayWidth=_COUNT,
                                            displayHeight=_COUNT))),
    _kind("notebook", _shape(["filePath", "cells"], filePath=_text(), cells=_list({"type": "object"}))),
    _kind("pdf", _shape(["filePath", "base64", "originalSize"], filePath=_text(), base64=_text(), originalSize=_COUNT)),
    _kind("parts", _shape(["filePath", "originalSize", "count", "outputDir"],
                          filePath=_text(), originalSize=_COUNT, count=_COUNT, outputDir=_text())),
    _kind("file_unchanged", _shape(["filePath"], filePath=_text()), source=_choice("seeded")),
]}

WRITE_OUTPUT = _shape(
    ["type", "filePath", "content", "structuredPatch", "originalFile"],
    type=_choice("create", "update"), filePath=_text(), content=_text(), structuredPatch=_PATCH, originalFile=_TEXT_OR_NULL,
    userModified=_flag())

EDIT_OUTPUT = _shape(
    ["filePath", "oldString", "newString", "originalFile", "structuredPatch", "userModified", "replaceAll"],
    filePath=_text(), oldString=_text(), newString=_text(), originalFile=_TEXT_OR_NULL, structuredPatch=_PATCH,
    userModified=_flag(), replaceAll=_flag())

NOTEBOOK_EDIT_OUTPUT = _shape(
    ["new_source", "cell_type", "language", "edit_mode", "notebook_path", "original_file", "updated_file"],
    new_source=_text(), old_source=_text(), cell_id=_text(), cell_type=_choice("code", "markdown", "raw"), language=_text(),
    edit_mode=_choice("replace", "insert", "delete"), error=_text(), notebook_path=_text(), original_file=_TEXT_OR_NULL,
    updated_file=_TEXT_OR_NULL)

GLOB_OUTPUT = _shape(
    ["durationMs", "numFiles", "filenames", "truncated"],
    durationMs=_COUNT, numFiles=_COUNT, filenames=_list(_text()), truncated=_flag(), totalMatches=_COUNT, countIsComplete=_flag())

GREP_OUTPUT = _shape(
    ["numFiles", "filenames"],
    mode=_choice("files_with_matches", "content", "count"), numFiles=_COUNT, filenames=_list(_text()), content=_text(),
    numLines=_COUNT, numMatches=_COUNT, totalFiles=_COUNT, totalLines=_COUNT, appliedLimit=_COUNT, appliedOffset=_COUNT)
