"""Archives, folders, manifests and catalogues that a stranger made to do harm: each is refused by name, nothing is written
outside, and nothing of them runs."""

from __future__ import annotations

import io
import json
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MANIFEST = (".claude-plugin/plugin.json", b'{"name": "evil", "version": "1.0.0"}')


def zip_of(*members: tuple[Any, bytes], mode: int | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(*MANIFEST)
        for name, content in members:
            info = name if isinstance(name, zipfile.ZipInfo) else zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if mode is not None:
                info.create_system, info.external_attr = 3, mode << 16
            file.writestr(info, content)
    return out.getvalue()


def raw_name(data: bytes, plain: str, evil: bytes) -> bytes:
    """A name in the archive, changed behind the back of the library that wrote it."""
    assert len(plain) == len(evil)
    return data.replace(plain.encode(), evil)


def tar_of(*members: tuple[str, dict[str, Any], bytes], mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as file:
        for name, facts, content in ((MANIFEST[0], {}, MANIFEST[1]), *members):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for key, value in facts.items():
                setattr(info, key, value)
            file.addfile(info, io.BytesIO(content))
    return out.getvalue()


def bomb_zip() -> bytes:
    return zip_of(("bomb.bin", bytes(60 << 20)))


def lying_zip() -> bytes:
    """A member that says it is small and is not: found while it is read."""
    data = bytearray(zip_of(("lie.bin", b"A" * 300_000)))
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = data.rfind(signature)
        struct.pack_into("<I", data, at + offset, 10)
    return bytes(data)


def overlapping_zip() -> bytes:
    """Two entries of the directory that share one member's bytes."""
    data = zip_of(("aaa.bin", b"x" * 50_000))
    start = data.rfind(b"PK\x01\x02")
    end = data.rfind(b"PK\x05\x06")
    entry = data[start:end]
    twin = entry.replace(b"aaa.bin", b"bbb.bin")
    tail = bytearray(data[end:])
    struct.pack_into("<HHI", tail, 8, 3, 3, struct.unpack_from("<I", tail, 12)[0] + len(twin))
    return data[:end] + twin + bytes(tail)


def many(count: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(*MANIFEST)
        for n in range(count):
            file.writestr(f"f{n}", b"")
    return out.getvalue()


def encrypted() -> bytes:
    data = bytearray(zip_of(("secret.txt", b"x")))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = data.rfind(signature)
        struct.pack_into("<H", data, at + offset, 1)
    return bytes(data)


def pax_bomb() -> bytes:
    return tar_of(("x", {"pax_headers": {"comment": "A" * (30 << 20)}, "size": 0}, b""), mode="w:gz")


ZIPS: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "climbs": (lambda: zip_of(("../../escape.txt", b"x")), "unsafe-archive", "../../escape.txt"),
    "climbs in the middle": (lambda: zip_of(("a/../../escape.txt", b"x")), "unsafe-archive", "a/../../escape.txt"),
    "absolute": (lambda: zip_of(("/tmp/kernel-escape.txt", b"x")), "unsafe-archive", "/tmp/kernel-escape.txt"),
    "a drive": (lambda: zip_of(("C:/escape.txt", b"x")), "unsafe-archive", "C:/escape.txt"),
    "backslashes": (lambda: raw_name(zip_of(("x/y/escape.txt", b"x")), "x/y/escape.txt", b"..\\..\\escap.tx"), "unsafe-archive",
                    "escap"),
    "a link out": (lambda: zip_of(("out", b"/etc/passwd"), mode=0o120777), "unsafe-archive", "out"),
    "a link inside": (lambda: zip_of(("in", b"skills"), mode=0o120777), "unsafe-archive", "in"),
    "a device": (lambda: zip_of(("dev", b""), mode=0o020666), "unsafe-archive", "dev"),
    "a pipe": (lambda: zip_of(("pipe", b""), mode=0o010666), "unsafe-archive", "pipe"),
    "setuid": (lambda: zip_of(("bin/su", b"#!/bin/sh"), mode=0o104755), "unsafe-archive", "bin/su"),
    "setgid": (lambda: zip_of(("bin/sg", b"#!/bin/sh"), mode=0o102755), "unsafe-archive", "bin/sg"),
    "a bomb by ratio": (bomb_zip, "unsafe-archive", "200 times"),
    "a member that lies about its size": (lying_zip, "bad-archive", "lie"),
    "members that share bytes": (overlapping_zip, "unsafe-archive", "shares bytes"),
    "a huge count": (lambda: many(20_050), "unsafe-archive", "20000"),
    "case clash": (lambda: zip_of(("Skills/x", b"1"), ("skills/x", b"2")), "unsafe-archive", "skills"),
    "unicode clash": (lambda: zip_of(("caf\u00e9.md", b"1"), ("cafe\u0301.md", b"2")), "unsafe-archive", "caf"),
    "compatibility clash": (lambda: zip_of(("file1.md", b"1"), ("file\u00b9.md", b"2")), "unsafe-archive", "file"),
    "the same name twice": (lambda: zip_of((".claude-plugin/plugin.json", b'{"name": "other"}')), "unsafe-archive",
                            "stands twice"),
    "a file that is a folder": (lambda: zip_of(("a", b"1"), ("a/b", b"2")), "unsafe-archive", "a"),
    "a device name": (lambda: zip_of(("skills/CON.md", b"x")), "unsafe-archive", "CON.md"),
    "a stream name": (lambda: zip_of(("notes.txt:hidden", b"x")), "unsafe-archive", "notes.txt:hidden"),
    "a trailing dot": (lambda: zip_of(("hooks./x", b"x")), "unsafe-archive", "hooks./x"),
    "control characters": (lambda: zip_of(("a\x1b[2Jb", b"x")), "unsafe-archive", "\\x1b"),
    "right to left": (lambda: zip_of(("gpj\u202e.exe", b"x")), "unsafe-archive", "\\u202e"),
    "zero width": (lambda: zip_of(("plu\u200bgin", b"x")), "unsafe-archive", "\\u200b"),
    "too deep": (lambda: zip_of(("d/" * 40 + "x", b"x")), "unsafe-archive", "32 folders"),
    "too long": (lambda: zip_of(("n" * 300, b"x")), "unsafe-archive", "too long"),
    "encrypted": (encrypted, "bad-archive", "encrypted"),
    "no archive": (lambda: b"PK\x03\x04 no archive at all", "bad-archive", "evil.zip"),
}
TARS: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "climbs": (lambda: tar_of(("../../escape.txt", {}, b"x")), "unsafe-archive", "../../escape.txt"),
    "absolute": (lambda: tar_of(("/tmp/kernel-escape.txt", {}, b"x")), "unsafe-archive", "/tmp/kernel-escape.txt"),
    "a link out": (lambda: tar_of(("out", {"type": tarfile.SYMTYPE, "linkname": "/etc"}, b"")), "unsafe-archive", "out"),
    "through a link": (lambda: tar_of(("d", {"type": tarfile.SYMTYPE, "linkname": "/tmp"}, b""), ("d/kernel-escape", {}, b"x")),
                       "unsafe-archive", "'d' is a link"),
    "a hard link": (lambda: tar_of(("hard", {"type": tarfile.LNKTYPE, "linkname": "../../../etc/passwd"}, b"")),
                    "unsafe-archive", "hard"),
    "a character device": (lambda: tar_of(("null", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}, b"")),
                           "unsafe-archive", "null"),
    "a block device": (lambda: tar_of(("disk", {"type": tarfile.BLKTYPE, "devmajor": 8}, b"")), "unsafe-archive", "disk"),
    "a pipe": (lambda: tar_of(("pipe", {"type": tarfile.FIFOTYPE}, b"")), "unsafe-archive", "pipe"),
    "setuid": (lambda: tar_of(("bin/su", {"mode": 0o4755}, b"x")), "unsafe-archive", "bin/su"),
    "a bomb": (lambda: tar_of(("bomb.bin", {}, bytes(60 << 20))), "unsafe-archive", "200 times"),
    "a bomb in xz": (lambda: tar_of(("bomb.bin", {}, bytes(60 << 20)), mode="w:xz"), "unsafe-archive", "200 times"),
    "a bomb in a header": (pax_bomb, "unsafe-archive", "200 times"),
    "case clash": (lambda: tar_of(("README", {}, b"1"), ("readme", {}, b"2")), "unsafe-archive", "readme"),
    "torn": (lambda: tar_of(("x", {}, os.urandom(100_000)))[:60_000], "bad-archive", "evil.tar.gz"),
}


