"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Registry, Session, SessionStart, Tool, UserPromptSubmit


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_tools_user.plan_tools import EnterPlanMode, ExitPlanMode
    from kernel_tools_user.questions import AskUserQuestion
    from kernel_tools_user.tool_search import ToolSearch

    for tool in (AskUserQuestion(), EnterPlanMode(), ExitPlanMode(), ToolSearch()):
        register(tool)


@hookimpl
def session_start(event: SessionStart, session: Session) -> None:
    if event.source in ("compact", "clear"):
        from kernel_tools_user.plan import forget_told

        forget_told(session)


@hookimpl
def user_prompt_submit(event: UserPromptSubmit, session: Session) -> None:
    from kernel_tools_user.plan import tell

    tell(session)
