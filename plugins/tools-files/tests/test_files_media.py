"""Read: images, PDF files and notebooks (tools contract, 4.2)."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from kernel_tools_files import images, pdf

HAS_PDFTOPPM = shutil.which("pdftoppm") is not None


# -- images ---------------------------------------------------------------------------------------------------------------
def png(width: int, height: int, noise: bool = False) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    state, rows = 1, bytearray()
    for _ in range(height):
        rows.append(0)
        for _ in range(width * 3 if noise else 0):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            rows.append(state >> 16 & 255)
        if not noise:
            rows += b"\x20\x40\x60" * width
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(rows), 1)) + chunk(b"IEND", b""))


GIF = b"GIF89a" + struct.pack("<HH", 7, 5) + b"\x80\0\0" + b"\0" * 6 + b";"
JPEG = (b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\x00\x11\x08" + struct.pack(">HH", 5, 7) + b"\x03"
        + b"\0" * 9 + b"\xff\xd9")
WEBP_X = b"RIFF\x1a\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + b"\x06\0\0" + b"\x04\0\0"
WEBP_L = b"RIFF\x1a\0\0\0WEBPVP8L\x0a\0\0\0\x2f" + struct.pack("<I", 6 | 4 << 14) + b"\0" * 5
WEBP_ = b"RIFF\x1a\0\0\0WEBPVP8 \x0a\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 7, 5) + b"\0" * 4


@pytest.mark.parametrize(("raw", "kind"), [
    (png(7, 5), "image/png"), (GIF, "image/gif"), (JPEG, "image/jpeg"), (WEBP_X, "image/webp"), (WEBP_L, "image/webp"),
    (WEBP_, "image/webp")])
def test_images_are_known_by_their_content_and_passed_on(bench: Any, raw: bytes, kind: str) -> None:
    path = bench.write("picture.txt", raw)
    result = bench("Read", file_path=str(path))
    assert result.structured == {"type": "image", "file": {
        "base64": b64encode(raw).decode(), "type": kind, "originalSize": len(raw),
        "dimensions": {"originalWidth": 7, "originalHeight": 5, "displayWidth": 7, "displayHeight": 5}}}
    assert result.content == [
        {"type": "image", "source": {"type": "base64", "media_type": kind, "data": b64encode(raw).decode()}}]
    assert bench("Read", file_path=str(path)).structured["type"] == "file_unchanged"


@pytest.mark.parametrize("raw", [b"\xff\xd8\xff\xd9", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8X"])
def test_an_image_whose_header_is_not_understood_is_passed_on_without_its_size(bench: Any, raw: bytes) -> None:
    assert "dimensions" not in bench("Read", file_path=str(bench.write("a", raw))).structured["file"]


@pytest.fixture
def without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(images, "import_module", missing)


@pytest.mark.parametrize("over", [0, 1])
@pytest.mark.usefixtures("without_pillow")
def test_the_limits_without_pillow(bench: Any, monkeypatch: pytest.MonkeyPatch, over: int) -> None:
    raw = png(7, 5)
    monkeypatch.setattr(images, "GOOD_BYTES", 10)
    monkeypatch.setattr(images, "MAX_BYTES", len(raw) - over)
    path = str(bench.write("a.png", raw))
    if over:
        error = bench.error("Read", file_path=path)
        assert error.code == "too_large" and "7 x 5" in error.message and "convert" in error.message
    else:
        assert bench("Read", file_path=path).structured["file"]["base64"] == b64encode(raw).decode()


@pytest.mark.parametrize(("side", "code"), [(8_000, None), (8_001, "too_large")])
@pytest.mark.usefixtures("without_pillow")
def test_the_largest_side(bench: Any, side: int, code: str | None) -> None:
    path = str(bench.write("a.png", png(side, 1)))
    if code:
        assert bench.error("Read", file_path=path).code == code
    else:
        bench("Read", file_path=path)


def test_an_image_without_pixels_is_an_error(bench: Any) -> None:
    assert bench.error("Read", file_path=str(bench.write("a.png", png(0, 0)))).code == "unreadable"


@pytest.mark.parametrize(("size", "shown", "kind"), [
    ((4_000, 1_000), (2_000, 500), "image/png"), ((600, 600), (600, 600), "image/jpeg")])
def test_pillow_makes_large_images_smaller(bench: Any, size: tuple[int, int], shown: tuple[int, int], kind: str) -> None:
    pytest.importorskip("PIL")
    file = bench("Read", file_path=str(bench.write("a.png", png(*size, noise=size == shown)))).structured["file"]
    assert file["dimensions"] == {"originalWidth": size[0], "originalHeight": size[1], "displayWidth": shown[0],
                                  "displayHeight": shown[1]}
    data = b64decode(file["base64"])
    assert file["type"] == images.media_type(data) == kind and len(data) <= images.GOOD_BYTES


def test_pillow_says_what_is_broken(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    monkeypatch.setattr(images, "GOOD_BYTES", 10)
    assert bench.error("Read", file_path=str(bench.write("a.png", png(50, 50)[:90]))).code == "unreadable"


# -- PDF --------------------------------------------------------------------------------------------------------------------
def pdf_file(pages: int, *, compressed: bool = False, trailer: bytes = b"", counted: bool = True) -> bytes:
    """A small document: catalogue, page tree, pages; the objects in the open or in an object stream."""
    kids = b" ".join(b"%d 0 R" % (3 + n) for n in range(pages))
    count = b"/Count %d" % pages if counted else b""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>",
               b"<< /Type /Pages /Kids [%b] %b /Resources << /Font << >> >> >>" % (kids, count)]
    objects += [b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 72 72] >>"] * pages
    out = bytearray(b"%PDF-1.5\n")
    offsets = []
    if compressed:
        heads, bodies = b"", b""
        for number, body in enumerate(objects, 1):
            heads += b"%d %d " % (number, len(bodies))
            bodies += body + b" "
        data = zlib.compress(heads + bodies)
        out += (b"90 0 obj\n<< /Type /ObjStm /N %d /First %d /Length %d /Filter /FlateDecode >>\nstream\n"
                % (len(objects), len(heads), len(data))) + data + b"\nendstream\nendobj\n"
    else:
        for number, body in enumerate(objects, 1):
            offsets.append(len(out))
            out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    at = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1) + b"".join(b"%010d 00000 n \n" % o for o in offsets)
    return bytes(out) + b"trailer << /Size %d /Root 1 0 R %b >>\nstartxref\n%d\n%%%%EOF\n" % (len(offsets) + 1, trailer, at)


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("pages", [1, 10])
def test_a_short_document_is_given_as_a_whole(bench: Any, pages: int, compressed: bool) -> None:
    raw = pdf_file(pages, compressed=compressed)
    path = bench.write("a.pdf", raw)
    result = bench("Read", file_path=str(path))
    assert result.structured == {"type": "pdf", "file": {
        "filePath": str(path), "base64": b64encode(raw).decode(), "originalSize": len(raw)}}
    (block,) = result.content
    assert block["type"] == "document" and block["source"]["media_type"] == "application/pdf"


@pytest.mark.parametrize("compressed", [False, True])
def test_a_long_document_needs_pages(bench: Any, compressed: bool) -> None:
    error = bench.error("Read", file_path=str(bench.write("a.pdf", pdf_file(11, compressed=compressed))))
    assert error.code == "too_large" and "11 pages" in error.message and "pages=" in error.message


@pytest.mark.parametrize("raw", [
    pdf_file(1, trailer=b"/Encrypt 9 0 R"), pdf_file(1)[:-8], b"%PDF-1.4\n",
    b"%PDF-1.7\n" + b"<<" * 5_000 + b"/Type /Pages" + b"\n%%EOF", b"%PDF-1.7\nstream\n" * 500 + b"%%EOF"])
def test_protected_and_broken_documents_are_an_error(bench: Any, raw: bytes) -> None:
    assert bench.error("Read", file_path=str(bench.write("a.pdf", raw))).code == "unreadable"


def test_pages_are_counted_one_by_one_where_the_tree_has_no_count() -> None:
    assert pdf.page_count(pdf_file(3, counted=False)) == 3


def test_an_outline_is_not_taken_for_the_page_tree() -> None:
    assert pdf.page_count(pdf_file(2).replace(b"%PDF-1.5\n", b"%PDF-1.5\n7 0 obj << /Type /Outlines /Count 99 >> endobj\n")) == 2


def test_the_size_limit_of_a_document(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = pdf_file(1)
    path = str(bench.write("a.pdf", raw))
    monkeypatch.setattr(pdf, "MAX_BYTES", len(raw) - 1)
    assert bench.error("Read", file_path=path).code == "too_large"
    monkeypatch.setattr(pdf, "MAX_BYTES", len(raw))
    bench("Read", file_path=path)


@pytest.mark.parametrize(("pages", "found"), [
    ("3", (3, 3)), ("1-5", (1, 5)), (" 2 - 4 ", (2, 4)), ("5-99", (5, 22)), ("3-22", (3, 22))])
def test_ranges_of_pages(pages: str, found: tuple[int, int]) -> None:
    assert pdf.wanted_pages(pages, 22) == found


@pytest.mark.parametrize("pages", ["0", "4-2", "23", "a", "1,2", "-3", "1-", "2-22", "1-99"])
def test_ranges_that_cannot_be(bench: Any, pages: str) -> None:
    """Out of order, outside, unreadable, or more than twenty."""
    error = bench.error("Read", file_path=str(bench.write("a.pdf", pdf_file(22))), pages=pages)
    assert error.code == "invalid_arguments" and "pages" in error.message


@pytest.mark.skipif(not HAS_PDFTOPPM, reason="pdftoppm is not installed")
def test_pages_are_rendered_as_images(bench: Any) -> None:
    path = bench.write("a.pdf", pdf_file(12))
    result = bench("Read", file_path=str(path), pages="11-12")
    file = result.structured["file"]
    assert result.structured["type"] == "parts" and file["count"] == 2
    assert len(list(Path(file["outputDir"]).iterdir())) == 2
    assert [b["type"] for b in result.content] == ["text", "image", "image"] and "11 to 12 of 12" in result.content[0]["text"]
    shutil.rmtree(file["outputDir"])


def test_without_the_program_the_error_says_what_is_supported(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    error = bench.error("Read", file_path=str(bench.write("a.pdf", pdf_file(3))), pages="1")
    assert error.code == "unsupported" and "pdftoppm" in error.message and "without pages" in error.message


def test_pages_of_something_else_are_refused(bench: Any) -> None:
    assert bench.error("Read", file_path=str(bench.write("a.txt", "x")), pages="1").code == "invalid_arguments"


# -- notebooks ------------------------------------------------------------------------------------------------------------
NOTEBOOK = {"cells": [
    {"cell_type": "markdown", "id": "intro", "metadata": {}, "source": ["# Title\n", "text"]},
    {"cell_type": "code", "execution_count": 3, "metadata": {}, "source": "plot()", "outputs": [
        {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]},
        {"output_type": "display_data", "metadata": {},
         "data": {"text/plain": "<Figure>", "image/png": b64encode(png(2, 2)).decode()}},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\x1b[31mE\x1b[0m: v"]}]}],
    "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


def test_a_notebook_is_shown_cell_by_cell_with_its_outputs(bench: Any) -> None:
    path = bench.write("n.ipynb", json.dumps(NOTEBOOK))
    result = bench("Read", file_path=str(path))
    cells = result.structured["file"]["cells"]
    assert cells[0] == {"cellId": "intro", "cellType": "markdown", "source": "# Title\ntext"}
    assert {k: cells[1][k] for k in ("cellId", "language", "executionCount")} == {
        "cellId": "cell-1", "language": "python", "executionCount": 3}
    assert [o.get("text") for o in cells[1]["outputs"]] == ["a\nb\n", "<Figure>", "E: v"]
    assert [b["type"] for b in result.content] == ["text", "image", "text"]
    assert '<cell id="intro" type="markdown">\n# Title\ntext\n</cell>' in result.content[0]["text"]


@pytest.mark.parametrize("chars", [10_000, 10_001])
def test_a_long_output_is_cut(bench: Any, chars: int) -> None:
    cell = {"cell_type": "code", "source": "", "outputs": [{"output_type": "stream", "text": "x" * chars}]}
    path = bench.write("n.ipynb", json.dumps({"cells": [cell]}))
    text = bench("Read", file_path=str(path)).content[0]["text"]
    assert ("output cut" in text) == (chars > 10_000) and text.count("x") == 10_000


@pytest.mark.parametrize("raw", [
    b"", b"{}", b"[]", b'{"cells": 3}', b'{"cells": [3]}', b"not json", b"[" * 100_000, b'{"cells": [}'])
def test_what_is_no_notebook(bench: Any, raw: bytes) -> None:
    assert bench.error("Read", file_path=str(bench.write("n.ipynb", raw))).code == "invalid_notebook"


@pytest.mark.parametrize("cell", [
    {}, {"cell_type": "code", "outputs": [1, {}, {"data": 3}, {"output_type": "error"}]}, {"source": 5}])
def test_odd_cells_do_not_break_the_view(bench: Any, cell: dict[str, Any]) -> None:
    bench("Read", file_path=str(bench.write("n.ipynb", json.dumps({"cells": [cell], "metadata": 3}))))


def test_a_notebook_over_the_token_limit_is_an_error(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "10")
    error = bench.error("Read", file_path=str(bench.write("n.ipynb", json.dumps(NOTEBOOK))))
    assert error.code == "too_large" and "jq" in error.message


def test_a_file_over_a_hundred_megabytes_is_an_error(bench: Any) -> None:
    path = bench.root / "n.ipynb"
    with path.open("wb") as file:
        file.truncate(100_000_001)
    error = bench.error("Read", file_path=str(path))
    assert error.code == "too_large" and "100000000" in error.message


# -- NotebookEdit -----------------------------------------------------------------------------------------------------------
def edited(bench: Any, notebook: Any, **input: Any) -> tuple[Any, dict[str, Any]]:
    path = notebook if isinstance(notebook, Path) else bench.write("n.ipynb", json.dumps(notebook, indent=1) + "\n")
    bench("Read", file_path=str(path))
    result = bench("NotebookEdit", notebook_path=str(path), **input)
    return result, json.loads(path.read_text())


def test_replacing_code_clears_outputs_and_the_count(bench: Any) -> None:
    result, after = edited(bench, NOTEBOOK, cell_id="cell-1", new_source="x = 1\ny = 2")
    assert after["cells"][1] == {
        "cell_type": "code", "execution_count": None, "metadata": {}, "source": "x = 1\ny = 2", "outputs": []}
    assert after["cells"][0] == NOTEBOOK["cells"][0]  # type: ignore[index]
    structured = result.structured
    assert structured["old_source"] == "plot()" and structured["language"] == "python" and structured["edit_mode"] == "replace"
    assert structured["original_file"] == json.dumps(NOTEBOOK, indent=1) + "\n"
    assert json.loads(structured["updated_file"]) == after


@pytest.mark.parametrize(("behind", "at"), [(None, 0), ("intro", 1), ("cell-1", 2)])
def test_inserting(bench: Any, behind: str | None, at: int) -> None:
    input = {"cell_id": behind} if behind else {}
    result, after = edited(bench, NOTEBOOK, edit_mode="insert", cell_type="markdown", new_source="new", **input)
    cell = after["cells"][at]
    assert len(after["cells"]) == 3 and cell["source"] in ("new", ["new"]) and cell["id"] == result.structured["cell_id"]
    assert "outputs" not in cell and "old_source" not in result.structured


def test_a_notebook_without_ids_gets_none(bench: Any) -> None:
    old = {**NOTEBOOK, "nbformat_minor": 4, "cells": [{"cell_type": "markdown", "metadata": {}, "source": ["a"]}]}
    result, after = edited(bench, old, edit_mode="insert", cell_type="code", new_source="b\nc", cell_id="cell-0")
    assert after["cells"][1] == {
        "cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": ["b\n", "c"]}
    assert result.structured["cell_id"] == "cell-1"


def test_deleting_and_changing_the_type(bench: Any) -> None:
    _, after = edited(bench, NOTEBOOK, edit_mode="delete", cell_id="intro", new_source="")
    assert len(after["cells"]) == 1
    _, after = edited(bench, NOTEBOOK, cell_id="cell-1", cell_type="markdown", new_source="text")
    assert "outputs" not in after["cells"][1] and "execution_count" not in after["cells"][1]


@pytest.mark.parametrize(("raw", "keeps"), [
    (json.dumps(NOTEBOOK, indent=1) + "\n", '{\n "cells": ['), (json.dumps(NOTEBOOK, indent="\t"), '{\n\t"cells": ['),
    (json.dumps(NOTEBOOK), '{"cells": [{"cell_type": "markdown"'),
    (json.dumps(NOTEBOOK, separators=(",", ":")), '{"cells":[{"cell_type":'),
    (json.dumps(NOTEBOOK, indent=1).replace("\n", "\r\n") + "\r\n", '{\r\n "cells": [')])
def test_the_files_style_is_kept(bench: Any, raw: str, keeps: str) -> None:
    """Indentation, line ends, compactness: only the cell that was meant differs."""
    path = bench.write("n.ipynb", raw)
    edited(bench, path, cell_id="intro", new_source="# Title\ntext")
    assert path.read_bytes().decode() == raw
    assert raw.startswith(keeps)


@pytest.mark.parametrize(("title", "ascii_only"), [("é", False), ("é", True), ("e", False)])
def test_escapes_are_kept(bench: Any, title: str, ascii_only: bool) -> None:
    cells = [{"cell_type": "markdown", "source": title}, {"cell_type": "raw", "source": "a"}]
    raw = json.dumps({"cells": cells}, ensure_ascii=ascii_only)
    path = bench.write("n.ipynb", raw)
    edited(bench, path, cell_id="cell-1", new_source="b")
    assert path.read_bytes().decode() == raw.replace('"a"', '"b"')


@pytest.mark.parametrize(("input", "code"), [
    ({"notebook_path": "a.txt", "new_source": ""}, "invalid_arguments"),
    ({"notebook_path": "n.ipynb", "new_source": ""}, "invalid_arguments"),
    ({"notebook_path": "n.ipynb", "new_source": "", "edit_mode": "delete"}, "invalid_arguments"),
    ({"notebook_path": "n.ipynb", "new_source": "", "edit_mode": "insert"}, "invalid_arguments"),
    ({"notebook_path": "no.ipynb", "new_source": "", "cell_id": "intro"}, "not_found"),
    ({"notebook_path": "n.ipynb", "new_source": "", "cell_id": "cell-9"}, "not_found"),
    ({"notebook_path": "n.ipynb", "new_source": "\ud800", "cell_id": "intro"}, "invalid_arguments"),
    ({"notebook_path": "unread.ipynb", "new_source": "", "cell_id": "intro"}, "not_read"),
    ({"notebook_path": "stale.ipynb", "new_source": "", "cell_id": "intro"}, "stale_file"),
    ({"notebook_path": "broken.ipynb", "new_source": "", "cell_id": "intro"}, "stale_file"),
])
def test_errors_of_notebook_edit(bench: Any, input: dict[str, Any], code: str) -> None:
    for name in ("n", "unread", "stale", "broken"):
        path = bench.write(f"{name}.ipynb", json.dumps(NOTEBOOK))
        if name != "unread":
            bench("Read", file_path=str(path))
    bench.write("stale.ipynb", json.dumps(NOTEBOOK, indent=1))
    bench.write("broken.ipynb", "{")
    before = {p.name: p.read_bytes() for p in bench.root.iterdir()}
    assert bench.error("NotebookEdit", **input).code == code
    assert before == {p.name: p.read_bytes() for p in bench.root.iterdir()}
