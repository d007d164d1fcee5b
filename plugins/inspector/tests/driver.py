"""A real Chromium, spoken to over WebDriver: what the tests and the picture of the docs need of it, and no more."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


class Browser:
    """One window. ``close`` ends the browser and its driver."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 860) -> None:
        assert CHROMIUM and CHROMEDRIVER
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        folder.mkdir(parents=True, exist_ok=True)
        self._driver = subprocess.Popen(
            [CHROMEDRIVER, f"--port={self._port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._session = ""
        try:
            self._begin(folder, width, height)
        except BaseException:
            self.close()
            raise

    def _begin(self, folder: Path, width: int, height: int) -> None:
        for _ in range(100):
            try:
                self._ask("GET", "/status")
                break
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        made = self._ask(
            "POST",
            "/session",
            {
                "capabilities": {
                    "alwaysMatch": {
                        "browserName": "chrome",
                        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
                        "goog:chromeOptions": {
                            "binary": CHROMIUM,
                            "args": [*ARGUMENTS, f"--user-data-dir={folder}", f"--window-size={width},{height}"],
                        },
                    }
                }
            },
        )
        self._session = f"/session/{made['sessionId']}"
        self.size(width, height)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}{path}", data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(json.load(error)["value"]["message"]) from None

    def command(self, name: str, **params: Any) -> Any:
        """One of the DevTools protocol."""
        return self._ask("POST", f"{self._session}/goog/cdp/execute", {"cmd": name, "params": params})

    def size(self, width: int, height: int) -> None:
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        """``light`` or ``dark``."""
        self.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url: str) -> None:
        self._ask("POST", f"{self._session}/url", {"url": "about:blank"})
        self._ask("POST", f"{self._session}/url", {"url": url})
        self.until("return document.documentElement.dataset.ready === 'yes'")

    def run(self, script: str, *args: Any) -> Any:
        return self._ask("POST", f"{self._session}/execute/sync", {"script": script, "args": list(args)})

    def until(self, script: str, *args: Any, seconds: float = 15.0) -> Any:
        """Wait for a script to return something true."""
        end = time.monotonic() + seconds
        while not (found := self.run(script, *args)):
            assert time.monotonic() < end, (
                f"never true: {script}\n{self.run('return document.body.innerText')[:3000]}\n{self.log()}"
            )
            time.sleep(0.05)
        return found

    def keys(self, text: str) -> None:
        """Press keys; ``\\ue007`` is Enter, ``\\ue00c`` Escape, ``\\ue015`` the arrow down."""
        actions = [a for key in text for a in ({"type": "keyDown", "value": key}, {"type": "keyUp", "value": key})]
        self._ask("POST", f"{self._session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def text(self, selector: str = "body") -> str:
        return str(self.run("return document.querySelector(arguments[0])?.innerText || ''", selector))

    def log(self) -> list[str]:
        """What the console said since it was last asked."""
        return [entry["message"] for entry in self._ask("POST", f"{self._session}/se/log", {"type": "browser"})]

    def requested(self) -> list[str]:
        """The addresses that were requested since that was last asked."""
        events = [
            json.loads(e["message"])["message"] for e in self._ask("POST", f"{self._session}/se/log", {"type": "performance"})
        ]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("GET", f"{self._session}/screenshot")))

    def close(self) -> None:
        if self._session:
            try:
                self._ask("DELETE", self._session)
            except (OSError, AssertionError):
                pass
        self._driver.terminate()
        self._driver.wait(10)
