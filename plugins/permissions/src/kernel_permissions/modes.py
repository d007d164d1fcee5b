"""What a permission mode makes of rules and of an ``ask`` (permissions contract, section 7)."""

from __future__ import annotations

import re

from .rules import Rule

_INTERPRETERS = (
    "python", "node", "ruby", "perl", "php", "lua", "deno", "bun", "sh", "bash", "zsh", "dash", "ksh", "fish", "pwsh",
    "powershell", "osascript", "tclsh", "awk", "eval", "exec", "source", "sudo", "env", "xargs", "ssh")
_RUNNERS = ("npx", "uvx", "pipx run", "npm run", "npm exec", "npm x", "pnpm run", "pnpm dlx", "pnpm exec", "yarn run", "yarn dlx",
            "bunx", "bun run", "uv run", "poetry run", "pdm run", "hatch run", "rye run", "cargo run", "go run", "make", "just")
_BROAD = re.compile(
    rf"(?:(?:{'|'.join(map(re.escape, _INTERPRETERS))})[0-9.]*|(?:{'|'.join(map(re.escape, _RUNNERS))}))(?:[ :*].*|$)", re.DOTALL)


def narrow(rule: Rule) -> bool:
    """Whether an allow rule still counts in auto mode (7.5): what lets anything run is set aside."""
    if rule.tool in ("Agent", "Monitor"):
        return False
    if rule.tool not in ("Bash", "PowerShell"):
        return True
    pattern = rule.command
    if rule.bare or not pattern.text.strip("* "):
        return False
    return not pattern.wild or not broad_command(pattern.text)


def broad_command(pattern: str) -> bool:
    """Whether a command pattern begins with something that runs any code: an interpreter, a runner of packages or scripts."""
    return _BROAD.match(pattern) is not None
