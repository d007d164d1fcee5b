"""A session with a bit of everything, through the real harness with a scripted model: for the tests and the picture in the docs.

``python plugins/inspector/tests/showcase.py FOLDER [--pace SECONDS]`` leaves it in FOLDER and prints its transcript.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import anyio

from kernel import Harness, Options, PermissionCall, Verdict

PROMPTS = (
    "The test of the totals fails. Find out why and mend it.",
    "Now the changelog, please.",
    "/compact",
    "Is there anything else that rounds wrongly?",
)
GUARD = """\
import json, sys, time
event = json.load(sys.stdin)
time.sleep({pace})
if "rm -rf" in event["tool_input"].get("command", ""):
    print("rm -rf is not for agents: name the files", file=sys.stderr)
    sys.exit(2)
"""
SCRIPT = """\
name: showcase
pace: {pace}
model: {{context_window: 40000}}
turns:
  - when: {{first_contains: "Where else"}}
    text: I look for calls of round().
    calls: [{{tool: Grep, input: {{pattern: "round\\\\(", output_mode: content}}}}, {{tool: Glob, input: {{pattern: "**/*.py"}}}}]
    usage: {{input_tokens: 40, cache_creation_input_tokens: 3100, output_tokens: 160}}
  - when: {{first_contains: "Where else"}}
    text: "shop/totals.py rounds each line, and nothing else does."
    usage: {{input_tokens: 20, cache_read_input_tokens: 3100, cache_creation_input_tokens: 420, output_tokens: 70}}
  - when: {{first_contains: "Which tests"}}
    text: I look at the tests.
    calls: [{{tool: Read, input: {{file_path: test_totals.py}}}}]
    usage: {{input_tokens: 35, cache_creation_input_tokens: 2900, output_tokens: 90}}
  - when: {{first_contains: "Which tests"}}
    text: "One test covers it: test_totals.py, test_three_times_a_third."
    usage: {{input_tokens: 15, cache_read_input_tokens: 2900, cache_creation_input_tokens: 300, output_tokens: 60}}
  - when: {{contains: "summar"}}
    text: "The total rounded each line; it now rounds the sum once. The changelog says so."
    usage: {{input_tokens: 2600, output_tokens: 190}}
  - thinking: The test and the code first. Both only read, so they can run side by side.
    text: I will run the test and look at the code side by side.
    calls:
      - {{tool: Bash, input: {{command: "python3 -m unittest test_totals 2>&1", description: Run the test}}}}
      - {{tool: Read, input: {{file_path: shop/totals.py}}}}
      - {{tool: Grep, input: {{pattern: total, path: ., output_mode: files_with_matches}}}}
    usage: {{input_tokens: 410, cache_creation_input_tokens: 6200, output_tokens: 240}}
  - text: "Each line is rounded before the sum. I ask two agents what else is touched."
    calls:
      - {{tool: Agent, input: {{
          subagent_type: Explore, description: Find other rounding, prompt: "Where else is money rounded?",
          run_in_background: false}}}}
      - {{tool: Agent, input: {{
          subagent_type: general-purpose, description: Find the tests, prompt: "Which tests cover totals?",
          run_in_background: false}}}}
    usage: {{input_tokens: 90, cache_read_input_tokens: 6200, cache_creation_input_tokens: 900, output_tokens: 310}}
  - text: Nothing else is touched. I round the sum once.
    calls:
      - {{tool: Edit, input: {{
          file_path: shop/totals.py, old_string: "    return sum(round(price * n, 2) for price, n in lines)",
          new_string: "    return round(sum(price * n for price, n in lines), 2)"}}}}
    usage: {{input_tokens: 60, cache_read_input_tokens: 7100, cache_creation_input_tokens: 500, output_tokens: 180}}
  - text: Now without what an earlier build left.
    calls: [{{tool: Bash, input: {{command: "rm -rf build", description: Remove the build}}}}]
    usage: {{input_tokens: 30, cache_read_input_tokens: 7600, cache_creation_input_tokens: 350, output_tokens: 90}}
  - text: That is refused, and it is not needed.
    calls: [{{tool: Bash, input: {{command: "python3 -m unittest test_totals 2>&1", description: Run the test}}}}]
    usage: {{input_tokens: 25, cache_read_input_tokens: 7950, cache_creation_input_tokens: 300, output_tokens: 80}}
  - text: "**Mended.** `shop/totals.py` rounded every line before it added them; now it rounds the sum once. The test passes."
    usage: {{input_tokens: 20, cache_read_input_tokens: 8250, cache_creation_input_tokens: 260, output_tokens: 120}}
  - fail: {{status: 529, kind: overloaded_error, message: Overloaded, retry_after: 0.2}}
  - text: One line for the changelog.
    calls: [{{tool: Write, input: {{file_path: CHANGELOG.md, content: "# Changelog\\n\\n- Totals round once.\\n"}}}}]
    usage: {{input_tokens: 8900, output_tokens: 140}}
  - text: The changelog has its line.
    usage: {{input_tokens: 30, cache_read_input_tokens: 8900, cache_creation_input_tokens: 200, output_tokens: 40}}
  - text: "No: the agents found none. Shall I add a test for the sum of many lines?"
    usage: {{input_tokens: 2700, cache_creation_input_tokens: 3300, output_tokens: 70}}
