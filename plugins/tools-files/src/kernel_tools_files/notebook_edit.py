"""The tool ``NotebookEdit`` (tools contract, section 7)."""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple

import anyio

from kernel import ReadState, ToolContext, ToolError, ToolResult
from kernel_tools_files import manuals, schemas
from kernel_tools_files.encoding import UTF8, decode, encode
from kernel_tools_files.paths import FileTool, Target
from kernel_tools_files.seen import check_read, is_fresh, stale, state_of, written
from kernel_tools_files.write import load, original
from kernel_tools_files.writing import replace_file


class Change(NamedTuple):
    """What became of the cell."""

    cell_id: str
    cell_type: str
    old_source: str | None
    language: str
    before: str
    after: str
    state: ReadState


class NotebookEdit(FileTool):
    name = "NotebookEdit"
    description = "Replaces, inserts or deletes one cell of a notebook (.ipynb)."
    input_schema = schemas.NOTEBOOK_EDIT
    output_schema = schemas.NOTEBOOK_EDIT_OUTPUT
    rule_name = "Edit"
    rule_field = "notebook_path"

    def __init__(self, lock: Lock | None = None) -> None:
        self._lock = lock or Lock()

    def prompt(self) -> str:
        return manuals.NOTEBOOK_EDIT

    def repair_input(self, input: dict[str, Any]) -> dict[str, Any]:
        if "notebook_path" not in input and "file_path" in input:
            return {"notebook_path" if key == "file_path" else key: value for key, value in input.items()}
        return super().repair_input(input)

    def is_destructive(self, input: dict[str, Any]) -> bool:
        return input.get("edit_mode") == "delete"

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        mode = input.get("edit_mode", "replace")
        if not input["notebook_path"].lower().endswith(".ipynb"):
            raise ToolError("invalid_arguments", f"notebook_path: expected an .ipynb file, received {input['notebook_path']}. "
                            "For other files use Edit.")
        if mode == "insert" and "cell_type" not in input:
            raise ToolError("invalid_arguments", "cell_type: required for insert: code or markdown")
        if mode != "insert" and not input.get("cell_id"):
            raise ToolError("invalid_arguments", f"cell_id: required for {mode}; the ids stand in what Read shows")

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        target, mode = self.target(input), input.get("edit_mode", "replace")
        state = state_of(context, target)
        try:
            change = await anyio.to_thread.run_sync(self._edit, target, input, mode, state)
        except FileNotFoundError:
            raise ToolError("not_found", f"{target.shown} does not exist. The working directory is {context.cwd}.") from None
        context.read_files[target.real] = change.state
        structured = {
            "new_source": input["new_source"], "cell_id": change.cell_id, "cell_type": change.cell_type,
            "language": change.language, "edit_mode": mode, "notebook_path": target.shown,
            "original_file": original(change.before), "updated_file": original(change.after)}
        if change.old_source is not None:
            structured["old_source"] = change.old_source
        return ToolResult(content=self.from_structured(structured), structured=structured)

    def from_structured(self, structured: Any) -> str:
        done = {"replace": "Replaced", "insert": "Inserted", "delete": "Deleted"}[structured["edit_mode"]]
        return f"{done} the {structured['cell_type']} cell {structured.get('cell_id', '')} in {structured['notebook_path']}."

    # -- in a thread ------------------------------------------------------------------------------------------------------
    def _edit(self, target: Target, input: dict[str, Any], mode: str, state: ReadState | None) -> Change:
        from kernel_tools_files import notebooks

        encode(input["new_source"], UTF8, "new_source")  # an escape in JSON would hide half a surrogate pair
        with self._lock:
            data, found = load(target)
            check_read(state, target)
            assert state is not None
            if not is_fresh(state, found, data):
                raise stale(target)
            before, encoding = decode(data, target.shown)
            notebook = notebooks.parse(before, target.shown)
            cell_id, kind, old_source = _change(notebook, target.shown, input, mode)
            after = notebooks.serialise(notebook, before)
            raw = encode(after, encoding, "new_source")
            return Change(cell_id, kind, old_source, notebooks.language(notebook), before, after,
                          written(replace_file(target, raw, found), raw))


def _change(notebook: dict[str, Any], path: str, input: dict[str, Any], mode: str) -> tuple[str, str, str | None]:
    """Change the notebook in place; the id, the type and the old source of the cell."""
    from kernel_tools_files import notebooks

    cells, wanted, source = notebook["cells"], input.get("cell_id"), input["new_source"]
    if mode == "insert":
        at = notebooks.index_of(notebook, wanted, path) + 1 if wanted else 0
        cell = notebooks.new_cell(notebook, input["cell_type"], source)
        cells.insert(at, cell)
        return notebooks.cell_id(cell, at), input["cell_type"], None
    at = notebooks.index_of(notebook, wanted or "", path)
    cell = cells[at]
    cell_id, old_source = notebooks.cell_id(cell, at), notebooks.text_of(cell.get("source"))
    if mode == "delete":
        del cells[at]
    else:
        notebooks.set_type(cell, input.get("cell_type", cell.get("cell_type", "code")))
        notebooks.set_source(cell, source)
    return cell_id, str(cell.get("cell_type")), old_source
