"""The installed Segjudge as a wheel, however it was installed and wherever it came from."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

from packaging.version import Version

from segjudge.evaluation_script.files.packed import add_member
from segjudge.evaluation_script.scoring import VERSION
from segjudge.system.errors import UsageError

PROJECT = "segjudge"
#: A kernel inside is used on the system that its name says; the wheel itself installs everywhere.
_ABOUT = "Wheel-Version: 1.0\nGenerator: segjudge\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_METADATA = ("METADATA", "entry_points.txt", "licenses/LICENSE")


def installed_wheel() -> tuple[str, bytes]:
    """Return the name and content of a wheel with the package that runs; the same package gives the same bytes.

    Raises `UsageError` where it was not installed, so that nothing is known of what it needs.
    """
    stem = f"{PROJECT}-{Version(VERSION)}"
    members = {**dict(_package_files()), **{f"{stem}.dist-info/{name}": data for name, data in _metadata()}}
    members[f"{stem}.dist-info/WHEEL"] = _ABOUT.encode()
    record = f"{stem}.dist-info/RECORD"
    lines = [f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in sorted(members.items())]
    members[record] = "".join([*lines, f"{record},,\n"]).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in members.items():
            add_member(wheel, name, data)
    return f"{stem}-py3-none-any.whl", out.getvalue()


def _package_files() -> Iterator[tuple[str, bytes]]:
    """Yield the package's files; of a checkout its links lead to the folders of the bundle."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for path, folders, names in os.walk(package, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not name.endswith((".pyc", ".partial")):
                inner = os.path.relpath(os.path.join(path, name), package).replace(os.sep, "/")
                yield f"{PROJECT}/{inner}", Path(path, name).read_bytes()


def _metadata() -> Iterator[tuple[str, bytes]]:
    remedy = "install it (pip install .), or name a wheel with --segjudge"
    # Beside a checkout there may be what setuptools leaves, which is no installation.
    installed = next((entry for entry in distributions(name=PROJECT) if entry.read_text("METADATA")), None)
    if installed is None:
        raise UsageError(f"this Segjudge was not installed, so that what it needs is not known; {remedy}")
    if Version(installed.version) != Version(VERSION):
        found = f"what is installed as Segjudge {installed.version} is {VERSION} by now"
        raise UsageError(f"{found}; {remedy}")
    for name in _METADATA:
        text = installed.read_text(name)
        if text:
            yield name, text.encode()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
