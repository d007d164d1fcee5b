"""The picture in the docs: ``python plugins/inspector/tests/picture.py docs/inspector.png [--dark]``."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parent))

from driver import Browser
from kernel_inspector.model import SessionModel
from kernel_inspector.serving import Inspection
from showcase import play


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["CLAUDE_CONFIG_DIR"] = str(folder / "config")
        model = SessionModel(anyio.run(lambda: play(folder, pace=0.02)))
        model.poll()
        server = Inspection(model)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = Browser(folder / "chromium", 1280, 820)
        try:
            browser.prefer("dark" if given.dark else "light")
            browser.open(server.url)
            browser.run("[...document.querySelectorAll('.row')].find(r => r.innerText.includes('rm -rf')).click()")
            browser.until("return document.querySelector('#detail').innerText.includes('guard.py')")
            time.sleep(0.3)
            browser.picture(given.picture)
        finally:
            browser.close()
            server.stop()


if __name__ == "__main__":
    main()
