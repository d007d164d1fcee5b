"""What one run was asked to do, whoever asked: the command line, a program, a test (headless contract, section 2)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from kernel.errors import UsageError


def here() -> Path:
    """The working directory.

    :raises UsageError: it is gone.
    """
    try:
        return Path(os.getcwd())
    except OSError as error:
        raise UsageError(f"the working directory cannot be used: {error.strerror}",
                         hint="change to a folder that exists") from None


class Options(Struct, kw_only=True):
    """Every option has the default that the command line has.

    ``extra`` holds options whose effect belongs to a plugin, by the flag's name in snake case.
    """

    cwd: Path = field(default_factory=here)
    prompt: str | None = None
    print_mode: bool = True
    front_end: str | None = None
    input_format: str = "text"
    output_format: str = "text"
    verbose: bool = False
    include_partial_messages: bool = False
    include_hook_events: bool = False
    replay_user_messages: bool = False

    model: str | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    effort: str | None = None
    thinking: str | None = None
    max_thinking_tokens: int | None = None
    betas: list[str] = field(default_factory=list)
    system_prompt: str | None = None
    append_system_prompt: str | None = None

    tools: list[str] | None = None
    allowed_tools: list[str] = field(default_factory=list)
    disallowed_tools: list[str] = field(default_factory=list)
    permission_mode: str | None = None
    allow_bypass: bool = False
    add_dirs: list[Path] = field(default_factory=list)

    resume: str | None = None
    continue_session: bool = False
    fork_session: bool = False
    session_id: str | None = None
    resume_at: str | None = None
    persist: bool = True
    name: str | None = None

    settings: str | None = None
    setting_sources: tuple[str, ...] = ("user", "project", "local")
    plugin_dirs: list[Path] = field(default_factory=list)
    harness: Path | None = None
    block: list[str] = field(default_factory=list)
    setup_trigger: str | None = None

    extra: dict[str, Any] = field(default_factory=dict)