"""


def workspace(folder: Path, pace: float) -> Path:
    """The project that the model works on, with a guard, rules and a script."""
    work = folder / "shop"
    (work / "shop").mkdir(parents=True)
    (work / "build").mkdir()
    (work / "shop" / "__init__.py").write_text("")
    (work / "shop" / "totals.py").write_text("def total(lines):\n    return sum(round(price * n, 2) for price, n in lines)\n")
    (work / "test_totals.py").write_text(
        "import unittest\n\nfrom shop.totals import total\n\n\nclass Totals(unittest.TestCase):\n"
        "    def test_three_times_a_third(self):\n        self.assertEqual(total([(1 / 3, 1)] * 3), 1.0)\n"
    )
    (work / "CLAUDE.md").write_text("Money is rounded once, at the end.\n")
    (work / "guard.py").write_text(GUARD.format(pace=pace * 2))
    config = Path(os.environ["CLAUDE_CONFIG_DIR"])
    config.mkdir(parents=True, exist_ok=True)
    (config / "settings.json").write_text(
        json.dumps(
            {
                "env": {"PYTHONDONTWRITEBYTECODE": "1"},  # an edit within the same second would leave the old one in use
                "permissions": {"allow": ["Bash(python3 -m unittest *)"]},
                "hooks": {
                    "PreToolUse": [
                        {"matcher": "Bash", "hooks": [{"type": "command", "command": 'python3 "$CLAUDE_PROJECT_DIR/guard.py"'}]}
                    ]
                },
            }
        )
    )
    (folder / "script.yaml").write_text(SCRIPT.format(pace=pace))
    return work


async def play(folder: Path, *, pace: float = 0.0, prompts: tuple[str, ...] = PROMPTS, **options: Any) -> Path:
    """Run the prompts; the transcript. ``CLAUDE_CONFIG_DIR`` says where it is kept."""
    work = workspace(folder, pace)
    harness = Harness(
        Options(cwd=work, model=f"script:{folder / 'script.yaml'}", print_mode=True, name="Mend the totals", **options)
    )
    session = harness.open()

    async def person(call: PermissionCall, verdict: Verdict, call_id: str) -> dict[str, Any]:
        await anyio.sleep(pace * 20)
        return {"behavior": "allow"}

    session.asker = person
    try:
        for prompt in prompts:
            await session.submit(prompt)
    finally:
        await session.close()
    return Path(session.transcript.path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pace", type=float, default=0.02, help="seconds between two pieces of an answer")
    given = parser.parse_args()
    os.environ["CLAUDE_CONFIG_DIR"] = str(given.folder / "config")
    print(anyio.run(lambda: play(given.folder, pace=given.pace)))


if __name__ == "__main__":
    main()
