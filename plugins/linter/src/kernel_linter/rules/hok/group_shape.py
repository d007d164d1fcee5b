"""An event's value is not a list of `{matcher?, hooks: [...]}`.

Why: The whole file is rejected.

Bad:

    "Stop": [{"type": "command", …}]

Good:

    "Stop": [{"hooks": [{…}]}]
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.hooks_model import HookMap
from kernel_linter.rule import Diagnostic
from kernel_linter.words import shown

CODE = "HOK005"
SEVERITY = "error"
FIX = "none"
ON = "hooks"
SINCE = "0.1.0"


def check(hooks: HookMap) -> Iterator[Diagnostic]:
    if not isinstance(hooks.data, dict):
        if hooks.home != "file":
            yield hooks.at(f"hooks: must be an object of events, found {shown(hooks.data)}")
        return
    for event, groups in hooks.events:
        if not isinstance(groups, list):
            yield hooks.at(f"{event}: must be a list of groups {{matcher?, hooks: [...]}}, found {shown(groups)}", event)
            continue
        for index, group in enumerate(groups):
            if not isinstance(group, dict):
                yield hooks.at(f"{event}: every group must be an object, found {shown(group)}", event, index)
            elif not isinstance(group.get("hooks"), list):
                hint = "; a handler must stand inside a group" if "type" in group or "command" in group else ""
                yield hooks.at(f"{event}: a group needs the list 'hooks'{hint}", event, index)
            else:
                if "matcher" in group and not isinstance(group["matcher"], str):
                    yield hooks.at(f"{event}: matcher must be text, found {shown(group['matcher'])}", event, index, "matcher")
                for number, handler in enumerate(group["hooks"]):
                    if not isinstance(handler, dict):
                        yield hooks.at(
                            f"{event}: every handler must be an object, found {shown(handler)}", event, index, "hooks", number
                        )