def everything(world: Any) -> set[Path]:
    ours = world.config / "kernel"
    return {p for p in world.root.rglob("*") if not p.is_relative_to(ours)} | set(Path("/tmp").glob("kernel-escape*"))


def check(world: Any, source: Path, type: str, named: str) -> None:
    before = everything(world)
    done = world.refused(type, "install", source, "--yes")
    assert named in done.json["error"]["message"], done
    assert "\x1b" not in done.err and "\u202e" not in done.err, "a message cannot steer the terminal"
    assert everything(world) == before
    assert not list((world.config / "kernel" / "plugins" / "store").glob("*"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("case", ZIPS)
def test_a_hostile_zip(world: Any, case: str) -> None:
    build, type, named = ZIPS[case]
    archive = world.root / "evil.zip"
    archive.write_bytes(build())
    check(world, archive, type, named)


@pytest.mark.parametrize("case", TARS)
def test_a_hostile_tar(world: Any, case: str) -> None:
    build, type, named = TARS[case]
    archive = world.root / "evil.tar.gz"
    archive.write_bytes(build())
    check(world, archive, type, named)


FOLDERS: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "a pipe": (lambda f: os.mkfifo(f / "pipe"), "unsafe-archive", "pipe"),
    "setuid": (lambda f: ((f / "su").write_text("x"), (f / "su").chmod(0o4755)), "unsafe-archive", "su"),
    "case clash": (lambda f: ((f / "README").write_text("1"), (f / "readme").write_text("2")), "unsafe-archive", "readme"),
    "a device name": (lambda f: (f / "aux.md").write_text("x"), "unsafe-archive", "aux.md"),
    "a line break in a name": (lambda f: (f / "a\nb").write_text("x"), "unsafe-archive", "\\n"),
    "bytes that are no text": (lambda f: Path(os.fsdecode(os.fsencode(f) + b"/\xff\xfe")).write_text("x"), "unsafe-archive",
                               "udcff"),
    "a manifest that is a link out": (lambda f: ((f / MANIFEST[0]).unlink(), (f / MANIFEST[0]).symlink_to("/etc/passwd")),
                                      "not-a-plugin", ""),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_hostile_folder(world: Any, case: str) -> None:
    build, type, named = FOLDERS[case]
    folder = world.root / "evil"
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / MANIFEST[0]).write_bytes(MANIFEST[1])
    build(folder)
    check(world, folder, type, named)


def test_links_of_a_folder(world: Any) -> None:
    """Inside: kept as a relative link. Out of it: left out, and said. Never followed (plugins contract, 16.3)."""
    folder = world.plugin("fmt", files={"docs/a.md": "a"})
    secret = world.root / "secret"
    secret.write_text("hunter2")
    (folder / "inside").symlink_to("docs/a.md")
    (folder / "absolute").symlink_to(folder / "docs")
    (folder / "secret").symlink_to(secret)
    (folder / "home").symlink_to("/root")
    (folder / "loop").symlink_to(".")
    (folder / "nowhere").symlink_to("missing")
    done = world.ok("install", folder, "--json").json
    place = Path(world.listed()["fmt@installed"]["installPath"])
    assert {p.name for p in place.iterdir() if p.is_symlink()} == {"inside", "absolute"}
    assert os.readlink(place / "absolute") == "docs" and (place / "inside").read_text() == "a"
    assert "hunter2" not in "".join(p.read_text() for p in place.rglob("*") if p.is_file())
    assert len(done["warnings"]) == 4 and any("secret" in w for w in done["warnings"])


MANIFESTS: dict[str, tuple[bytes, str]] = {
    "no JSON": (b"{", "bad-manifest"), "a list": (b"[]", "bad-manifest"), "no text": (b"\xff\xfe", "bad-manifest"),
    "deep": (b"[" * 100_000,
             "bad-manifest"), "a huge one": (b'{"name": "x", "description": "' + b"A" * 2_000_000 + b'"}', "bad-manifest"),
    "a wrong type": (b'{"name": "evil", "keywords": "x"}', "bad-manifest"),
    "no name": (b'{"version": "1"}', "bad-name"), "an empty name": (b'{"name": ""}', "bad-name"),
    "a name that climbs": (b'{"name": "../../evil"}', "bad-name"), "a name with a slash": (b'{"name": "a/b"}', "bad-name"),
    "a name that is an option": (b'{"name": "--yes"}', "bad-name"), "an id as a name": (b'{"name": "a@b"}', "bad-name"),
    "a device as a name": (b'{"name": "nul"}', "bad-name"), "a list as a name": (b'{"name": ["x"]}', "bad-name"),
    "Cyrillic letters": ('{"name": "f\u043ermat"}'.encode(),
                         "bad-name"), "full width": ('{"name": "\uff46mt"}'.encode(), "bad-name"),
    "zero width": ('{"name": "f\u200bmt"}'.encode(), "bad-name"), "a long name": (b'{"name": "' + b"a" * 200 + b'"}', "bad-name"),
    "a path that climbs": (b'{"name": "evil", "commands": "./../../x.md"}', "unsafe-path"),
    "an absolute path": (b'{"name": "evil", "agents": ["/etc/passwd"]}', "unsafe-path"),
    "hooks from elsewhere": (b'{"name": "evil", "hooks": "../../hooks.json"}', "unsafe-path"),
    "a kernel that is not": (b'{"name": "evil", "metadata": {"kernel": {"requires": ">=99"}}}', "needs-kernel"),
    "a range that is none": (b'{"name": "evil", "metadata": {"kernel": {"requires": "rm -rf"}}}', "needs-kernel"),
    "a dependency that is none": (b'{"name": "evil", "dependencies": [{"name": 5}]}', "bad-manifest"),
    "a dependency with two @": (b'{"name": "evil", "dependencies": ["a@b@c"]}', "bad-manifest"),
    "a version range that is none": (b'{"name": "evil", "dependencies": [{"name": "a", "version": "no"}]}', "bad-range"),
}


@pytest.mark.parametrize("case", MANIFESTS)
def test_a_hostile_manifest(world: Any, case: str) -> None:
    raw, type = MANIFESTS[case]
    folder = world.root / "evil"
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / MANIFEST[0]).write_bytes(raw)
    check(world, folder, type, "")


