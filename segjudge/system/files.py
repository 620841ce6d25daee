"""A folder that one process has for itself, files and folders that are written in one step, where files may be
written, and how addresses are shown.
"""

import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from segjudge.evaluation_script.files.packed import NotWritten, replace_file
from segjudge.evaluation_script.files.problems import HostError
from segjudge.system.errors import UsageError

#: What the name of a folder begins with while it is made.
_DRAFT = ".new-"
#: Bytes of a file's name that come from one name.
_NAME_BYTES = 120
#: Files of these kinds may be renewed in a folder of results: no reader takes them, and the official tools write them.
_NO_RESULTS = (".csv", ".html", ".svg", ".yaml", ".yml")
#: Who names a folder so means a file.
_NO_FOLDERS = (".zip", ".html", ".json", ".tar.gz")

#: What of an address may be secret: user and password, as any @ before the path is read, and query and fragment.
_USER = r"(\w[\w+.-]*://)(?:[^\s/'\"<>]*|[^\s/@:'\"<>]*:(?!\d+/)[^\s'\"<>]*)@"
_QUERY = r"(\w[\w+.-]*://[^\s?#'\"<>]*)[?#][^\s'\"<>]*"


class OutputFile(str):
    """The path of a file that a command writes, into a folder that is there; "-" is stdout."""

    __slots__ = ()
    makes_folders = False


class BuiltFile(OutputFile):
    """The path of a file that a command writes; the folders above it are made."""

    __slots__ = ()
    makes_folders = True


class OutputFolder(BuiltFile):
    """The path of a folder into which a command writes."""

    __slots__ = ()


def check_outputs(outputs: Sequence[str], inputs: Sequence[str]) -> None:
    """Raise UsageError for what cannot be written, would be written over what is read, or is written twice."""
    folders = [os.path.realpath(path) for path in outputs if isinstance(path, OutputFolder)]
    for index, path in enumerate(outputs):
        above = os.path.realpath(os.path.dirname(path) or ".")
        if isinstance(path, OutputFolder) and path.endswith(_NO_FOLDERS) and not os.path.exists(path):
            raise UsageError(f"{path}: a folder is written here, not a file; name it as a folder")
        try:
            _check_writable(path, makes_folders=above in folders or getattr(path, "makes_folders", False))
        except OSError as error:
            raise UsageError(f"{error.filename}: cannot be written ({error.strerror})") from None
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            continue  # a device or a pipe
        if any(_is_same(path, output) for output in outputs[:index]):
            raise UsageError(f"{path}: is named for two outputs; name a file for each")
        for source in inputs:
            _check_apart(path, source)


def _check_apart(path: str, source: str) -> None:
    """Raise UsageError where an output is an input, or a file in a folder that is read."""
    target, folder = os.path.realpath(path), os.path.join(os.path.realpath(source), "")
    if _is_same(path, source) and not (isinstance(path, OutputFolder) and os.path.isdir(source)):
        raise UsageError(f"{path}: is read, and would be written over; name another file")
    below = target.startswith(folder) and not isinstance(path, OutputFolder) and not target.endswith(_NO_RESULTS)
    if below and os.path.exists(target):
        raise UsageError(f"{path}: is in {source}, which is read, and would be written over; name another file")


def _is_same(path: str, second: str) -> bool:
    if os.path.exists(path) and os.path.exists(second):
        return os.path.samefile(path, second)
    return os.path.realpath(path) == os.path.realpath(second)


def _check_writable(path: str, *, makes_folders: bool) -> None:
    """Raise OSError where a file or folder cannot be written; what is there stays as it is."""
    if isinstance(path, OutputFolder) and os.path.exists(path):
        os.scandir(path).close()
        _check_access(path)
    elif os.path.isfile(path) or os.path.isdir(path):
        with open(path, "ab"):
            return
    elif not os.path.exists(path):  # a pipe would end for whoever reads it
        folder = os.path.dirname(path) or "."
        while makes_folders and not os.path.exists(folder):
            folder = os.path.dirname(folder) or "."
        os.scandir(folder).close()
        _check_access(folder)


def _check_access(folder: str) -> None:
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder and those above it; raises NotWritten where that fails."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        number = errno.ENOTDIR if error.errno == errno.EEXIST else error.errno
        raise NotWritten(number, os.strerror(number or 0), os.fspath(path)) from None


def redact(text: str) -> str:
    """Take user, password and the query, by which files are signed, out of the addresses in a text."""
    return re.sub(_QUERY, r"\1", re.sub(_USER, r"\1", text)) if "://" in text else text


def redact_address(address: str) -> str:
    """A path, or an address without what may be secret."""
    return re.split(r"[?#]", re.sub(_USER, r"\1", address))[0] if "://" in address else address


def name_of(path: str) -> str:
    """The name of a file or folder, by its path or address."""
    return os.path.basename(os.path.normpath(redact_address(path)))


def file_name(name: str) -> str:
    """Make a name that came from a file part of a file's name: it makes no path, and two names stay two."""
    safe = re.sub(r"^\.|[^\w &+,=@.()-]", lambda match: _escape(match[0]), name)
    if len(safe.encode()) <= _NAME_BYTES:
        return safe
    head = safe.encode()[: _NAME_BYTES - 17].decode(errors="ignore")
    return f"{head}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _escape(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def remove_folder(path: str) -> None:
    """Remove a folder in which untrusted programs wrote: it may be deeper than any path, and closed to its owner."""
    with suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        for words in (["chmod", "-R", "u+rwx", path], ["rm", "-rf", "--", path]):
            import subprocess  # for folders deeper than a path alone

            subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Make a folder in which untrusted programs may write, and remove it when the block ends."""
    import tempfile  # most commands need none

    folder = tempfile.mkdtemp(prefix=prefix)
    try:
        yield folder
    finally:
        remove_folder(folder)


def hold_folder(folder: str, user: str) -> TextIO:
    """Hold a folder for this process until the process ends or the returned file is closed.

    Raises HostError where another process holds it, or where it cannot be made or written.
    """
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        file = open(os.path.join(folder, "lock"), "w", encoding="ascii")  # noqa: SIM115 - held as long as the process
    except OSError as error:
        words = f"{folder}: cannot be written ({error.strerror}); name another folder with --data"
        raise HostError(words) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise HostError(f"{folder}: another {user} uses this folder; end it, or name another with --data") from None
    return file


def replace(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file in one step: a reader finds the old content or the new, each complete."""
    with replace_file(str(path)) as partial:
        if private:  # before there is anything in it
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT, 0o600))
        Path(partial).write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def open_output(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a text file that takes its place whole when the block ends, and not at all when it fails."""
    with replace_file(os.fspath(path)) as partial, open(partial, "w", encoding="utf-8") as file:
        yield file


@contextmanager
def open_draft(folder: str) -> Iterator[str]:
    """Give a folder to write into, which becomes this one in one step; UsageError where there is something already."""
    import tempfile

    target = os.path.abspath(folder)
    if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise UsageError(f"{folder}: is there already, and nothing in it is written over; name another folder")
    target = os.path.realpath(target)  # a link to an empty folder stays
    above = os.path.dirname(target)
    try:
        make_folder(above)
        with tempfile.TemporaryDirectory(dir=above, prefix=_DRAFT) as temporary:
            draft = os.path.join(temporary, "draft")
            os.mkdir(draft)
            yield draft
            os.replace(draft, target)
    except NotWritten:
        raise
    except OSError as error:
        if error.filename and _DRAFT not in str(error.filename):
            raise HostError(f"{error.filename}: cannot be read ({error.strerror})") from None
        raise NotWritten(error.errno, error.strerror, folder) from None
