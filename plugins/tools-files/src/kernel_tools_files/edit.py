"""The tool ``Edit`` (tools contract, section 5): replace exact strings, under eight checks in their order."""

from __future__ import annotations

from threading import Lock
from typing import Any

import anyio

from kernel import ReadState, Tool, ToolContext, ToolError, ToolResult
from kernel_tools_files import manuals, schemas
from kernel_tools_files.encoding import UTF8, decode, encode
from kernel_tools_files.matching import find, replace, why_not
from kernel_tools_files.paths import FileTool, Target
from kernel_tools_files.rules import ReadRules, missing
from kernel_tools_files.seen import check_read, is_fresh, stale, state_of, written
from kernel_tools_files.write import Done, load, original
from kernel_tools_files.writing import replace_file

SNIPPET_CHARS = 4_000
"""A single change is shown with its lines' numbers up to this length."""
HOLDS_MORE = "(The file holds other changes too, made since you read it. Read it again before you rely on the rest of it.)"


class Edit(FileTool):
    name = "Edit"
    description = "Replaces an exact string in a file. Everything else in the file stays as it is."
    input_schema = schemas.EDIT
    output_schema = schemas.EDIT_OUTPUT
    rule_field = "file_path"

    def __init__(self, read: Tool, lock: Lock | None = None) -> None:
        self._read = read
        self._lock = lock or Lock()

    def prompt(self) -> str:
        return manuals.EDIT

    def validate_input(self, input: dict[str, Any], context: ToolContext) -> None:
        if input["old_string"] == input["new_string"]:
            raise ToolError("no_change", "old_string and new_string are equal, so there is nothing to change.")

    async def call(self, input: dict[str, Any], context: ToolContext) -> ToolResult:
        target = self.target(input)
        rules = ReadRules(context, self._read)
        state = state_of(context, target)
        free = rules.free(target.path)
        unread_is_fine = free and bool(getattr(context.session.model_info, "edits_unread", False))
        try:
            done, patch = await anyio.to_thread.run_sync(self._edit, target, input, state, free, unread_is_fine)
        except FileNotFoundError:
            raise await missing(target, context, rules) from None
        context.read_files[target.real] = done.state
        structured = {
            "filePath": target.shown, "oldString": input["old_string"], "newString": input["new_string"],
            "originalFile": original(done.before), "structuredPatch": patch, "userModified": False,
            "replaceAll": bool(input.get("replace_all"))}
        return ToolResult(content=f"{self.from_structured(structured)}\n{done.note}".rstrip(), structured=structured)

    def from_structured(self, structured: Any) -> str:
        path, patch = structured["filePath"], structured["structuredPatch"]
        if structured["originalFile"] is None and structured["oldString"] == "":
            return f"Created {path}."
        text = f"Edited {path}."
        if len(patch) == 1 and (shown := _snippet(patch[0])):
            text += f" The lines now:\n{shown}"
        elif len(patch) > 1:
            text += f" It changed in {len(patch)} places: lines {', '.join(str(h['newStart']) for h in patch[:20])}."
        return text

    # -- in a thread ------------------------------------------------------------------------------------------------------
    def _edit(self, target: Target, input: dict[str, Any], state: ReadState | None, free: bool,
              unread_is_fine: bool) -> tuple[Done, list[dict[str, Any]]]:
        from kernel_tools_files.patch import structured_patch

        with self._lock:
            done = self._apply(target, input, state, free, unread_is_fine)
        return done, structured_patch(done.before or "", done.after)

    def _apply(self, target: Target, input: dict[str, Any], state: ReadState | None, free: bool, unread_is_fine: bool) -> Done:
        old, new = input["old_string"], input["new_string"]
        try:
            data, found = load(target)
        except FileNotFoundError:
            if old:
                raise
            raw = encode(new, UTF8, "new_string")
            return Done(None, new, written(replace_file(target, raw, None), raw))
        if target.path.lower().endswith(".ipynb"):
            raise ToolError("is_notebook", f"{target.shown} is a notebook. Use NotebookEdit.")
        if not old and data:
            raise ToolError("file_exists", f"{target.shown} exists and is not empty. An empty old_string only creates a file; "
                            "give the text to replace, or use Write to replace the whole file.")
        if old and not (state is None and unread_is_fine):
            check_read(state, target)
        before, encoding = decode(data, target.shown)
        changed = state is not None and not is_fresh(state, found, data)
        after = self._replaced(target, before, input, changed=changed, free=free) if old else new
        raw = encode(after, encoding, "new_string")
        return Done(before, after, written(replace_file(target, raw, found), raw), HOLDS_MORE if changed and old else "")

    def _replaced(self, target: Target, text: str, input: dict[str, Any], *, changed: bool, free: bool) -> str:
        """Checks 6 to 8: it occurs, it occurs once or all are meant, the file is the one that was read."""
        old = input["old_string"]
        match = find(text, old)
        again = " The file was changed since you read it: read it again." if changed else ""
        if not match.spans:
            raise ToolError("no_match", f"old_string does not occur in {target.shown}. {why_not(text, old)}{again}")
        if match.times > 1 and not input.get("replace_all"):
            raise ToolError("many_matches", f"old_string occurs {match.times} times in {target.shown}. Give more of the lines "
                            f"around the one that you mean, or set replace_all to change all.{again}")
        if changed and not (free and match.exact and match.times == 1):
            raise stale(target)
        return replace(text, match, old, input["new_string"])


def _snippet(hunk: dict[str, Any]) -> str:
    """The changed lines of a hunk with their numbers; empty where they are too many to be worth showing."""
    lines = [line[1:] for line in hunk["lines"] if line[:1] in " +"]
    shown = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, hunk["newStart"]))
    return shown if len(shown) <= SNIPPET_CHARS else ""