SOURCES: dict[str, tuple[Any, str]] = {
    "climbs": ("./../../etc", "unsafe-path"), "absolute": ("/etc", "bad-spec"), "bare": ("plugins", "bad-spec"),
    "a git option": ({"source": "url", "url": "--upload-pack=touch x"}, "bad-spec"),
    "a git program": ({"source": "url", "url": "ext::sh -c touch% x"}, "bad-spec"),
    "a host that is an option": ({"source": "url", "url": "ssh://-oProxyCommand=touch/x.git"}, "bad-spec"),
    "a ref that is an option": ({"source": "github", "repo": "a/b", "ref": "--upload-pack=x"}, "bad-spec"),
    "a short sha": ({"source": "github", "repo": "a/b", "sha": "abc"}, "bad-spec"),
    "a repo that climbs": ({"source": "github", "repo": "../b"}, "bad-spec"),
    "a subfolder that climbs": ({"source": "git-subdir", "url": "a/b", "path": "../x"}, "unsafe-path"),
    "an archive over http": ({"source": "archive", "url": "http://example.com/x.zip"}, "bad-spec"),
    "an archive of this machine": ({"source": "archive", "url": "https://127.0.0.1/x.zip"}, "unsafe-url"),
    "an archive of this machine by name": ({"source": "archive", "url": "https://localhost/x.zip"}, "unsafe-url"),
    "metadata of a cloud": ({"source": "archive", "url": "https://169.254.169.254/latest.zip"}, "unsafe-url"),
    "IPv6 in disguise": ({"source": "archive", "url": "https://[::ffff:127.0.0.1]/x.zip"}, "unsafe-url"),
    "a file URL": ({"source": "archive", "url": "file:///etc/passwd"}, "bad-spec"),
    "an npm option": ({"source": "npm", "package": "--registry=x"}, "bad-spec"),
    "an npm path": ({"source": "npm", "package": "../x"}, "bad-spec"),
    "an npm version": ({"source": "npm", "package": "x", "version": "file:../x"}, "bad-spec"),
    "a command with escapes": ({"source": "command", "command": "a\x1b[2J"}, "bad-spec"),
    "a kind that is not known": ({"source": "quantum"}, "unknown-source"), "a number": (5, "bad-spec"),
}


