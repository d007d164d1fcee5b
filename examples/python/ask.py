"""One question with a function as a tool: no event loop, no ceremony.

    python ask.py "Which of these files is the longest?"
"""

import sys
from pathlib import Path

from kernel_embed import Agent, TurnFailed, tool


@tool(read_only=True)
def line_count(path: str) -> int:
    """Counts the lines of a text file.

    Args:
        path: relative to the working directory
    """
    return len(Path(path).read_text(errors="replace").splitlines())


def main(question: str) -> int:
    with Agent(tools=[line_count], max_turns=10).sync() as agent:
        try:
            reply = agent.ask(question)
        except TurnFailed as failure:
            print(f"no answer ({failure.reason}): {failure}", file=sys.stderr)
            return 1
    print(reply.text)
    print(f"{reply.result.num_turns} requests, {reply.usage.output_tokens} tokens, ${reply.cost_usd:.4f}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:]) or "Which file of this folder is the longest?"))
