"""Requests to a machine, and the use of its answers: sandboxes, limits, cgroups and buckets, as one text."""

from __future__ import annotations

import io
import os
import platform
import signal
import site
import stat
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from segjudge.evaluation_script.files.problems import HostError
from segjudge.system import addresses, bounds, files, interrupts, network, plugins, processes, sandbox
from segjudge.system.addresses import RemoteFolder, _S3Files, digest_of, resolve_address
from segjudge.system.bounds import ResourceGroup, TreeBounds, TreeWatch
from segjudge.system.errors import UsageError
from segjudge.system.files import BuiltFile, OutputFolder
from segjudge.system.plugins import Plugin
from segjudge.system.processes import ExitCode
from segjudge.system.sandbox import ProcessLimits
from tests.answers import LENGTH, fold

FILE = Path(__file__).with_name("machine.txt")


class _Text:
    """Lines, without the parts that depend on where they were written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []

    def note(self, title: str, value: object) -> None:
        """Note a value, a list with an item on each line, or a short one in one line."""
        many = isinstance(value, (list, tuple))
        items = [self._settle(str(item)) for item in (value if many else [value])]  # type: ignore[union-attr]
        line = " | ".join(items)
        whole = not many or (len(line) < LENGTH and "\n" not in line)
        self.lines.append(
            f"{self._settle(title)}:" + (f" {line}" if whole else "".join(f"\n    {item}" for item in items))
        )

    def _settle(self, text: str) -> str:
        """Replace what differs between runs; a number that merely contains the process's is not touched."""
        text = text.replace(str(self.folder), "FOLDER").replace(sandbox._LIMIT, "LIMIT")
        return text.replace(f"segjudge-{os.getpid()}-", "segjudge-PID-")

    def attempt(self, title: str, action: Callable[[], object]) -> None:
        try:
            self.note(title, action())
        except (HostError, UsageError, OSError, network.WireError) as error:
            self.note(title, f"{type(error).__name__}: {error}")


def write_machine(folder: Path) -> str:
    text = _Text(folder)
    for play in (
        _play_sandbox,
        _play_bounds,
        _play_groups,
        _play_bucket,
        _play_cache,
        _play_files,
        _play_signals,
        _play_plugins,
        _play_network,
    ):
        text.lines.append(f"\n# {play.__doc__}\n")
        with patch.dict(os.environ):
            play(text, folder)
    return fold("\n".join(text.lines) + "\n")


