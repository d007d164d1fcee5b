"""``python -m benchmarks.resume``: resuming a long conversation, and what one durable append costs.

A transcript of 60 MB in 30,000 lines (prompts, answers, parallel calls, results of 4 KB) is resumed to the point where the
first request could be sent. The yardstick does in the same minute on the same machine what nobody can leave out: read the file
and parse every line as JSON, with the standard library and with the fastest parser at hand. Each measurement is a process of
its own; memory is what it has on top of the imports, as a multiple of the file's size.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

SESSION = "11111111-2222-4333-8444-555555555555"
CHILD = """
import os, resource, sys, time, gc
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
{prepare}
gc.collect(); before = rss(); began = time.perf_counter(); cpu = time.process_time()
{work}
took, cpu = time.perf_counter() - began, time.process_time() - cpu
gc.collect()
print(took, cpu, (rss() - before), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before)
"""
WAYS = {
    "json": ("import json", "kept = [json.loads(line) for line in open({path!r}, 'rb')]"),
    "msgspec": ("import msgspec; decode = msgspec.json.Decoder().decode",
                "kept = [decode(line) for line in open({path!r}, 'rb').read().split(b'\\n') if line]"),
    "resume": ("from kernel_sessions.store import FileStore\nfrom kernel import History, Layer, Options, Settings, normalise\n"
               "from pathlib import Path\nimport kernel_sessions.find, kernel_sessions.chain\n"
               "settings = Settings([], [], config_dir=Path({home!r}), project_root=Path({home!r}), trusted=False)",
               "transcript = FileStore().open(Options(cwd=Path({home!r}), resume={session!r}), settings)\n"
               "history = History(normalise(transcript.restored.messages)[0])\n"
               "assert not history.open_calls and len(history) > 1000"),
}


def write(path: Path, lines: int, size: int) -> None:
    """A conversation of that many lines and bytes, as the kernel writes it."""
    from kernel_sessions.entries import Stamp

    from kernel import Clock, Entry

    clock = Clock()
    stamp = Stamp(SESSION, None, print_mode=True, clock=clock)
    filler = "The quick brown fox \"jumps\" over\\n the lazy dog. " * 400
    made: list[Entry] = []
    with path.open("wb") as file:
        written = 0
        for number in range(lines):
            room = (size - written) // (lines - number) - 420
            place = number % 6
            call = f"toolu_{number - place}"
            content: Any
            if place == 0:
                content, kind = f"Prompt {number}. {filler}"[:300], "user"
            elif place in (1, 2):
                content, kind = [{"type": "tool_use", "id": f"{call}_{place}", "name": "Bash", "input": {
                    "command": filler[:200]}}], "assistant"
            elif place in (3, 4):
                content, kind = [{"type": "tool_result", "tool_use_id": f"{call}_{place - 2}",
                                  "content": filler[:max(room * 2, 100)]}], "user"
            else:
                content, kind = [{"type": "text", "text": filler[:800]}], "assistant"
            message = {"role": kind, "content": content}
            if kind == "assistant":
                message |= {"id": f"msg_{number}", "type": "message", "model": "model-a", "stop_reason": "end_turn",
                            "usage": {"input_tokens": 10, "output_tokens": 20}}
            entry = Entry(type=kind, uuid=clock.new_id(), message=message)  # type: ignore[arg-type]
            made.append(entry)
            (raw,) = stamp.lines([entry], str(path.parent))
            file.write(raw)
            written += len(raw)


def measured(way: str, path: Path, home: str) -> tuple[float, float, float, float]:
    prepare, work = (part.format(path=str(path), home=home, session=SESSION) for part in WAYS[way])
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(Path(home) / "config")}
    program = CHILD.format(prepare=prepare, work=work)
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    took, cpu, kept, peak = (float(x) for x in done.stdout.split())
    return took, cpu, kept, peak


def syncs(home: Path, durability: str) -> dict[str, float]:
    """Calls of fsync and fdatasync for an append of one entry, once the file is there."""
    from kernel_sessions.store import FileStore

    from kernel import Clock, Entry, Layer, Options, Settings

    layer = Layer("cli", "--settings", {"kernel": {"sessions": {"fsync": durability}}}, "/")
    settings = Settings([layer], [], config_dir=home, project_root=home, trusted=True)
    os.environ["CLAUDE_CONFIG_DIR"] = str(home / f"config-{durability}")
    transcript = FileStore().open(Options(cwd=home), settings)
    count = 0
    real = os.fsync, os.fdatasync

    def counted(call: Any) -> Any:
        def wrapper(fd: int) -> None:
            nonlocal count
            count += 1
            call(fd)
        return wrapper

    os.fsync, os.fdatasync = counted(real[0]), counted(real[1])
    try:
        counts = []
        for number in range(50):
            count = 0
            message = {"role": "user", "content": f"x{number}"}
            transcript.append([Entry(type="user", uuid=Clock().new_id(), message=message)], cwd=str(home))
            counts.append(count)
    finally:
        os.fsync, os.fdatasync = real
        transcript.close()
    return {"first": counts[0], "later": max(counts[1:])}


def measure(runs: int, lines: int, megabytes: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="kernel-resume-") as place:
        from kernel_sessions.paths import project_name

        folder = Path(place) / "config" / "projects" / project_name(place)
        folder.mkdir(parents=True)
        path = folder / f"{SESSION}.jsonl"
        write(path, lines, megabytes * 1_000_000)
        size = path.stat().st_size
        rows: dict[str, Any] = {}
        every: dict[str, list[tuple[float, float, float, float]]] = {way: [] for way in WAYS}
        for _ in range(runs):
            for way in WAYS:
                every[way].append(measured(way, path, place))
                print(".", end="", file=sys.stderr, flush=True)
        for way, found in every.items():
            rows[way] = {"seconds": round(median(f[0] for f in found), 3), "cpu_seconds": round(median(f[1] for f in found), 3),
                         "memory_x_size": round(median(f[2] for f in found) / size, 2),
                         "peak_x_size": round(median(f[3] for f in found) / size, 2)}
        print(file=sys.stderr)
        return {"size": size, "lines": sum(1 for _ in path.open("rb")), "runs": runs, "ways": rows,
                "cpu_x_json": round(rows["resume"]["cpu_seconds"] / rows["json"]["cpu_seconds"], 2),
                "syncs": {how: syncs(Path(place), how) for how in ("off", "turn", "entry")}}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resume", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--lines", type=int, default=30_000)
    parser.add_argument("--megabytes", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.runs, options.lines, options.megabytes)
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    print(f"{found['size'] / 1e6:.1f} MB, {found['lines']} lines, medians of {found['runs']} runs")
    for way, row in found["ways"].items():
        print(f"  {way:<8} {row['seconds']:>6.2f} s  cpu {row['cpu_seconds']:>6.2f} s  memory {row['memory_x_size']:>5.2f} x  "
              f"peak {row['peak_x_size']:>5.2f} x the file's size")
    print(f"  a resume takes {found['cpu_x_json']} x the processor time of json.loads over the same file "
          "(at most 3 s, and 3 x the size)")
    for how, count in found["syncs"].items():
        print(f"  kernel.sessions.fsync={how}: {count['later']:g} sync calls for one append (at most 1), "
              f"{count['first']:g} for the one that makes the file")
    return 0


if __name__ == "__main__":
    sys.exit(main())