@pytest.mark.parametrize("case", SOURCES)
def test_a_hostile_source_in_a_catalogue(world: Any, case: str) -> None:
    source, type = SOURCES[case]
    world.ok("marketplace", "add", world.market("acme", {"evil": {"entry": {"source": source}}}))
    before = everything(world)
    world.refused(type, "install", "evil@acme", "--yes")
    assert everything(world) == before


@pytest.mark.parametrize(("name", "type"), [
    ("claude-plugins-official", "reserved-name"), ("Agent-Skills", "reserved-name"), ("official-claude-plugins", "reserved-name"),
    ("anthropic-plugins-v2",
     "reserved-name"), ("inline", "reserved-name"), ("installed", "reserved-name"), ("\u0430cme", "bad-name"),
    ("a/b", "bad-name"), ("..", "bad-name"), ("", "bad-name"), ("con", "bad-name"), (5, "bad-name"), ("a b", "bad-name")])
def test_a_marketplace_with_a_bad_name(world: Any, name: Any, type: str) -> None:
    folder = world.market("place", {})
    (folder / ".claude-plugin" / "marketplace.json").write_text(json.dumps({"name": name, "owner": {"name": "o"}, "plugins": []}))
    world.refused(type, "marketplace", "add", folder)


@pytest.mark.parametrize("name", ["acme-claude-plugins", "my-claude-skills", "healthcare-tools", "claude-plugins", "superpowers"])
def test_a_marketplace_may_say_what_it_is_for(world: Any, name: str) -> None:
    world.ok("marketplace", "add", world.market(name, {}))


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "x"}', '{"name": "x", "owner": "me", "plugins": []}',
                                  '{"name": "x", "owner": {"name": "o"}, "plugins": {}}',
                                  '{"name": "x", "owner": {"name": "o"}, "plugins": '
                                  '[{"name": "a", "source": "./a"}, {"name": "a", "source": "./b"}]}'])
