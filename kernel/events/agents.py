"""Subagents, tasks, teammates, worktrees."""

from __future__ import annotations

from kernel.answers import Answer, ContextAnswer
from kernel.events.event import Ending, Event


class SubagentStart(Event, tag=True):
    """A subagent starts. Context goes ahead of its first prompt."""

    matcher = "agent_type"


class SubagentStartResult(ContextAnswer):
    event = "SubagentStart"


class SubagentStop(Ending, tag=True, kw_only=True):
    """A subagent finished its response. ``decision="block"`` or context makes it go on."""

    agent_transcript_path: str
    matcher = "agent_type"
    can_block = True


class SubagentStopResult(ContextAnswer):
    event = "SubagentStop"


class _TaskEvent(Event):
    """The common fields of both task events."""

    task_id: str
    task_subject: str
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None
    carries_mode = True


class TaskCreated(_TaskEvent, tag=True):
    """A task is being created. ``decision="block"`` deletes it."""

    can_block = True


class TaskCreatedResult(Answer):
    event = "TaskCreated"


class TaskCompleted(_TaskEvent, tag=True):
    """A task is about to be marked completed. ``decision="block"`` keeps it open."""

    can_block = True


class TaskCompletedResult(Answer):
    event = "TaskCompleted"


class TeammateIdle(Event, tag=True):
    """A teammate is about to go idle. ``decision="block"`` keeps it at work."""

    teammate_name: str
    team_name: str | None = None
    carries_mode = True
    can_block = True


class TeammateIdleResult(Answer):
    event = "TeammateIdle"


class WorktreeCreate(Event, tag=True):
    """A worktree is to be created; ``worktree_path`` names one that the implementation made."""

    name: str
    can_block = True


class WorktreeCreateResult(Answer):
    event = "WorktreeCreate"
    worktree_path: str | None = None


class WorktreeRemove(Event, tag=True):
    """A worktree is removed. Observation only."""

    worktree_path: str


class WorktreeRemoveResult(Answer):
    event = "WorktreeRemove"
