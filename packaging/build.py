"""Build a release on one machine: the sdist, a wheel for each system by ziglang, and the wheel for all others.

    python packaging/build.py [--out dist/release] [--only PLATFORM]

Needs `build`, `setuptools`, `twine` and `ziglang`, as `packaging/locks/release.txt` pins them.  Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from segjudge.kernel.compiling import PLACE, RELEASED, cache_folder  # noqa: E402 - it is in no environment

#: The platform of the wheel without a kernel.
PURE = "any"


def build(out: Path, form: str, **variables: str) -> Path:
    """Build one file in a folder of its own and return it."""
    command = [sys.executable, "-m", "build", "--no-isolation", f"--{form}", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, env={**os.environ, **variables}, stdout=subprocess.DEVNULL, check=True)
    return max(out.iterdir(), key=lambda path: path.stat().st_mtime_ns)


def check_wheel(wheel: Path, platform: str) -> None:
    """Raise SystemExit unless the wheel has its platform's name and kernel, and no other."""
    with zipfile.ZipFile(wheel) as archive:
        kernels = [name for name in archive.namelist() if "segjudge_kernel." in name]
    library = (
        f"segjudge/evaluation_script/{PLACE}/segjudge_kernel.{RELEASED[platform][0]}.so" if platform != PURE else ""
    )
    if kernels != ([library, f"{library}.sha256"] if library else []) or not wheel.stem.endswith(
        f"-py3-none-{platform}"
    ):
        sys.exit(f"{wheel.name} has {kernels or 'no kernel'}, and should have {library or 'none'}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the sdist and the wheels of a release.")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "dist/release", help="an empty folder (default: %(default)s)"
    )
    parser.add_argument("--only", choices=[*RELEASED, PURE], action="append", help="build this wheel alone")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if any(args.out.iterdir()):
        sys.exit(f"{args.out} is not empty")
    zig = {"ZIG_GLOBAL_CACHE_DIR": str(cache_folder() / "zig")}
    for platform in args.only or [*RELEASED, PURE]:
        variables = {"SEGJUDGE_KERNEL": "off"} if platform == PURE else {"SEGJUDGE_WHEEL_PLATFORM": platform, **zig}
        wheel = build(args.out, "wheel", **variables)
        check_wheel(wheel, platform)
        print(f"{wheel.name}  {wheel.stat().st_size:,} bytes")
    if not args.only:
        print(build(args.out, "sdist").name)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, args.out.iterdir())], check=True)


if __name__ == "__main__":
    main()