@contextmanager
def _patched(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for owner, name, value in changes:
            stack.enter_context(patch.object(owner, name, value))
        yield


# ── sandboxes ───────────────────────────────────────────────────────────────


def _play_sandbox(text: _Text, folder: Path) -> None:
    """The command lines of sandboxes"""
    for name in ("system", "agent", "agent/secret", "data", "wheels", "home/.pip"):
        (folder / name).mkdir(parents=True)
    (folder / "agent/key").touch()
    (folder / "link").symlink_to(folder / "agent")
    os.environ.update(HOME=str(folder / "home"), PIP_FIND_LINKS=f"/var {folder}/none")  # pip splits them at blanks
    hidden = [
        str(folder / "agent/secret"),
        str(folder / "agent/key"),
        str(folder / "none"),
        str(folder),
        str(folder / "link"),
    ]
    limits = ProcessLimits(seconds=100.5, memory=7 << 20, processes=9)
    python = (
        (sys, "executable", "python"), (sys, "prefix", "/prefix"), (sys, "base_prefix", "/base"), (os, "cpu_count", lambda: 4),
        (site, "ENABLE_USER_SITE", True), (site, "getusersitepackages", lambda: "/user"), (sandbox, "_SYSTEM", ("/usr",)),
        (sandbox, "_NETWORK", ("/etc/resolv.conf",)), (sandbox, "IMPORT_ROOT", "/root"), (sandbox, "_PACKAGES", ("package",)),
        (sandbox, "_namespace_words", lambda _program: ("--no-namespaces",)), (platform, "release", lambda: "5.14.2"),
        (platform, "machine", lambda: "riscv64"),
    )  # fmt: skip
    mounts = [(str(folder / "data"), True), (str(folder / "wheels"), False)]
    with _patched(*python):
        agent = sandbox.agent_command("bwrap", ["run"], str(folder / "agent"), mounts, hidden, limits)
        text.note("an agent's", " ".join(agent))
        text.note("without a sandbox", sandbox.agent_command(None, ["run"], "x", mounts, hidden, limits))
        for options in ({}, {"folder": "/inside", "memory": 5 << 20}):
            limit_words = sandbox.scorer_command(
                "bwrap",
                ["run"],
                ["/read"],
                [("/a", "/b"), ("/c", "/d")],
                ["/read"],
                python="python3.9",
                **options,  # type: ignore[arg-type]
            )
            text.note("a scorer's", " ".join(limit_words))
        installer = sandbox.installer_command("bwrap", ["pip"], ["/read"], ["/write"])
        text.note("an installer's", " ".join(installer))
        text.note("what does not hold", sandbox.missing_limits("bwrap"))
        with patch.object(site, "ENABLE_USER_SITE", False):
            agent = sandbox.agent_command("bwrap", ["run"], "x", [], [], limits)
            text.note("an agent's, without packages of the user", " ".join(agent))
    for release, user in (("5.14.2", 1), ("5.13.9", 1), ("6.1-rc1", 1), ("5.14.2", 0)):
        with _patched((platform, "release", lambda release=release: release), (os, "getuid", lambda user=user: user)):
            limit_words = sandbox._limit_words("python", ["run"], 1, 2, 3, is_boxed=True)
            text.note(f"Linux {release} of user {user}", [sandbox.are_processes_refused(), limit_words[5:8]])
    for machine in ("x86_64", "aarch64"):
        with patch.object(platform, "machine", lambda machine=machine: machine):
            text.note(
                f"the filter of {machine}",
                [" ".join(map(hex, step)) for step in struct.iter_unpack("=HBBI", sandbox._make_filter())],
            )
    with patch.object(sandbox.shutil, "which", lambda _name: None):
        text.note("no bwrap", sandbox.find_sandbox())
        text.attempt("no bwrap, and one is required", lambda: sandbox.find_sandbox(required=True))
        text.note("what does not hold without", bounds.missing_bounds(None))


# ── what is used ────────────────────────────────────────────────────────────

_FILES = {
    (1, "status"): b"Name:\tx\nVmRSS:\t 900 kB\nRssAnon:\t 100 kB\nVmSwap:\t  20 kB\nThreads:\t3\n",
    (2, "status"): b"RssAnon:\t 50 kB\nThreads:\t1\n",
    (1, "smaps_rollup"): b"Rss: 900 kB\nPss_Anon:      70 kB\nSwapPss:       5 kB\n",
    (1, "maps"): (
        b"1000-3000 rw-s 00001000 00:01 77 /dev/zero (deleted)\n1000-9000 rw-s 0 00:01 78 /dev/shm/a (deleted)\n"
        b"1000-9000 rw-s 0 08:01 5 /usr/lib/x\n"
    ),
    (2, "maps"): b"1000-2000 rw-s 0 00:01 77 /dev/zero (deleted)\nf000-f800 rw-s 0 00:01 79 /SYSV0 (deleted)\n",
}  # fmt: skip


def _state(inode: int, *, blocks: int = 8, links: int = 0, device: int = 1, kind: int = stat.S_IFREG) -> Any:
    return SimpleNamespace(st_dev=device, st_ino=inode, st_blocks=blocks, st_nlink=links, st_mode=kind)


def _play_bounds(text: _Text, folder: Path) -> None:
    """The resources that processes use"""
    opened = {
        1: [_state(1), _state(2, blocks=16)],
        2: [_state(1), _state(3, links=1), _state(4, device=9), _state(5, kind=stat.S_IFIFO)],
    }
    tree = folder / "tree"
    (tree / "inner/deep").mkdir(parents=True)
    for name in ("a", "inner/b", "inner/deep/c"):
        (tree / name).write_bytes(b"x" * 5000)
    (tree / "link").symlink_to(folder)
    blocks = sum(path.lstat().st_blocks * 512 for path in tree.rglob("*"))
    with _patched(
        (bounds, "_read", lambda pid, name: _FILES.get((pid, name), b"")),
        (
            bounds,
            "_open_files",
            lambda pid, beginning="": iter(opened.get(pid, []) if not beginning else opened[1][:1]),
        ),
    ):
        text.note("private bytes and threads", list(bounds._private_bytes([1, 2, 3])))
        text.note("exactly", bounds._exact_private_bytes([1, 2, 3]))
        text.note("nameless", [bounds._nameless_bytes([1, 2], tmpfs) for tmpfs in ((), ("/dev/shm",))])
        with patch.object(os, "stat", lambda _path: SimpleNamespace(st_dev=1)):
            text.note(
                "of removed files",
                [bounds._bytes_of_removed([1, 2], [str(tree)]), bounds._bytes_of_removed([1, 2], [])],
            )
    text.note("on the disk, beside its blocks", bounds._disk_bytes([str(tree), str(folder / "none")], 1 << 40) - blocks)
    text.note("on the disk, beyond a bound", bounds._disk_bytes([str(tree)], 1) < blocks)
    text.attempt("a folder that nobody can look into", lambda: _disk_of_closed(tree))
    with _patched(
        (os, "stat", lambda path: SimpleNamespace(st_dev=1, st_ino=2 if path == "/proc/2/root/" else 1)),
        (
            os,
            "statvfs",
            lambda path: (
                SimpleNamespace(f_blocks=10, f_bfree=4, f_frsize=100, f_files=7, f_ffree=5)
                if path == "/proc/2/root/tmp"
                else None
            ),
        ),
    ):
        text.note(
            "in mounts",
            [bounds._tmpfs_bytes([2, 1], ["/tmp"]), bounds._tmpfs_bytes([1], ["/tmp"]), bounds._tmpfs_bytes([2], [])],
        )
    for limits, used in (
        (TreeBounds(processes=3), {"threads": 7}), (TreeBounds(processes=3), {"threads": 8}),
        (TreeBounds(memory=5 << 20), {"private": 3 << 20, "shared": 2 << 20}), (TreeBounds(memory=5 << 20), {"private": 6 << 20, "exact": 5 << 20}),
        (TreeBounds(memory=5 << 20), {"private": 6 << 20, "exact": 4 << 20, "shared": 2 << 20}),
        (TreeBounds(memory=5 << 20), {"private": 6 << 20, "exact": 6 << 20, "ending": 2 << 20}),
        (TreeBounds(disk=3 << 20), {"disk": 3 << 20}), (TreeBounds(disk=3 << 20), {"disk": (3 << 20) + 1}), (TreeBounds(), {"private": 1 << 50}),
    ):  # fmt: skip
        text.note(f"{limits}, {used}", repr(_excess(limits, **used)))


def _disk_of_closed(tree: Path) -> int:
    with patch.object(os, "scandir", side_effect=PermissionError(13, "Permission denied", str(tree))):
        return bounds._disk_bytes([str(tree)], 1 << 40)


def _excess(
    limits: TreeBounds,
    threads: int = 1,
    private: int = 0,
    exact: int = 0,
    shared: int = 0,
    disk: int = 0,
    ending: int = 0,
) -> str:
    """Return why processes are ended; the first exact reading counts the memory of ending ones twice."""
    readings = [exact, *[exact - ending] * 2]
    families = iter([{1: 1}, *[{} if ending else {1: 1}] * 3])
    with _patched(
        (bounds, "descendants", lambda _above: next(families)), (bounds, "_private_bytes", lambda _pids: (private, threads)),
        (bounds, "_exact_private_bytes", lambda _pids: readings.pop(0)), (bounds, "_tmpfs_bytes", lambda *_: shared // 2),
        (bounds, "_nameless_bytes", lambda *_: shared - shared // 2), (bounds, "_disk_bytes", lambda *_: disk - 1),
        (bounds, "_bytes_of_removed", lambda *_: 1), (bounds.threading, "Thread", lambda **_: SimpleNamespace(start=lambda: None)),
    ):  # fmt: skip
        child: Any = SimpleNamespace(above=1)
        return TreeWatch(child, limits)._excess()


# ── cgroups ─────────────────────────────────────────────────────────────────


def _play_groups(text: _Text, folder: Path) -> None:
    """Groups of processes"""
    roots = [folder / "groups" / name for name in ("all", "cpu", "pids")]
    kinds = {"all": ("memory.max",), "cpu": ("cpu.cfs_period_us", "cpu.cfs_quota_us"), "pids": ("pids.max",)}
    for root in roots:
        root.mkdir(parents=True)
    make = os.mkdir

    def mkdir(path: str, *options: Any) -> None:
        make(path, *options)
        for name in kinds.get(Path(path).parent.name, ()):
            Path(path, name).touch()

    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        """Let processes leave the groups."""
        pauses.append(seconds)
        for path in (path for root in roots for path in root.glob("*/*")):
            path.unlink()

    (roots[0] / "segjudge-4194399-1").mkdir()
    (roots[0] / "segjudge-1-1").mkdir()
    (roots[0] / "segjudge-other").mkdir()
    (roots[0] / "other-4194399-1").mkdir()
    numbers: Iterable[int] = iter(range(9))
    with _patched(
        (bounds, "_GROUP_ROOTS", tuple(map(str, roots))), (bounds, "_numbers", numbers), (os, "mkdir", mkdir), (time, "sleep", sleep)
    ):  # fmt: skip
        for title, asked in (
            ("all", {"cores": 1.5, "processes": 7, "memory": 99}),
            ("memory", {"memory": 5}),
            ("nothing", {}),
        ):
            group = ResourceGroup(**asked)  # type: ignore[arg-type]
            text.note(f"bounds of {title}", [kind for kind in ("cpu", "pids", "memory") if group.holds_bound(kind)])
            text.note(
                "files",
                sorted(
                    f"{path.relative_to(folder)}: {path.read_text()}" for root in roots for path in root.glob("*/*")
                ),
            )
            text.note("enters by", [word for word in group.enter(["run"]) if word != bounds._ENTER])
            group.close()
            text.note("pauses", pauses)
            pauses.clear()
    text.note("what is left", sorted(path.name for root in roots for path in root.iterdir()))
    text.note("missing without a sandbox", bounds.missing_bounds(None))
    for refused in (True, False):
        for held in (True, False):
            group: Any = SimpleNamespace(
                holds_bound=lambda kind, held=held: held and kind == "pids", close=pauses.clear
            )
            with _patched(
                (sandbox, "missing_limits", lambda _program: ["a limit"]), (sandbox, "are_processes_refused", lambda refused=refused: refused),
                (bounds, "ResourceGroup", lambda group=group, **_asked: group),
            ):  # fmt: skip
                text.note(f"missing where processes are refused {refused}, held {held}", bounds.missing_bounds("bwrap"))


# ── buckets ─────────────────────────────────────────────────────────────────


class _Client:
    """A minimal S3, which notes its requests."""

    class exceptions:  # noqa: N801 - boto3's name
        class ClientError(Exception):
            def __init__(self, status: int) -> None:
                super().__init__(f"status {status}")
                self.response = {"ResponseMetadata": {"HTTPStatusCode": status}}

        class NoSuchBucket(Exception):
            pass

    def __init__(self, objects: dict[str, bytes]) -> None:
        self.objects, self.asked = objects, list[str]()

    def head_object(self, **asked: str) -> dict[str, Any]:
        self.asked.append(f"head {asked}")
        if asked["Key"] == "refused":
            raise self.exceptions.ClientError(403)
        if asked["Key"] not in self.objects:
            raise self.exceptions.ClientError(404)
        return {"ETag": "tag", "LastModified": "day", "ContentLength": len(self.objects[asked["Key"]])}

    def get_paginator(self, name: str) -> Any:
        def paginate(**asked: str) -> Iterator[dict[str, Any]]:
            self.asked.append(f"{name} {asked}")
            if asked["Bucket"] == "none":
                raise self.exceptions.NoSuchBucket
            results = [
                {"Key": key, "Size": len(data)} for key, data in self.objects.items() if key.startswith(asked["Prefix"])
            ]
            yield from ({"Contents": [entry]} for entry in results)
            yield {}

        return SimpleNamespace(paginate=paginate)

    def get_object(self, **asked: str) -> dict[str, Any]:
        self.asked.append(f"get {asked}")
        begin, end = asked.get("Range", "bytes=0-999").removeprefix("bytes=").split("-")
        return {"Body": io.BytesIO(self.objects[asked["Key"]][int(begin) : int(end) + 1])}


def _play_bucket(text: _Text, folder: Path) -> None:
    """A bucket"""
    client = _Client(
        {"a.zip": b"zip", "sent/b/1": b"one", "sent/c": b"two", "sent/": b"", "sentinel": b"x", "sent/b/0": b""}
    )
    bucket = _S3Files(client)
    os.environ["SEGJUDGE_CACHE"] = str(folder / "cache")
    for path in (
        "bucket/a.zip",
        "bucket/sent",
        "bucket/sent/",
        "bucket",
        "bucket/none",
        "bucket/refused",
        "none/x",
        "none",
    ):
        try:
            text.note(f"info of {path}", bucket.info(path))
        except (FileNotFoundError, client.exceptions.ClientError) as error:
            text.note(f"info of {path}", f"{type(error).__name__} {error}")
    text.note("files below", [*bucket.find("bucket/sent/", detail=True).items(), *bucket.find("bucket", detail=True)])
    text.note("ranges", bucket.cat_ranges(["bucket/a.zip", "bucket/sent/c"], [0, 1], [2, 9], on_error="raise"))
    text.note("was asked", sorted(client.asked))
    with patch.object(addresses, "_s3_files", lambda _address: bucket):
        text.attempt("a file", lambda: Path(resolve_address("s3://bucket/a.zip")).read_bytes())
        text.attempt("a file in the cache", lambda: Path(resolve_address("S3A://bucket/a.zip")).name[24:])
        results = resolve_address("s3://user:secret@bucket/sent/")
        assert isinstance(results, RemoteFolder)
        text.note("a folder", [f"{results:>30}", *results.sizes.items(), digest_of(results)])
        for address in ("s3://none/x", "s3://bucket/refused", "s3://bucket/none"):
            text.attempt(address, lambda address=address: resolve_address(address, UsageError))


def _play_cache(text: _Text, folder: Path) -> None:
    """The cache of fetched files"""
    cache = folder / "cached"
    cache.mkdir()
    os.environ["SEGJUDGE_CACHE"] = str(cache)
    for age, name in enumerate(("new", "middle", "old", "half.partial", "lock")):
        (cache / name).write_bytes(b"x" * 300)
        os.utime(cache / name, (1000 - age, 1000 - age))
    for size in (100, 500, 900, 1100):
        os.environ["SEGJUDGE_CACHE_GB"] = "1e-6"
        text.attempt(f"room for {size}", lambda size=size: addresses._make_room(cache, size, "https://u:p@x.test/y?z"))
        text.note("there are", sorted(path.name for path in cache.iterdir()))
    os.environ["SEGJUDGE_CACHE_GB"] = "much"
    text.attempt("a bound that is no number", addresses._cache_bytes)
    os.environ.pop("SEGJUDGE_CACHE_GB")
    text.note("the usual bound", addresses._cache_bytes())
    os.environ.pop("SEGJUDGE_CACHE")
    for home in ({"XDG_CACHE_HOME": "/caches"}, {"XDG_CACHE_HOME": "", "HOME": "/home"}):
        os.environ.update(home)
        text.note("the usual folder", addresses._cache())
    for size, data in ((4, b"1234"), (4, b"123"), (4, b"12345"), (0, b""), (None, b"x" * 50), (None, b"x" * 51)):
        system = SimpleNamespace(open=lambda _source, _mode, data=data: io.BytesIO(data))
        with _patched((addresses, "_system", lambda _address, system=system: (system, "x")), (addresses, "_cache_bytes", lambda: 50), (addresses, "_CHUNK", 3)):  # fmt: skip
            title = f"{len(data)} bytes of {size}"
            text.attempt(title, lambda size=size: addresses._fetch("https://u:p@x.test/y?z", cache / "fetched", size))
        text.note("there is", [(path.name, path.stat().st_size) for path in cache.iterdir() if "fetched" in path.name])
        (cache / "fetched").unlink(missing_ok=True)
    line = patch("segjudge.system.extras.install_line", "the line for {}{}".format)
    with patch.dict(sys.modules, {"fsspec.core": None, "boto3": None}), line:
        for address in ("https://u:p@x.test/y?z", "s3://u:p@bucket/y?z"):
            addresses._connect.cache_clear()
            text.attempt(f"without what reads {address[:2]}", lambda address=address: addresses._system(address))
    for address in ("nothing://u:p@x.test/y?z", "HTTPS://u:p@x.test/y?z"):
        text.attempt(
            f"read by fsspec: {address[:4]}", lambda address=address: type(addresses._system(address)[0]).__name__
        )
    error = OSError("x" * 400 + "\nsecond")
    text.attempt("an error of a library", lambda: _raise_within("https://u:p@x.test/y?z", error))
    error = OSError("at https://u:p@x.test/y?z")
    text.attempt("an error that repeats the address", lambda: _raise_within("https://u:p@x.test/y?z", error))


def _raise_within(address: str, error: Exception) -> None:
    with addresses._report_errors(address):
        raise error


# ── files ───────────────────────────────────────────────────────────────────


def _play_files(text: _Text, folder: Path) -> None:
    """Names of files, and written files"""
    text.note("a plug-in", Plugin("cells", "cells_package", "cells-of-ours", "1.0").origin)
    names = (
        "plain.png",
        ".hidden",
        "a/b",
        "ä",
        "x" * 120,
        "x" * 121,
        "ä" * 60,
        "a b&c+d,e=f@g.(h)-_",
        "..",
        "a\nb",
        "",
    )
    text.note("names of files", [f"{name[:20]!r}: {files.file_name(name)}" for name in names])
    text.note(
        "names of paths",
        [files.name_of(path) for path in ("/a/b/", "a/../c", "https://u:p@h/x/y.zip?k=1#f", "s3://b/c/")],
    )
    inside = folder / "outputs"
    (inside / "full").mkdir(parents=True)
    (inside / "full/a.png").touch()
    (inside / "full/a.csv").touch()
    (inside / "file").touch()
    (inside / "link").symlink_to(inside / "file")
    for outputs, inputs in (
        (("/dev/null", "/dev/null"), ()), (("/dev/null", "none/x"), ()), (("new",), ("file",)), (("file", "link"), ()), (("new", "./new"), ()),
        (("new", "other"), ()), (("file",), ("link",)), (("full/a.png",), ("full",)), (("full/a.csv",), ("full",)), (("full/new.png",), ("full",)),
        ((OutputFolder("full"),), ("full",)), ((OutputFolder("x.zip"),), ()), ((OutputFolder("full"), "full/new"), ()), ((OutputFolder("made"), "made/x"), ()),
        ((BuiltFile("made/deep/x"),), ()), (("made/deep/x",), ()), ((BuiltFile("file/x"),), ()), (("full",), ()), ((OutputFolder("file"),), ()),
    ):  # fmt: skip
        start_folder = os.getcwd()
        os.chdir(inside)
        try:
            title = f"{[f'{type(path).__name__} {path}' if type(path) is not str else path for path in outputs]} of {list(inputs)}"
            text.attempt(title, lambda outputs=outputs, inputs=inputs: files.check_outputs(outputs, inputs))
        finally:
            os.chdir(start_folder)
    files.replace(inside / "private", "x", private=True)
    text.note("private", oct((inside / "private").stat().st_mode & 0o777))
    for name in ("draft", "full", "file"):
        text.attempt(f"a draft of {name}", lambda name=name: _draft(inside / name))
    text.note("there is", sorted(str(path.relative_to(inside)) for path in inside.rglob("*")))
    with patch.object(files.os, "access", return_value=False) as access:
        text.attempt("a folder that is closed", lambda: files.check_outputs([str(inside / "closed")], []))
        text.note("asked", access.call_args_list[-1])
    ran: list[Any] = []
    with (
        patch.object(files.shutil, "rmtree", side_effect=RecursionError),
        patch("subprocess.run", lambda words, **options: ran.append((words, sorted(options.items())))),
    ):
        files.remove_folder(str(inside / "full"))
        files.remove_folder(str(inside / "gone"))
    text.note("a folder that is too deep", ran)
    text.attempt("a folder below a file", lambda: files.make_folder(inside / "file/x"))
    with files.hold_folder(str(inside / "held"), "rehearsal"):
        text.attempt("held by another", lambda: files.hold_folder(str(inside / "held"), "rehearsal"))
    text.attempt("below a file", lambda: files.hold_folder(str(inside / "file/x"), "rehearsal"))
    elsewhere = OSError(5, "broken", str(inside / "elsewhere"))
    text.attempt("a draft that ends in the middle", lambda: _draft(inside / "half", elsewhere))
    for name in ("killed__/draft/inner", "occupied/draft/inner", "empty___", "yours/draft/inner"):
        Path(inside, f".new-{name}").mkdir(parents=True)
    with files._lock_draft(str(inside / ".new-occupied")):
        text.attempt("a draft on a disk that is full", lambda: _draft(inside / "half", OSError(28, "full")))
    text.note("there is", " | ".join(sorted(path.name for path in inside.iterdir())))


def _draft(folder: Path, error: Exception | None = None) -> None:
    with files.open_draft(str(folder)) as draft:
        Path(draft, "inner").mkdir()
        if error is not None:
            raise error


# ── signals ─────────────────────────────────────────────────────────────────


class _Ended(BaseException):
    """Raised where the process would end."""


def _end(code: int) -> None:
    raise _Ended(code)


def _play_signals(text: _Text, _folder: Path) -> None:
    """The effects of a signal"""
    done: list[str] = []
    clock = SimpleNamespace(now=100.0)
    handlers: dict[int, Any] = dict.fromkeys((*interrupts._NUMBERS, signal.SIGALRM), signal.SIG_DFL)
    handlers[signal.SIGHUP] = signal.SIG_IGN

    def act(title: str, action: Callable[[], object]) -> None:
        try:
            done.append(f"returns {action()}")
        except (_Ended, interrupts.Interrupted, ValueError) as error:
            done.append(f"{type(error).__name__} {error}")
        state = interrupts._State
        text.note(f"{title}: begun {state.has_begun}, first {state.number} at {state.came_at}", [*done])
        done.clear()

    def set_handler(number: int, handler: Any) -> None:
        done.append(f"{signal.Signals(number).name} by {getattr(handler, '__name__', str(handler))}")

    names = {"process": os.getpid(), "has_begun": False, "number": 0, "came_at": 0.0}
    with _patched(
        (interrupts, "_State", type("_State", (), names)), (os, "_exit", _end), (os, "write", lambda *written: done.append(str(written))),
        (os, "kill", lambda _pid, number: done.append(f"kills by {number}")), (time, "monotonic", lambda: clock.now),
        (signal, "signal", set_handler), (signal, "getsignal", handlers.get), (signal, "setitimer", lambda *timer: done.append(str(timer))),
        (signal, "pthread_sigmask", lambda *mask: done.append(str([int(item) if isinstance(item, int) else [*map(int, item)] for item in mask]))),
        (interrupts.atexit, "register", lambda action: done.append(f"registers {action.__name__}")),
        (interrupts.atexit, "unregister", lambda action: done.append(f"unregisters {action.__name__}")),
        (sys, "unraisablehook", None), (sys, "__unraisablehook__", lambda _error: done.append("is shown")),
    ):  # fmt: skip
        act("it begins", interrupts.leave_at_once)
        act("the hook", lambda: getattr(sys.unraisablehook, "__name__", None))
        act("it ends", interrupts._ignore)
        state: Any = interrupts._State
        for number in (signal.SIGINT, signal.SIGTERM):
            act("a signal before anything is begun", lambda number=number: interrupts._handle_signal(number, None))
            state.number = 0
        state.has_begun = True
        act("a signal", lambda: interrupts._handle_signal(signal.SIGTERM, None))
        for seconds in (0.0, 5.0, 0.1):
            clock.now += seconds
            act(f"another, {seconds} s later", lambda: interrupts._handle_signal(signal.SIGINT, None))
        for error in (interrupts.Interrupted(15), ValueError("x")):
            act(f"swallowed: {error!r}", lambda error=error: interrupts._on_swallowed(SimpleNamespace(exc_value=error)))  # type: ignore[arg-type]
        act("raised again", lambda: interrupts._raise_again(14, None))
        act("a block that fails after it", lambda: _block(ValueError("x")))
        act("raised again later", lambda: interrupts._raise_again(14, None))
        state.number = 0
        act("a block that fails", lambda: _block(ValueError("x")))
        act("a block", lambda: _block(None))
        state.process, state.has_begun = -1, True
        act("a signal of a child", lambda: interrupts._handle_signal(signal.SIGINT, None))
        act(
            "swallowed by a child",
            lambda: interrupts._on_swallowed(SimpleNamespace(exc_value=interrupts.Interrupted(15))),
        )  # type: ignore[arg-type]
        act("raised again in a child", lambda: interrupts._raise_again(14, None))


def _block(error: Exception | None) -> str:
    with interrupts.interruptible():
        if error is not None:
            raise error
        return f"begun {interrupts._State.has_begun}"


# ── other distributions ─────────────────────────────────────────────────────


def _play_plugins(text: _Text, folder: Path) -> None:
    """Plug-ins, their halves, and the installation of an extra"""
    group = "[segjudge.families]\n"
    site = folder / "site"
    for name, points in {
        "whole-1.0.dist-info": f"{group}whole = whole_package\nempty = empty_package\n[other]\nlost = whole_package\n",
        "Twice-2.dist-info": f"{group}twice = twice_package:thing [extra]\n", "twice-1.dist-info": f"{group}twice = old_package\n",
        "absent.egg-info": f"{group}absent = absent_package\n", "other-1.dist-info": "[other]\nx = y\n", "text-1.other": f"{group}x = y\n",
    }.items():  # fmt: skip
        written = {
            "entry_points.txt": points,
            "METADATA": f"Metadata-Version: 2.1\nName: {name.split('-')[0].split('.')[0]}\nVersion: {2 if '2' in name else 1}\n",
        }
        (site / name).mkdir(parents=True)
        for file, content in written.items():
            (site / name / ("PKG-INFO" if file == "METADATA" and "egg" in name else file)).write_text(content)
    (site / "none-1.dist-info").mkdir()
    (site / "odd-1.dist-info").mkdir()
    (site / "odd-1.dist-info/entry_points.txt").write_bytes(b"\xff segjudge.families")
    for half in ("whole_package/upload", "whole_package/toolkit", "twice_package/upload", "empty_package/toolkit"):
        (site / half).mkdir(parents=True)
        (site / half.partition("/")[0] / "__init__.py").touch()
        (site / half / "__init__.py").touch() if half[0] != "e" else None
    with _patched((sys, "path", [str(site), "", str(folder / "none")])):
        results = plugins.list_plugins.__wrapped__()
        text.note("plug-ins", [f"{plugin.origin}" for plugin in results])
        with _patched((plugins, "list_plugins", lambda: results)):
            for package in (plugins.UPLOADS, plugins.TOOLKITS):
                for name in ("whole", "twice", "empty", "lost", "plugins"):
                    text.note(f"{package}.{name}", _origin_of(f"{package}.{name}"))
            listing = plugins.find_half(f"{plugins.UPLOADS}.plugins")
            module = SimpleNamespace()
            if listing and listing.loader:
                listing.loader.exec_module(module)  # type: ignore[arg-type]
            text.note("their listing", vars(module)["FOLDERS"])
            for name in ("segjudge.evaluation_script.families.absent", "families.whole"):
                try:
                    text.note(name, _origin_of(name))
                except (ModuleNotFoundError, KeyError) as error:
                    text.note(name, repr(error))


def _origin_of(name: str) -> str:
    spec = plugins.find_half(name)
    return f"{spec.origin} {spec.submodule_search_locations}" if spec else "none"


# ── the network and processes ───────────────────────────────────────────────


def _play_network(text: _Text, folder: Path) -> None:
    """Failures of networks and children"""

    def stream(*blocks: object) -> Any:
        def read(size: int, *, decode_content: bool) -> Iterator[object]:
            text.note("  reads", (size, decode_content))
            for block in blocks:
                if isinstance(block, Exception):
                    raise block
                yield block

        return SimpleNamespace(raw=SimpleNamespace(stream=read))

    for blocks in ((b"a", b"", b"b"), (b"a", ValueError("invalid literal")), (b"a", ConnectionError("reset"))):
        for options in ({}, {"size": 7, "decode": False}):
            text.attempt(f"{len(blocks)} blocks", lambda: [*network.read_blocks(stream(*blocks), **options)])  # noqa: B023
    with patch.object(network.threading, "Thread", side_effect=RuntimeError("can't start new thread")):
        text.attempt("no thread", lambda: network.call_watched(lambda: 1, lambda: None))
    text.attempt("a defect", lambda: network.call_watched(lambda: _raise(OSError(5, "broken")), lambda: None))
    clock, looks = SimpleNamespace(now=10.0), list[str]()
    with patch.object(network, "time", SimpleNamespace(monotonic=lambda: clock.now)):
        watch = network.with_deadline(2.5, lambda: looks.append("looks"))
        for clock.now in (10.0, 12.5, 12.6):
            text.attempt(f"at {clock.now}", watch)
    text.note("the watch", looks)
    named = OSError(113, "No route to host")
    wrapped = network.requests.ConnectionError(network.urllib3.exceptions.ProtocolError("aborted", named))
    wrapped.__context__ = named
    for error in (named, wrapped, ValueError("x: y: z"), ValueError(""), OSError("x" * 400)):
        text.note("the reason", network.reason_of(error))
    with patch.object(network.random, "uniform", lambda low, high: low + high):
        text.note("pauses", [[*network.pauses(tries)] for tries in (1, 2, 9)])
    growing = [network.growing_pauses(), network.growing_pauses(0.5, 3)]
    text.note("growing", [[next(pauses) for _ in range(7)] for pauses in growing])
    connections, ends = network._Connections(), list[str]()
    handle: Any = SimpleNamespace(shutdown=lambda _how: ends.append("shuts"), close=lambda: ends.append("closes"))
    connected: Any = SimpleNamespace(dup=lambda: handle)
    connections._note(connected)
    text.note("before the end", list(ends))
    connections.shut()
    connections._note(connected)
    text.note("a connection that is made after the end", ends)
    children: list[Any] = []
    for watched in (RuntimeError("x"), PermissionError(13, "Permission denied"), OSError("x")):
        child: Any = SimpleNamespace(above=1, poll=lambda: None, end=lambda: children.append("ends"))
        with (
            patch.object(bounds.threading, "Thread", lambda **_: SimpleNamespace(start=lambda: None)),
            patch.object(TreeWatch, "_excess", side_effect=watched),
        ):
            tree = TreeWatch(child, TreeBounds())
            tree._run()
        text.note("what cannot be watched", f"{tree.sentence}, {children}")
    child = processes.Child(["true"])
    for name in ("input", "output", "errors"):
        try:
            getattr(child, name)
        except ValueError as error:
            text.note(name, error)
    child.end()
    silent: Any = SimpleNamespace(
        _control=SimpleNamespace(settimeout=lambda seconds: text.note("waits", seconds), makefile=_never)
    )
    text.note("a supervisor that says nothing", processes.Child._start_report(silent))
    for code in (0, 3, -9, -99):
        text.note(str(code), (ExitCode(code).sentence, ExitCode(code).is_signal))
    with patch.dict(os.environ, {"HOME": "/home", "OTHER": "x", "PATH": "/bin", "SECRET": "y"}, clear=True):
        text.note("an environment", [*processes.clean_environment("OTHER", "NONE", A="1", HOME="/mine").items()])


def _raise(error: Exception) -> None:
    raise error


def _never(_mode: str) -> Any:
    raise TimeoutError


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="segjudge-") as scratch:
        FILE.write_text(write_machine(Path(scratch)), encoding="utf-8")
