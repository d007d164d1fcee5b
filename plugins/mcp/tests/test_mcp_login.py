"""Logins at remote servers: a person once, and then nobody for as long as that works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kernel_mcp.credentials import Credentials, place
from kernel_mcp.entries import Server

if TYPE_CHECKING:
    from conftest import Remote


def log_in(web: Any, *args: str, folder: Path, paste: bool = False) -> subprocess.CompletedProcess[str]:
    """``kernel mcp login web`` as a person does it, with or without a browser on this machine."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel", "mcp", "login", "web", "--no-browser", *args],
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    assert process.stderr is not None and process.stdin is not None
    said = ""
    while "Waiting." not in said:
        line = process.stderr.readline()
        said += line
        if not line:
            break
    address = next((w for w in said.split() if w.startswith(web.origin)), "")
    if address:

        class Stay(urllib.request.HTTPRedirectHandler):
            def redirect_request(self, *args: Any) -> None:
                return None

        try:
            urllib.request.build_opener(Stay).open(address)
        except urllib.error.HTTPError as redirect:
            back = redirect.headers["Location"]
        if paste:
            process.stdin.write(back + "\n")
            process.stdin.flush()
        else:
            threading.Thread(target=urllib.request.urlopen, args=(back,), daemon=True).start()
    out, error = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, out, said + error)


@pytest.fixture
def home(tmp_path: Path, web: Any, net: Remote) -> Path:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / ".claude.json").write_text(json.dumps({"mcpServers": {"web": {"type": "http", "url": web.url}}}))
    return tmp_path


@pytest.mark.parametrize("paste", [False, True])
def test_a_person_logs_in_and_out(net: Remote, home: Path, web: Any, paste: bool) -> None:
    """Registration, PKCE, the way back by port or by paste; the tokens are private; a later run has them."""
    web.token = "nobody has it"
    done = log_in(web, folder=home, paste=paste)
    assert done.returncode == 0 and "Logged in" in done.stdout, done.stderr
    assert (
        place().stat().st_mode & 0o777 == 0o600
        and web.token in place().read_text()
        and web.token not in done.stdout + done.stderr
    )
    asked = web.authorized[0]
    assert asked["redirect_uri"].startswith("http://localhost:") and asked["code_challenge_method"] == "S256"
    assert asked["scope"] == "read" and asked["resource"] == web.url
    assert net.outcome() == "done"
    gone = subprocess.run(
        [sys.executable, "-m", "kernel", "mcp", "logout", "web"], cwd=home, capture_output=True, text=True, check=False
    )
    assert gone.returncode == 0 and web.token not in place().read_text() and net.facts()[0] == "needs-auth"


def test_a_token_that_ran_out_is_refreshed_without_a_person(net: Remote, home: Path, web: Any) -> None:
    web.token = "nobody has it"
    log_in(web, folder=home)
    Credentials(Server(name="web", kind="http", scope="user", url=web.url), place()).expire()
    assert net.outcome() == "done" and web.granted[-1]["grant_type"] == "refresh_token"


def test_a_token_that_is_refused_is_refreshed_once_and_then_given_up(net: Remote, home: Path, web: Any) -> None:
    web.token = "nobody has it"
    log_in(web, folder=home)
    web.token = "revoked"
    assert net.outcome() == "done" and web.granted[-1]["grant_type"] == "refresh_token"
    web.token, web.refresh = "revoked again", "also revoked"
    assert net.facts()[0] == "needs-auth" and len(web.authorized) == 1


def test_scopes_of_the_entry_stay_pinned(home: Path, web: Any) -> None:
    entry = {"type": "http", "url": web.url, "oauth": {"scopes": "a b", "clientId": "mine"}}
    (home / "config" / ".claude.json").write_text(json.dumps({"mcpServers": {"web": entry}}))
    web.token = "nobody has it"
    assert log_in(web, folder=home).returncode == 0
    assert web.authorized[0]["scope"] == "a b" and web.authorized[0]["client_id"] == "mine" and not web.registered


def test_a_login_where_none_is_needed(home: Path, web: Any) -> None:
    assert "asked for no login" in log_in(web, folder=home).stdout
