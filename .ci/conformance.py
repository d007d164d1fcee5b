"""Run the conformance suite against the installed command line and compare with the expected failures.

The list may only shrink: a listed case that passes is an error, and so is an unlisted one that fails.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import yaml

EXPECTED = Path(__file__).parent / "conformance-expected.yaml"


def outcomes(suite: Path, *more: str) -> dict[str, str]:
    """``file::case`` -> passed, failed or skipped."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        subprocess.run([sys.executable, "-m", "pytest", "-q", "--tb=short", f"--junitxml={report}", str(suite),
                        "--cli", "kernel", *more], check=False)
        found: dict[str, str] = {}
        for case in ElementTree.parse(report).iter("testcase"):  # our own report
            name = f"{case.get('classname', '').rsplit('.', 1)[-1]}::{case.get('name')}"
            kinds = {child.tag for child in case}
            found[name] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        return found


def main() -> int:
    expected: dict[str, str] = yaml.safe_load(EXPECTED.read_text()) or {}
    suite = Path(sys.argv[1])
    got = outcomes(suite, "-n", "2")
    for name in [n for n, outcome in got.items() if outcome == "failed" and n not in expected]:
        print(f"{name}: failed beside others; once more and alone")
        again = outcomes(suite, "-k", name.rpartition("::")[2].partition("[")[0])
        got[name] = again.get(name, "failed")
    failed = {name for name, outcome in got.items() if outcome == "failed"}
    surprises = sorted(failed - expected.keys())
    cured = sorted(name for name in expected if got.get(name) == "passed")
    gone = sorted(name for name in expected if name not in got)
    for title, names in (("fails and is not listed", surprises), ("is listed and passes: take it off the list", cured),
                         ("is listed and does not exist", gone)):
        for name in names:
            print(f"{name}: {title}")
    passed = sum(outcome == "passed" for outcome in got.values())
    print(f"conformance: {passed} of {len(got)} pass, {len(expected)} are expected to fail")
    return 1 if surprises or cured or gone or not got else 0


if __name__ == "__main__":
    sys.exit(main())
