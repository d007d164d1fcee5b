"""What the tests of memory write and how they look at a run."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kernel_memory.loader import Loader

from kernel import InstructionsLoaded, hookimpl
from kernel.testing import Kit, Run, call, module, text

WITH = ("memory", "tools-files")
END = text("done")


def write(root: Path, path: str, content: str | bytes = "Text.\n") -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return target


def kit(root: Path, *turns: Any, **options: Any) -> Kit:
    made = Kit(root, turns or [END] * 9, **{"installed": WITH, **options})
    made.harness.settings.managed_dir = str(root / ".managed")
    return made


def loader(root: Path, **options: Any) -> Loader:
    return Loader(kit(root, **options).open())


def names(found: list[Any], root: Path) -> list[str]:
    return [str(Path(i.path).relative_to(root)) if Path(i.path).is_relative_to(root) else i.path for i in found]


def seen(run: Run, request: int = -1) -> str:
    """All text of one request's messages."""
    return "\n".join(str(block.get("text") or block.get("content", "")) for message in run.requests[request]["messages"]
                     for block in message["content"])


def system(run: Run, block: int, request: int = -1) -> str:
    return str(run.requests[request]["system"][block]["text"])


def read(path: Path, name: str = "Read") -> Any:
    more = {"Write": {"content": "new\n"}, "Edit": {"old_string": "a", "new_string": "b"}}.get(name, {})
    return call(name, file_path=str(path), **more)


def listener() -> tuple[list[InstructionsLoaded], Any]:
    """Events as they come, and the hooks that note them."""
    events: list[InstructionsLoaded] = []

    def instructions_loaded(event: InstructionsLoaded) -> None:
        events.append(event)

    return events, module(instructions_loaded=hookimpl(instructions_loaded))


def told(run: Run, request: int = -1) -> list[str]:
    """The paths of instruction files in one request, in order."""
    return re.findall(r"^Contents of (\S+) \(", seen(run, request), re.MULTILINE)


def facts(**values: Any) -> Any:
    return SimpleNamespace(**values)
