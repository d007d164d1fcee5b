"""A conversation in the terminal; the answers appear as they are written. The next start goes on where this one ended.

    python chat.py
"""

import sys
from pathlib import Path

from kernel_embed import Agent, Interrupted, TurnFailed

PLACE = Path(".chat-session")


def main() -> None:
    last = PLACE.read_text().strip() if PLACE.exists() else None
    with Agent(resume=last, append_system_prompt="Answer in a few sentences.").sync() as agent:
        PLACE.write_text(agent.session_id)
        for line in sys.stdin:
            turn = agent.stream(line)
            try:
                for piece in turn.text_stream:
                    print(piece, end="", flush=True)
                print(f"\n[${turn.reply().total_cost_usd:.4f}]")
            except KeyboardInterrupt:
                turn.interrupt()  # ends the turn, not the conversation
                print("\n[interrupted]")
            except Interrupted:
                print("\n[interrupted]")
            except TurnFailed as failure:
                print(f"\n[{failure.reason}: {failure}]")


if __name__ == "__main__":
    main()
