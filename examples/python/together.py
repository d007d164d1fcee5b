"""Several agents at once, each with its own folder: one question about each of them.

    python together.py ../web ../server "Which tests are slow, and why?"
"""

import sys

import anyio
from kernel_embed import Agent, TurnFailed


async def one(folder: str, question: str, answers: dict[str, str]) -> None:
    try:
        async with Agent(cwd=folder, permission_mode="dontAsk", max_budget_usd=0.50) as agent:
            with anyio.fail_after(600):
                answers[folder] = (await agent.ask(question)).text
    except (TurnFailed, TimeoutError) as failure:
        answers[folder] = f"(no answer: {failure or 'it took too long'})"


async def main(folders: list[str], question: str) -> None:
    answers: dict[str, str] = {}
    async with anyio.create_task_group() as tasks:
        for folder in folders:
            tasks.start_soon(one, folder, question, answers)
    for folder in folders:
        print(f"{folder}: {answers[folder]}")


if __name__ == "__main__":
    *folders, question = sys.argv[1:] or [".", "What is in this folder?"]
    anyio.run(main, folders, question)
