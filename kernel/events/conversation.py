"""The session: its start and its end, and what is around it."""

from __future__ import annotations

from typing import Literal

from kernel.answers import Answer, ContextAnswer
from kernel.events.event import Event


class SessionStart(Event, tag=True):
    """A session began, was resumed or forked, was cleared or compacted. Context goes ahead of the first prompt."""

    source: Literal["startup", "resume", "clear", "compact", "fork"]
    model: str | None = None
    session_title: str | None = None
    matcher = "source"


class SessionStartResult(ContextAnswer):
    event = "SessionStart"
    initial_user_message: str | None = None
    session_title: str | None = None
    watch_paths: list[str] | None = None
    reload_skills: bool | None = None


class Setup(Event, tag=True):
    """The launch asked for set-up (``--init``, ``--init-only``, ``--maintenance``). Before ``SessionStart``."""

    trigger: Literal["init", "maintenance"]
    matcher = "trigger"


class SetupResult(ContextAnswer):
    event = "Setup"


class SessionEnd(Event, tag=True):
    """The session ends: normal exit, ``/clear``, SIGTERM in print mode.

    Observation only; all implementations share a small time budget.
    """

    reason: str
    matcher = "reason"


class SessionEndResult(Answer):
    event = "SessionEnd"


class InstructionsLoaded(Event, tag=True):
    """An instruction file entered the context. Observation only."""

    file_path: str
    memory_type: Literal["User", "Project", "Local", "Managed"]
    load_reason: Literal["session_start", "nested_traversal", "path_glob_match", "include", "compact"]
    globs: list[str] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None
    matcher = "load_reason"


class InstructionsLoadedResult(Answer):
    event = "InstructionsLoaded"


class Notification(Event, tag=True):
    """The host tells the person something. Observation only."""

    message: str
    notification_type: str
    title: str | None = None
    matcher = "notification_type"


class NotificationResult(ContextAnswer):
    """``additional_context`` is accepted by the schema and has no effect."""

    event = "Notification"


class ConfigChange(Event, tag=True):
    """A settings or skill file changed on disk. ``decision="block"`` keeps the change from the running session."""

    source: Literal["user_settings", "project_settings", "local_settings", "policy_settings", "skills"]
    file_path: str | None = None
    matcher = "source"
    can_block = True


class ConfigChangeResult(Answer):
    event = "ConfigChange"


class CwdChanged(Event, tag=True):
    """The working directory changed."""

    old_cwd: str
    new_cwd: str


class CwdChangedResult(Answer):
    event = "CwdChanged"
    watch_paths: list[str] | None = None


class DirectoryAdded(Event, tag=True):
    """A working directory was added."""

    directory: str
    source: Literal["slash_command", "register_repo_root"]
    matcher = "source"


class DirectoryAddedResult(Answer):
    event = "DirectoryAdded"


class FileChanged(Event, tag=True):
    """A watched file changed; the matcher is tested against its base name."""

    file_path: str
    event: Literal["change", "add", "unlink"]
    matcher = "file_path"

    @property
    def match_value(self) -> str | None:
        return self.file_path.replace("\\", "/").rsplit("/", 1)[-1]


class FileChangedResult(Answer):
    event = "FileChanged"
    watch_paths: list[str] | None = None