def test_a_catalogue_that_cannot_be_used(world: Any, text: str) -> None:
    folder = world.market("place", {})
    (folder / ".claude-plugin" / "marketplace.json").write_text(text)
    done = world.run("marketplace", "add", folder, "--json")
    assert done.code == 1 and done.json["error"]["type"] in ("bad-marketplace", "bad-manifest")


def test_a_source_that_leaves_its_marketplace_through_a_link(world: Any) -> None:
    world.plugin("outside", folder=world.root / "outside")
    folder = world.market("acme", {"evil": {"entry": {"source": "./plugins/evil"}}})
    (folder / "plugins").mkdir()
    (folder / "plugins" / "evil").symlink_to(world.root / "outside")
    world.ok("marketplace", "add", folder)
    world.refused("unsafe-path", "install", "evil@acme")


# -- Python ----------------------------------------------------------------------------------------------------------------
def test_nothing_is_built_without_a_word(world: Any) -> None:
    """A source distribution, a project folder whose facts need a build, and a direct URL in a dependency."""
    mark = world.root / "ran"
    code = f"open({str(mark)!r}, 'w').write('x')\n"  # a build backend of its own, which needs nothing else
    backend = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    world.root.joinpath("wheels").mkdir()
    with tarfile.open(world.root / "wheels" / "evil-plugin-1.tar.gz", "w:gz") as file:
        info_file = "Metadata-Version: 1.0\nName: evil-plugin\nVersion: 1\n"
        for name, text in (("backend.py", code), ("pyproject.toml", backend), ("PKG-INFO", info_file)):
            info = tarfile.TarInfo(f"evil-plugin-1/{name}")
            info.size = len(text)
            file.addfile(info, io.BytesIO(text.encode()))
    no_wheel = "resolve-failed or needs-build"  # pip and uv say it differently
    world.refused(no_wheel, "install", "python:evil-plugin", *world.index, "--yes")
    url = f"file://{world.root}/wheels/evil-plugin-1.tar.gz"
    world.refused("needs-build", "install", f"python:evil-plugin @ {url}", *world.index, "--yes")
    world.wheel("nice-plugin", plugin="nice", requires=[f"evil-plugin @ {url}"])
    world.refused(no_wheel, "install", "python:nice-plugin", *world.index, "--yes")
    project = world.project_plugin("dyn", requires=())
    file = project / "pyproject.toml"
    file.write_text(file.read_text().replace("dependencies = []", 'dynamic = ["dependencies"]'))
    (project / "setup.py").write_text(code)
    world.refused("needs-build", "install", project, "--yes")
    assert not mark.exists()


