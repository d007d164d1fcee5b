"""`when` is not `always` or `on-skill-invoke:<existing skill>`.

Why: Never starts.

Bad:

    on-skill-invoke:debgu

Good:

    on-skill-invoke:debug
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_linter.rule import Diagnostic
from kernel_linter.servers import Monitor
from kernel_linter.words import shown

CODE = "MON003"
SEVERITY = "error"
FIX = "none"
ON = "monitor"
SINCE = "0.1.0"


def check(monitor: Monitor) -> Iterator[Diagnostic]:
    value = monitor.data.get("when")
    if value is None or value == "always":
        return
    skill = value.removeprefix("on-skill-invoke:") if isinstance(value, str) and value.startswith("on-skill-invoke:") else ""
    if not skill or (monitor.plugin and skill not in monitor.plugin.skill_names):
        yield monitor.at(f"when: {shown(value)} is neither always nor on-skill-invoke:<a skill of the plugin>", "when")
