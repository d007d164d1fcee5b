"""A harness of 200 plugins: resolve and lock, put in place, verify, run; from a folder of wheels, without a network.

    python -m benchmarks.harness_file [PLUGINS]

Prints the median of five, wall clock and processor time, each in a process of its own.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from importlib import metadata
from pathlib import Path

FILES, LIBRARIES, ROUNDS = 10, 20, 5
BODY = "def f(a, b):\n    return a + b\n" * 60


def wheel(folder: Path, name: str, version: str, files: dict[str, str], requires: list[str], entry: str = "") -> None:
    stem = f"{name.replace('-', '_')}-{version}"
    needs = "".join(f"Requires-Dist: {text}\n" for text in requires)
    info = {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
            "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "RECORD": "",
            **({"entry_points.txt": f"[kernel.plugins]\n{entry}\n"} if entry else {})}
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as out:
        for path, text in (files | {f"{stem}.dist-info/{key}": value for key, value in info.items()}).items():
            out.writestr(path, text)


def plugins(folder: Path, count: int) -> None:
    for n in range(LIBRARIES):
        for version in ("1.0", "1.5"):
            wheel(folder, f"lib-{n}", version, {f"lib_{n}/__init__.py": BODY}, [])
    for n in range(count):
        package = f"plug_{n}"
        files = {f"{package}/m{m}.py": BODY for m in range(FILES)}
        files |= {f"{package}/__init__.py": "", f"{package}/plugin.py": "", f"{package}/skills/x/SKILL.md": "x",
                  f"{package}/.claude-plugin/plugin.json": json.dumps({"name": f"plug-{n}", "version": "1.0"})}
        needs = ["kernel-harness>=0.1", f"lib-{n % LIBRARIES}>=1"]
        wheel(folder, f"plug-{n}", "1.0", files, needs, f"plug-{n} = {package}.plugin")


def installed(folder: Path) -> None:
    """Wheels without their content for what the kernel needs: their number counts here, not what they do."""
    from packaging.requirements import Requirement

    waiting, seen = ["kernel-harness"], set[str]()
    while waiting:
        name = waiting.pop().lower()
        if name not in seen:
            seen.add(name)
            needs = [r for text in metadata.distribution(name).requires or [] if (r := Requirement(text)).name != "editables"
                     and (r.marker is None or r.marker.evaluate({"extra": ""}))]
            waiting += [r.name for r in needs]
            if name != "kernel-harness":
                wheel(folder, name, metadata.version(name), {f"{name}.py": BODY}, [str(r) for r in needs])


def measure(what: str, folder: Path, *args: str) -> None:
    wall, cpu = [], []
    for _ in range(ROUNDS):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, "-m", "kernel", "harness", *args], cwd=folder, check=True, capture_output=True,
                       env={**os.environ, "PIP_CONFIG_FILE": os.devnull})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(time.perf_counter() - start)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"{what:<22} {statistics.median(wall):6.2f} s   processor {statistics.median(cpu):5.2f} s")


def main() -> None:
    from kernel.lock import Lock

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory(prefix="kernel-bench-") as temporary:
        folder = Path(temporary)
        wheels = folder / "wheels"
        wheels.mkdir()
        plugins(wheels, count)
        installed(wheels)
        lines = "".join(f"  - plug-{n}\n" for n in range(count))
        (folder / "harness.yaml").write_text(f"harness: 1\nplugins:\n{lines}")
        offline = ("--quiet", "--no-index", "--find-links", str(wheels))
        measure("process alone", folder, "schema")
        measure("resolve and lock", folder, "lock", *offline)
        measure("sync, in place already", folder, "sync", *offline)
        measure("verify", folder, "verify")
        seconds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            lock = Lock(folder / "harness.yaml")
            lock.verify()
            seconds.append(time.perf_counter() - start)
        print(f"{'of each run':<22} {statistics.median(seconds):6.3f} s   {len(lock.files)} files of {count} plugins")


if __name__ == "__main__":
    main()
