"""The yardstick: the same conversation with httpx alone. No plugins, no hooks, no rules, no transcript."""

from __future__ import annotations

import json
import resource
import sys

import httpx


def main(url: str, prompt: str) -> None:
    client = httpx.Client(headers={"x-api-key": "k", "anthropic-version": "2023-06-01"})
    messages: list[dict] = [{"role": "user", "content": prompt}]
    tools = [{"name": "Noop", "description": "Does nothing.", "input_schema": {"type": "object", "properties": {}}}]
    while True:
        body = {"model": "m", "max_tokens": 1000, "stream": True, "tools": tools, "messages": messages}
        blocks: dict[int, dict] = {}
        parts: dict[int, list[str]] = {}
        with client.stream("POST", f"{url}/v1/messages", json=body) as response:
            for line in response.iter_lines():
                if not line.startswith("data: "):
                    continue
                event = json.loads(line[6:])
                if event["type"] == "content_block_start":
                    blocks[event["index"]], parts[event["index"]] = event["content_block"], []
                elif event["type"] == "content_block_delta":
                    delta = event["delta"]
                    parts[event["index"]].append(delta.get("text") or delta.get("partial_json") or "")
        for index, block in blocks.items():
            if block["type"] == "tool_use":
                block["input"] = json.loads("".join(parts[index]) or "{}")
            else:
                block["text"] = "".join(parts[index])
        messages.append({"role": "assistant", "content": list(blocks.values())})
        calls = [b for b in blocks.values() if b["type"] == "tool_use"]
        if not calls:
            break
        messages.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": c["id"], "content": "ok"} for c in calls]})
    print(json.dumps({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main(*sys.argv[1:])