def test_installing_runs_nothing_of_a_wheel(world: Any) -> None:
    mark = world.root / "ran"
    code = f"open({str(mark)!r}, 'w').write('x')\n"
    wheel = world.wheel("fmt-plugin", plugin="fmt", broken=code,
                        files={"evil.pth": f"import os; {code}", "sitecustomize.py": code})
    done = world.ok("install", wheel, *world.index, "--yes", "--json").json
    assert any(".pth" in w for w in done["warnings"])
    world.ok("list")
    world.ok("info", "fmt")
    world.ok("disable", "fmt")
    world.ok("uninstall", "fmt")
    assert not mark.exists()


@pytest.mark.parametrize("fault", ["changed", "not named", "climbs", "no record", "two infos"])
def test_a_wheel_that_is_not_what_its_record_says(world: Any, fault: str) -> None:
    wheel = world.wheel("fmt-plugin", plugin="fmt")
    with zipfile.ZipFile(wheel) as file:
        members = {i.filename: file.read(i) for i in file.infolist()}
    if fault == "changed":
        members["fmt_plugin/plugin.py"] += b"\nimport os\n"
    elif fault == "not named":
        members["fmt_plugin/more.py"] = b"import os\n"
    elif fault == "climbs":
        members["../escape.py"] = b"x"
    elif fault == "no record":
        del members["fmt_plugin-1.0.0.dist-info/RECORD"]
    else:
        members["other-1.dist-info/METADATA"] = b"x"
    with zipfile.ZipFile(wheel, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    done = world.run("install", wheel, *world.index, "--yes", "--json")
    assert done.code == 1 and done.json["error"]["type"] in ("bad-archive", "unsafe-archive", "resolve-failed"), done
    assert world.versions() == {} and not list(world.root.rglob("escape.py"))


# -- git -------------------------------------------------------------------------------------------------------------------
def test_a_hostile_repository(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters, hooks and submodules do not run; a link out is left out; a pin that the server does not honour is an error."""
    mark = world.root / "ran"
    repository = world.plugin("fmt", files={".gitattributes": "* filter=evil\n", ".gitmodules":
                                            f'[submodule "x"]\n path = x\n url = ext::sh -c "touch {mark}"\n'})
    (repository / "out").symlink_to("/etc/passwd")
    world.commit(repository)
    mine = world.home / ".gitconfig"
    mine.write_text(f'[filter "evil"]\n smudge = "touch {mark}; cat"\n clean = cat\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(mine))
    world.git(world.root, "clone", "-q", str(repository), "clone")
    assert mark.exists(), "git itself would run it"
    mark.unlink()
    world.ok("install", f"git+file://{repository}")
    place = Path(world.listed()["fmt@installed"]["installPath"])
    assert not mark.exists() and not (place / "out").exists() and not (place / ".git").exists()
    world.refused("git-failed", "install", f"git+file://{repository}@{'0' * 40}")
    world.refused("git-failed", "install", f"git+file://{world.root}/nothing-here")
