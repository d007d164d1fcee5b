"""The page as one file: the same modules and the same data, without a server and without a request to anywhere."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import Any

from kernel_inspector import views
from kernel_inspector.details import details
from kernel_inspector.lane import Lane
from kernel_inspector.model import SessionModel, encoded
from kernel_inspector.serving import asset

MODULES = ("dom", "data", "list", "detail", "charts", "app")
"""In the order in which they need each other."""
TEXT = 20_000
"""Characters of a text that an exported page holds."""


def export_page(model: SessionModel, target: Path) -> int:
    """Write the page as a new file of mode 0600, in the place of one that is there; its size in bytes.

    :raises OSError: it cannot be written.
    """
    data = encoded({"session": {**views.summary(model), "running": False},
                    "lanes": {lane.id: _lane(model, lane) for lane in model.lanes.values()}})
    script = "\n".join(map(_inlined, MODULES))
    style = asset("style.css").decode()
    policy = (f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; "
              "form-action 'none'")
    page = asset("index.html").decode()
    icon = base64.b64encode(asset("icon.svg")).decode()
    for old, new in (('<link rel="icon" href="icon.svg">', f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
                      f'<link rel="icon" href="data:image/svg+xml;base64,{icon}">'),
                     ('<link rel="stylesheet" href="style.css">', f"<style>{style}</style>"),
                     ('<script type="module" src="app.js"></script>\n', ""),
                     ("</body>", f'<script type="application/json" id="session-data">{_harmless(data)}</script>\n'
                      f'<script type="module">{script}</script>\n</body>')):
        assert page.count(old) == 1, old
        page = page.replace(old, new)
    raw = page.encode()
    if os.path.lexists(target) and not stat.S_ISREG(target.lstat().st_mode):
        raise OSError(errno.EINVAL, "what is there is no ordinary file")
    file, new = tempfile.mkstemp(prefix=".kernel-inspect-", dir=target.parent)
    try:
        with os.fdopen(file, "wb") as out:
            out.write(raw)
        os.replace(new, target)
    except BaseException:
        os.unlink(new)
        raise
    return len(raw)


def _lane(model: SessionModel, lane: Lane) -> dict[str, Any]:
    return {"rows": lane.rows, "turns": lane.turns, "requests": views.requests(lane),
            "spans": [views.spans(model, lane, turn) for turn in range(max(1, len(lane.turns)))],
            "details": [_short(details(model, lane, row)["sections"]) for row in range(len(lane.rows))]}


def _short(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for section in sections:
        for key in ("text", "before", "after"):
            text = section.get(key)
            if isinstance(text, str) and len(text) > TEXT:
                section[key] = f"{text[:TEXT]}\n... ({section.get('cut', len(text)):,} characters in all; not exported)"
        section.pop("cut", None)
    return sections


def _inlined(name: str) -> str:
    """A module as part of one script: a function of its own that returns what it exports."""
    module = asset(f"{name}.js").decode()
    exports = ", ".join(re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", module, re.MULTILINE))
    module = re.sub(r'^import (\{.*?\}) from "\./(\w+)\.js";$', r"const \1 = $\2;", module, flags=re.MULTILINE)
    module = re.sub(r"^export ", "", module, flags=re.MULTILINE)
    return f"const ${name} = await (async () => {{\n{module}\nreturn {{{exports}}};\n}})();"


def _harmless(data: bytes) -> str:
    """JSON in which nothing ends the element that it stands in."""
    return data.decode().replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
