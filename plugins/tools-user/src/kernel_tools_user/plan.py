"""Plan mode: the plan file, the mode from before, and what the model is told (tools contract, 14.4)."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from kernel import Session, UsageError

PLAN_CHARS = 200_000
"""A longer plan is cut where it is handed to hooks and people."""
WIDER = ("default", "acceptEdits", "dontAsk")
"""Modes that the setting ``permissions.defaultMode`` may give back when nobody knows the mode from before."""

RULES = """\
Plan mode is on. The person wants a plan before anything is changed.
- Do not edit files, run commands that change something, or change settings or commits. Reading, searching and asking are fine.
- The one file that you may write is the plan: {path}. Write it there with Write, and keep it up to date with Edit.
- The plan says what will be done, in which files and in which order, and how it will be checked; short enough to be read in one
  go.
- Ask with AskUserQuestion where the wishes are not clear. When the plan is complete call ExitPlanMode, which asks for approval.
  Do not ask for approval in any other way."""

OVER = "Plan mode is off again. You may change files and run commands, within the permissions of this session."


class PlanMode(Struct):
    """What a session knows of its plan mode. ``before``: the mode that EnterPlanMode left; ``told``: the model knows it is on."""

    before: str | None = None
    told: bool = False

    @classmethod
    def of(cls, session: Session) -> PlanMode:
        found: PlanMode = session.plugin_state.setdefault("tools-user.plan", cls())
        return found


def is_on(session: Session) -> bool:
    return session.state.permission_mode == "plan"


def plan_file(session: Session) -> Path:
    """Where this session's plan lies. The permission policy learns of it through ``session.plan_file``."""
    known = session.plan_file
    if known is None:
        known = session.plan_file = str(_folder(session) / f"{session.id}.md")
    return Path(known)


def _folder(session: Session) -> Path:
    """The setting ``plansDirectory`` (inside the project), else ``CONFIG/plans``."""
    default = Path(os.path.abspath(session.settings.config_dir)) / "plans"
    given = session.settings.get("plansDirectory")
    if given is None:
        return default
    root = Path(session.project_root).resolve()
    if isinstance(given, str) and given.strip() and "\0" not in given:
        wanted = (root / os.path.expanduser(given)).resolve()
        # Plan mode lets this one file be written, so a project's settings must not be able to put it anywhere else.
        if wanted != root and wanted.is_relative_to(root):
            return wanted
    session.notice(f"setting plansDirectory: {given!r} is no folder inside the project; plans are kept in {default}")
    return default


def read_plan(session: Session) -> str | None:
    """The plan as it lies on disk; ``None`` where there is none."""
    try:
        text = plan_file(session).read_text("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        session.notice(f"plugin tools-user: the plan {plan_file(session)} cannot be read: {error.strerror or error}")
        return None
    return text[:PLAN_CHARS] if text.strip() else None


def write_plan(session: Session, text: str) -> None:
    """Replace the plan file; a failure is told and changes nothing else."""
    path = plan_file(session)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.write_text(text, "utf-8", "replace")
        os.replace(temporary, path)
    except OSError as error:
        session.notice(f"plugin tools-user: the plan could not be kept in {path}: {error.strerror or error}")


def enter(session: Session) -> None:
    """Switch to plan mode and remember the mode from before."""
    mine = PlanMode.of(session)
    if not is_on(session):
        mine.before = session.state.permission_mode
        session.set_mode("plan")
    mine.told = True


def leave(session: Session) -> str:
    """Give the mode from before back and return it. A mode that an approval set stays as it is."""
    mine = PlanMode.of(session)
    before, mine.before, mine.told = mine.before, None, False
    if is_on(session):
        try:
            session.set_mode(before or _usual(session))
        except UsageError as error:
            session.notice(f"the mode from before plan mode cannot be used ({error.message}); default is used")
            session.set_mode("default")
    return session.state.permission_mode


def _usual(session: Session) -> str:
    """The mode of a session that began in plan mode: the one of the settings, if it needs no further consent."""
    given = session.settings.get("permissions.defaultMode")
    return given if given in WIDER else "default"


def tell(session: Session) -> None:
    """With a prompt: the rules once after plan mode came on by flag or by hand, and a word when it went off by hand."""
    mine = PlanMode.of(session)
    if is_on(session) == mine.told:
        return
    session.add_context(RULES.format(path=plan_file(session)) if is_on(session) else OVER)
    mine.told = is_on(session)


def forget_told(session: Session) -> None:
    """The history was replaced, so the rules are told again."""
    PlanMode.of(session).told = False
    if is_on(session):
        tell(session)
