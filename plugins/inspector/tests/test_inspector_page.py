"""The page in a real Chromium."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_inspector.exporting import export_page
from kernel_inspector.model import SessionModel
from kernel_inspector.serving import Inspection, leading_page

SEARCH = "const q = document.querySelector('#query'); q.value = arguments[0]; q.dispatchEvent(new Event('input'))"
Show = Callable[[Path], Inspection]
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">",
    "</script><h1>owned</h1>",
    "user\u202egnp.exe",
    "\x1b[31mred\x07",
    "${alert(1)} {{7*7}} &amp; &lt;b&gt;",
    "a" * 1_000_000,
    "\ud83d\ude00 مرحبا שלום",
)


@pytest.fixture
def show() -> Iterator[Show]:
    servers: list[Inspection] = []

    def serve(path: Path) -> Inspection:
        model = SessionModel(path)
        model.poll()
        server = Inspection(model)
        threading.Thread(target=server.watch, daemon=True).start()
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
        return server

    yield serve
    for server in servers:
        server.stop()


def entry(number: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": content} | (
        {"id": f"msg_{number}", "model": "m", "usage": {"input_tokens": 5}} if role == "assistant" else {}
    )
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "sessionId": "s",
        "isSidechain": False,
        "timestamp": f"2026-01-02T03:{number // 60 % 60:02}:{number % 60:02}.000Z",
        "message": message,
        **more,
    }


def write(path: Path, entries: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(e, separators=(",", ":")) + "\n" for e in entries))
    return path


def chosen(browser: Any, text: str) -> None:
    """Click the row with that text."""
    browser.until("return [...document.querySelectorAll('.row')].some(r => r.innerText.includes(arguments[0]))", text)
    browser.run("[...document.querySelectorAll('.row')].find(r => r.innerText.includes(arguments[0])).click()", text)


def test_a_session_is_shown_without_an_error_and_without_an_outside_request(browser: Any, show: Show, played: Path) -> None:
    server = show(played)
    browser.log(), browser.requested()
    browser.open(server.url)
    assert browser.text("#title") == "Mend the totals"
    assert "TURN 1" in browser.text("#list").upper() and "Agent" in browser.text("#list")
    assert browser.run("return document.querySelectorAll('#chart .column').length") == 9
    assert browser.run("return document.querySelectorAll('#chart .broke').length") == 2
    totals = browser.text("#totals")
    assert "1 failed, 1 refused, 2 asked" in totals and "2 cache breaks" in totals and "people" in totals
    assert browser.log() == []
    asked = [url for url in browser.requested() if not url.startswith(("chrome:", "data:", "about:"))]
    assert asked and all(url.startswith(f"http://127.0.0.1:{server.server_port}/") for url in asked)
    assert not [url for url in asked if server.token in url.split("#")[0]]


def test_details_say_who_decided_and_what_hooks_said(browser: Any, show: Show, played: Path) -> None:
    browser.open(show(played).url)
    chosen(browser, "rm -rf build")
    browser.until("return document.querySelector('#detail').innerText.includes('rm -rf is not for agents')")
    said = browser.text("#detail")
    assert "decided by hook" in said and "command-hooks" in said and "guard.py" in said
    chosen(browser, "python3 -m unittest")
    browser.until("return document.querySelector('#detail').innerText.includes('Bash(python3 -m unittest *)')")
    assert "decided by rule" in browser.text("#detail") and "settings.json" in browser.text("#detail")
    chosen(browser, "shop/totals.py")
    browser.until("return document.querySelector('#detail h2').innerText === 'Read'")
    chosen(browser, "Edit")
    browser.until("return document.querySelector('#detail pre.gone') && document.querySelector('#detail pre.come')")
    assert "whoever was asked" in browser.text("#detail")


def test_the_keyboard_alone_is_enough(browser: Any, show: Show, played: Path) -> None:
    browser.open(show(played).url)
    browser.run("document.querySelector('#list').focus()")
    browser.keys("jj")
    browser.until("return document.querySelector('.row[aria-selected=true]')?.id === 'row-2'")
    browser.keys("n")
    browser.until("return document.querySelector('.row.turn[aria-selected=true]')?.innerText.includes('Turn 2')")
    browser.keys("/")
    assert browser.run("return document.activeElement.id") == "query"
    browser.keys("CHANGELOG")
    browser.until("return document.querySelectorAll('.hit').length > 1")
    browser.keys("\ue007")
    browser.until("return document.querySelector('#hits').hidden && document.activeElement.id === 'list'")
    browser.keys("w")
    browser.until("return document.querySelectorAll('#chart .span').length > 3")
    browser.keys("]")
    browser.until(
        "return !document.querySelector('#lanes [aria-current=true]').innerText.startsWith('main') "
        "&& document.querySelector('#list').innerText.includes('Task')"
    )
    browser.keys("?")
    assert browser.run("return document.querySelector('#help').open")
    browser.keys("\ue00c")


def test_the_time_of_a_turn_shows_agents_as_lanes(browser: Any, show: Show, played: Path) -> None:
    browser.open(show(played).url)
    browser.keys("w")
    browser.until("return document.querySelectorAll('#chart .name').length === 3")
    assert {"main", "Find other rounding", "Find the tests"} == set(
        browser.run("return [...document.querySelectorAll('#chart .name')].map(n => n.textContent)")
    )
    browser.run("[...document.querySelectorAll('.badge.lane')][0].click()")
    browser.until("return document.querySelector('#list').innerText.includes('Where else is money rounded?')")


def test_what_strangers_wrote_is_text(browser: Any, show: Show, tmp_path: Path) -> None:
    entries = [entry(0, "user", "begin " + HOSTILE[0]), {"type": "custom-title", "customTitle": HOSTILE[0], "sessionId": "s"}]
    for n, text in enumerate(HOSTILE):
        entries += [
            entry(
                3 * n + 1,
                "assistant",
                [
                    {"type": "text", "text": text},
                    {"type": "tool_use", "id": f"c{n}", "name": text[:50], "input": {"command": text, text[:50]: [text[:99]]}},
                ],
            ),
            entry(
                3 * n + 2,
                "user",
                [{"type": "tool_result", "tool_use_id": f"c{n}", "content": text}],
                toolUseResult={text[:50]: text},
            ),
            entry(3 * n + 3, "user", text),
        ]
    path = write(tmp_path / "p" / "hostile.jsonl", entries)
    server = show(path)
    browser.log()
    browser.open(server.url)
    many = browser.run("return document.querySelector('.row').getAttribute('aria-setsize')")
    for _ in range(int(many)):
        browser.keys("j")
        browser.until("return document.querySelector('#detail h2')")
    for word in ("owned", "gnp", "red"):
        browser.run(
            "const q = document.querySelector('#query'); q.value = arguments[0]; q.dispatchEvent(new Event('input'))", word
        )
        browser.until("return document.querySelectorAll('.hit').length > 0")
    assert "U+202E" in browser.text("#hits") or "U+202E" in browser.text("#list")
    assert browser.run(
        "return [document.title.startsWith('<script>'), document.querySelectorAll('h1').length,"
        " document.querySelectorAll('#list img, #detail img, #list script').length]"
    ) == [True, 1, 0]
    export_page(server.model, tmp_path / "page.html")
    assert "\u2028" not in (tmp_path / "page.html").read_text()
    browser.open((tmp_path / "page.html").as_uri())
    assert browser.run("return document.querySelectorAll('h1').length") == 1 and browser.run("return document.title") != "owned"
    assert [line for line in browser.log() if "favicon" not in line] == []


def test_a_browser_is_led_to_the_page_by_a_file(browser: Any, show: Show, played: Path) -> None:
    """The navigation comes from elsewhere, which the browser says; the token stands behind the hash all the same."""
    server = show(played)
    page = leading_page(server.url)
    try:
        browser.open(page.as_uri())
    finally:
        page.unlink()
    assert browser.text("#title") == "Mend the totals"


def test_what_was_searched_for_is_marked_in_the_details(browser: Any, show: Show, tmp_path: Path) -> None:
    entries = [entry(0, "user", "go"), entry(1, "assistant", [{"type": "text", "text": "line\n" * 3000 + "a Needle in it"}])]
    browser.open(show(write(tmp_path / "p" / "needle.jsonl", entries)).url)
    browser.run(SEARCH, "needle")
    browser.until("return document.querySelectorAll('.hit').length === 1")
    browser.run("document.querySelector('.hit').click()")
    browser.until("return CSS.highlights.get('found')?.size === 1")
    assert browser.until("return document.querySelector('#detail pre').scrollTop > 10000")


def test_an_exported_page_needs_no_server(browser: Any, played: Path, tmp_path: Path) -> None:
    model = SessionModel(played)
    model.poll()
    target = tmp_path / "page.html"
    assert export_page(model, target) == target.stat().st_size and target.stat().st_mode & 0o777 == 0o600
    browser.log(), browser.requested()
    browser.open(target.as_uri())
    assert browser.text("#title") == "Mend the totals" and browser.text("#live") == "exported"
    assert browser.run("return document.querySelectorAll('#chart .column').length") == 9
    chosen(browser, "rm -rf build")
    browser.until("return document.querySelector('#detail').innerText.includes('guard.py')")
    browser.keys("w")
    browser.until("return document.querySelectorAll('#chart .name').length === 3")
    for query, many in (("rounded", 3), ("is:refused", 1), ("by:person tool:edit", 1)):
        browser.run(SEARCH, query)
        browser.until("return document.querySelectorAll('.hit').length >= arguments[0]", many)
    browser.run("[...document.querySelectorAll('.badge.lane')][0].click()")
    browser.until("return document.querySelector('#list').innerText.includes('Where else is money rounded?')")
    asked = [url for url in browser.requested() if not url.startswith(("chrome:", "data:", "about:"))]
    assert set(asked) <= {target.as_uri()} and browser.log() == []


def test_a_number_at_the_top_leads_to_what_it_counts(browser: Any, show: Show, played: Path) -> None:
    browser.open(show(played).url)
    browser.run("[...document.querySelectorAll('#totals button')].find(b => b.innerText === '1 refused').click()")
    browser.until("return document.querySelectorAll('.hit').length === 1")
    browser.keys("\ue007")
    browser.until("return document.querySelector('.row[aria-selected=true]')?.innerText.includes('rm -rf build')")
    browser.until("return document.querySelector('.values')?.innerText.includes('Request 4')")


def test_a_very_long_text_is_shown_in_part_and_wholly_on_request(browser: Any, show: Show, tmp_path: Path) -> None:
    path = write(tmp_path / "p" / "long.jsonl", [entry(0, "user", "x" * 300_000 + "END")])
    browser.open(show(path).url)
    assert not browser.text("#detail pre").endswith("END")
    browser.run("document.querySelector('#detail .more').click()")
    browser.until("return document.querySelector('#detail pre').textContent.endsWith('END')")


def test_what_a_running_session_does_appears(browser: Any, show: Show, tmp_path: Path) -> None:
    path = write(tmp_path / "p" / "live.jsonl", [entry(0, "user", "the first prompt")])
    browser.open(show(path).url)
    with path.open("a") as file:
        file.write(
            json.dumps(entry(1, "assistant", [{"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "sleep 9"}}]))
            + "\n"
        )
    browser.until("return document.querySelector('.row.running')?.innerText.includes('sleep 9')")
    with path.open("a") as file:
        file.write(
            json.dumps(entry(2, "user", [{"type": "tool_result", "tool_use_id": "c", "content": "slept"}])) + "\n" + '{"torn'
        )
    browser.until("return document.querySelector('.row.tool.ok')")
    path.unlink()
    browser.until("return document.querySelector('#live').innerText === 'deleted'")
    assert "sleep 9" in browser.text("#list")


def test_a_real_run_is_followed_to_its_end(browser: Any, show: Show, played: Path, tmp_path: Path) -> None:
    program = [sys.executable, str(Path(__file__).parent / "showcase.py"), str(tmp_path), "--pace", "0.03"]
    env = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    with subprocess.Popen(program, env=env, stdout=subprocess.PIPE, text=True) as run:
        until = time.monotonic() + 30
        while not (found := list(tmp_path.glob("config/projects/*/*.jsonl"))):
            assert time.monotonic() < until and run.poll() is None
            time.sleep(0.02)
        browser.log()
        browser.open(show(found[0]).url)
        browser.until("return document.querySelector('#live').innerText === 'running'")
        browser.until("return document.querySelector('.row.running')")
        browser.until("return document.querySelectorAll('#lanes button').length === 3", seconds=30)
        browser.keys("G")
        browser.until("return document.querySelector('#live').innerText === 'ended'", seconds=60)
        browser.until("return document.querySelector('#list').innerText.includes('Shall I add a test')")
        assert run.wait(30) == 0
    browser.until("return document.querySelectorAll('#chart .column').length === 9")
    assert not browser.run("return document.querySelector('.row.running')") and browser.log() == []


def test_thirty_thousand_entries_are_a_few_rows_on_the_screen(browser: Any, show: Show, tmp_path: Path) -> None:
    entries = [entry(0, "user", "the first prompt")]
    for n in range(1, 30_000, 2):
        entries += [
            entry(n, "assistant", [{"type": "tool_use", "id": f"c{n}", "name": "Bash", "input": {"command": f"step {n}"}}]),
            entry(n + 1, "user", [{"type": "tool_result", "tool_use_id": f"c{n}", "content": f"done {n} " + "y" * 200}]),
        ]
    browser.open(show(write(tmp_path / "p" / "large.jsonl", entries)).url)
    assert browser.run("return document.querySelectorAll('.row').length") < 80
    browser.keys("G")
    browser.until("return document.querySelector('#list').innerText.includes('step 29999')")
    assert browser.run("return document.querySelectorAll('.row').length") < 80
    assert browser.run("return document.querySelectorAll('#chart .column').length") <= 240
    browser.run("document.querySelector('#list').scrollTop = 200000")
    browser.until("return [...document.querySelectorAll('.row .text')].filter(t => t.innerText.startsWith('step')).length > 10")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800])
def test_it_can_be_read(browser: Any, show: Show, played: Path, tmp_path: Path, scheme: str, width: int) -> None:
    """Nothing runs out of the page, and every text has a contrast of at least 4.5 to what is behind it."""
    browser.prefer(scheme)
    browser.size(width, 860)
    browser.open(show(played).url)
    browser.run("localStorage.removeItem('kernel-inspect-theme')")
    chosen(browser, "rm -rf build") if width > 900 else None
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return document.documentElement.dataset.theme") == scheme
    poor = browser.run(CONTRAST)
    assert poor == []
    browser.picture(tmp_path / f"{scheme}-{width}.png")
    browser.size(1280, 860)
    browser.prefer("light")


CONTRAST = """
const parse = (text) => { const c = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  c.fillStyle = text; c.fillRect(0, 0, 1, 1);
  return [...c.getImageData(0, 0, 1, 1).data]; };
const light = ([r, g, b]) =>
  [r, g, b].map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, n) => sum + v * [0.2126, 0.7152, 0.0722][n], 0);
const behind = (node) => { for (let at = node; at; at = at.parentElement) {
    const c = parse(getComputedStyle(at).backgroundColor);
    if (c[3] === 255) return c;
  }
  return [255, 255, 255, 255]; };
const poor = new Set();
for (const node of document.querySelectorAll('body *')) {
  if (![...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim())) continue;
  if (!node.getClientRects().length || node.closest('svg, [hidden]')) continue;
  const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < 4.5) poor.add(`${node.tagName}.${node.className} ${ratio.toFixed(2)} ${node.textContent.slice(0, 30)}`);
}
return [...poor];
"""
