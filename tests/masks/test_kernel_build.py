"""The kernel on its way to EvalAI's worker: compiled alike everywhere, uploaded if present, used if valid."""

from __future__ import annotations

import ctypes
import io
import os
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from segjudge.kernel import compiling
from segjudge.platforms.evalai.bundle.build import build
from tests.builders import ANNOTATIONS, ROOT, STRONG
from tests.fuzz_kernel import picture
from tests.shared import IN_CI

LIBRARY = f"masks/segjudge_kernel.{compiling.WORKER_SYSTEM}.so"
WORKER = os.environ.get("SEGJUDGE_WORKER_PYTHON", "")
HAS_COMPILER = any(map(shutil.which, compiling.COMPILERS))
needs_compiler = pytest.mark.skipif(not HAS_COMPILER and not IN_CI, reason="NO C COMPILER")


def script_of(bundle: str, folder: Path) -> list[str]:
    """Extract a bundle's script as EvalAI's worker does; return the names of its files."""
    with zipfile.ZipFile(bundle) as outer, zipfile.ZipFile(io.BytesIO(outer.read("evaluation_script.zip"))) as inner:
        inner.extractall(folder / "evaluation_script")
        return inner.namelist()


# ── on this machine ─────────────────────────────────────────────────────────


@pytest.mark.long
@pytest.mark.parametrize(("setting", "is_warned"), [("damaged.so", True), ("off", False)])
def test_score_warns_of_a_kernel_that_cannot_be_used(setting: str, is_warned: bool, tmp_path: Path) -> None:
    for name in ("damaged.so", "damaged.so.sha256"):
        (tmp_path / name).write_bytes(b"damaged")
    variables = {**os.environ, "SEGJUDGE_KERNEL": str(tmp_path / setting) if is_warned else setting}
    words = ["-m", "segjudge", "score", "examples/sequences-dev", "--phase", "sequences-dev"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=variables, capture_output=True, text=True, check=True)
    assert ("because the kernel cannot be used" in done.stderr) == is_warned


def library_of(folder: Path, names: list[str], *flags: str) -> ctypes.CDLL:
    """Return the library of some sources, compiled with these flags."""
    compiler = next(filter(None, map(shutil.which, compiling.COMPILERS)))
    sources, out = [str(Path(compiling.SOURCES) / name) for name in names], str(folder / f"{len(flags)}.so")
    subprocess.run([compiler, "-std=c99", "-O1", "-fPIC", "-shared", *flags, *sources, "-o", out], check=True)
    return ctypes.CDLL(out)


@pytest.mark.long
@needs_compiler
@pytest.mark.parametrize("flag", ["-U__SSE2__"])
def test_pictures_are_read_alike_without_instructions_of_some_processors(flag: str, tmp_path: Path) -> None:
    libraries = [library_of(tmp_path, ["colours.c", "inflate.c", "png.c"], *flags) for flags in ([], [flag])]
    statuses = []
    generator = random.Random(1)
    for _ in range(300):
        size = generator.choice([(9, 70), (2, 9000), (generator.randrange(1, 30), generator.randrange(1, 300))])
        depth, colour = generator.choice([(8, 0), (16, 0), (8, 2), (8, 6)])
        data = picture(generator, *size, depth, colour)
        wide = 4 if colour else depth // 8
        results = []
        for kernel in libraries:
            out = np.zeros(size, f"<u{wide}")
            sides = (ctypes.c_int64(number) for number in (len(data), *size))
            status = kernel.sj_read_png(data, *sides, ctypes.c_int32(wide), ctypes.c_void_p(out.ctypes.data))
            results.append((status, out.tobytes()))
        assert results[0] == results[1]
        statuses.append(results[0][0])
    assert statuses.count(0) > 40


# ── in the bundle ───────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("library", "suits"),
    [
        (b"", True),
        (b"\0GLIBC_2.2.5\0GLIBC_2.14\0", True),
        (b"GLIBC_2.17\0", True),
        (b"\0GLIBC_2.14\0GLIBC_2.34\0", False),
    ],
)
def test_a_build_takes_the_kernel_of_this_installation_if_the_worker_can_load_it_and_fetches_nothing(
    library: bytes, suits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "kernel").mkdir()
    monkeypatch.setattr(compiling, "SOURCES", str(tmp_path / "kernel"))
    own = compiling.Library(tmp_path / "evaluation_script/masks", compiling.WORKER_SYSTEM)
    own.folder.mkdir(parents=True)
    own.path.write_bytes(library)
    own.checksum.write_text("\n".join(compiling._checksums(own.path, ["cc"])))
    built = build(str(ROOT), str(tmp_path / "bundle.zip"))
    assert str(built).endswith(", with kernel") == suits
    names = script_of(built.path, tmp_path / "script")
    assert ({LIBRARY, f"{LIBRARY}.sha256"} <= set(names)) == suits == any(".so" in name for name in names)
    assert not (tmp_path / "cache").exists()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache with the kernel for EvalAI's worker; its compiler comes from the package index."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        compiling.compile_for_worker()
        build(str(ROOT), str(folder / "first.zip"))
    return folder


@pytest.mark.long
def test_a_built_kernel_goes_along_until_it_is_left_out(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    built = build(str(ROOT), str(tmp_path / "with.zip"))
    assert str(built).endswith("with kernel")
    assert {LIBRARY, f"{LIBRARY}.sha256"} <= set(script_of(built.path, tmp_path))
    again = build(str(ROOT), str(tmp_path / "again.zip"))
    assert Path(built.path).read_bytes() == Path(again.path).read_bytes() == (cache / "first.zip").read_bytes()
    without = build(str(ROOT), str(tmp_path / "without.zip"), kernel=False)
    assert LIBRARY not in script_of(without.path, tmp_path / "without")


@pytest.mark.long
@pytest.mark.skipif(not WORKER and not IN_CI, reason="PYTHON 3.9 ABSENT: use ./run.sh test")
def test_the_worker_scores_alike_with_a_kernel_and_with_a_damaged_one(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    built = build(str(ROOT), str(tmp_path / "bundle.zip"))
    script_of(built.path, tmp_path)
    code = (
        "import sys; from evaluation_script import evaluate; from evaluation_script.masks.backend import backend; print(backend().about)\n"
        "print(evaluate(sys.argv[1], sys.argv[2], 'sequences-dev')['result'])"
    )

    def scored() -> list[str]:
        command = [WORKER, "-c", code, str(ANNOTATIONS), str(STRONG)]
        variables = {key: value for key, value in os.environ.items() if key != "SEGJUDGE_KERNEL"}
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        return [lines[0], lines[-1]]

    state, result = scored()
    assert state.startswith(f"kernel for {compiling.WORKER_SYSTEM} ")
    library = tmp_path / "evaluation_script" / LIBRARY
    data = bytearray(library.read_bytes())
    data[len(data) // 2] ^= 1
    library.write_bytes(data)
    damaged_state, damaged_result = scored()
    assert "is not the file that the build wrote" in damaged_state
    assert damaged_result == result


@pytest.mark.long
@needs_compiler
def test_the_sanitizers_find_nothing() -> None:
    command = [sys.executable, "-m", "tests.fuzz_kernel", "--inputs", "1000"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "no finding" in done.stdout
