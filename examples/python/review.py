"""A review as a value: what the model reports fits a dataclass, a hook keeps it from pushing, a person is asked for the rest.

    python review.py HEAD~1
"""

import sys
from dataclasses import dataclass
from typing import Literal

import anyio
from kernel_embed import Agent, Allow, Deny, Question, allow, deny, hook

from kernel import AssistantMessage, PreToolUse


@dataclass
class Finding:
    file: str
    line: int
    problem: str


@dataclass
class Review:
    risk: Literal["low", "medium", "high"]
    findings: list[Finding]


@hook(PreToolUse, matcher="Bash")
def no_push(event: PreToolUse) -> Deny | None:
    """Pushing is for people."""
    return deny("pushing is for people") if "git push" in event.tool_input["command"] else None


def ask_person(question: Question) -> Allow | Deny:
    """Answers whatever no rule decides."""
    print(f"{question.tool_name} {question.input}\n{question.reason}", file=sys.stderr)
    if not sys.stdin.isatty():
        return deny("nobody is there to ask")
    return allow(remember=True) if input("allow? [y/N] ") == "y" else deny("the person said no")


async def main(commit: str) -> None:
    async with Agent(hooks=[no_push], on_permission=ask_person, allowed_tools=["Bash(git diff *)", "Bash(git show *)"]) as agent:
        turn = agent.stream(f"Review the change since {commit}.", output=Review)
        async for message in turn:
            if isinstance(message, AssistantMessage):
                for block in message.message["content"]:
                    if block["type"] == "tool_use":
                        print(f"... {block['name']}", file=sys.stderr)
        review = (await turn.reply()).structured
    print(f"risk: {review.risk}")
    for finding in review.findings:
        print(f"{finding.file}:{finding.line}: {finding.problem}")


if __name__ == "__main__":
    anyio.run(main, sys.argv[1] if len(sys.argv) > 1 else "HEAD~1")
