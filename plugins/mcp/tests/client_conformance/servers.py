"""Put the servers of ``test_mcp_real_servers.py`` into a folder: ``python servers.py DIR``. Installs once; pinned versions.

Exit codes: 0 what can be had is there, 77 neither npm nor pip could bring anything.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

NPM = ("@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31")
PYPI = ("mcp-server-time==2026.10.19", "mcp-server-git==2026.10.19")


def main() -> int:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    got = 0
    npm = shutil.which("npm")
    if npm and not (folder / "node_modules" / "@modelcontextprotocol" / "server-everything").exists():
        if not (folder / "package.json").exists():
            (folder / "package.json").write_text(json.dumps({"private": True, "name": "servers"}))
        subprocess.run([npm, "install", "--no-audit", "--no-fund", "--silent", *NPM], cwd=folder, check=False, timeout=600)
    got += (folder / "node_modules" / "@modelcontextprotocol" / "server-everything").exists()
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
        done = subprocess.run([str(python), "-m", "pip", "install", "-q", *PYPI], check=False, timeout=600)
        if done.returncode:
            shutil.rmtree(folder / "venv")
    got += python.exists()
    return 0 if got else 77


if __name__ == "__main__":
    sys.exit(main())
