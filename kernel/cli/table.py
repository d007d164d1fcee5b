"""The commands that the kernel brings itself; plugins add theirs (``register_commands``)."""

from __future__ import annotations

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("kernel.cli.run", "run one prompt and exit; the same as -p"),
    "plugins": ("kernel.cli.plugins", "list the plugins that were found, with their state"),
    "doctor": ("kernel.cli.doctor", "say what works, what does not, and what to do"),
}
"""Name -> module and summary. The module has ``main(args) -> exit code``. Plugins add commands of their own."""

OWN = frozenset(("plugins list",))
"""Commands of two words that are ours as well: they work without the plugin that does more."""

ALIASES = {"plugin": "plugins"}
