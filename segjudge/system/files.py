"""Files on disk: exclusive folders, atomic files and folders, writable places, and printable addresses."""

from __future__ import annotations

import errno
import io
import os
import pathlib
import re
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, TextIO

from segjudge.evaluation_script.files.packed import NotWritten, add_member, replace_file
from segjudge.evaluation_script.files.problems import HostError
from segjudge.system.errors import UsageError

#: The prefix of a folder's name while it is made.
_DRAFT = ".new-"
_DRAFT_NAME = re.escape(_DRAFT) + r"[a-z0-9_]{8}"
#: The maximum bytes of a file's name that come from one name.
_NAME_BYTES = 120
#: Files of these kinds may be replaced in a folder of results: no reader takes them, and the official tools write them.
_NO_RESULTS = (".csv", ".html", ".svg", ".yaml", ".yml")
#: The endings of archives.
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
#: Endings of names that mean a file, not a folder.
_NO_FOLDERS = (".zip", ".html", ".json", ".gz", ".tgz", ".tar", ".csv", ".svg", ".png", ".md", ".yaml")

#: The parts of an address that may be secret: user and password, that is any @ before the path, and query and fragment.
_USER = r"(\w[\w+.-]*://)(?:[^\s/'\"<>]*|[^\s/@:'\"<>]*:(?!\d+/)[^\s'\"<>]*)@"
_QUERY = r"(\w[\w+.-]*://[^\s?#'\"<>]*)[?#][^\s'\"<>]*"


class OutputFile(str):
    """The path of an output file in an existing folder; "-" is stdout."""

    __slots__ = ()
    makes_folders = False


class BuiltFile(OutputFile):
    """The path of an output file whose folders are created."""

    __slots__ = ()
    makes_folders = True


class OutputFolder(BuiltFile):
    """The path of a folder into which a command writes."""

    __slots__ = ()


def check_outputs(outputs: Sequence[str], inputs: Sequence[str], options: Sequence[str] = ()) -> None:
    """Raise UsageError for outputs that are unwritable, overwrite inputs, or coincide; `options` name the outputs."""
    folders = [os.path.realpath(path) for path in outputs if isinstance(path, OutputFolder)]
    for index, path in enumerate(outputs):
        above = os.path.realpath(os.path.dirname(path) or ".")
        if isinstance(path, OutputFolder) and path.endswith(_NO_FOLDERS) and not os.path.exists(path):
            raise UsageError(f"{path}: names a file, but the output is a folder; name a folder")
        if not isinstance(path, OutputFolder) and path.endswith(("/", os.sep)):
            raise UsageError(f"{path}: names a folder, but the output is a file; name a file in it")
        try:
            _check_writable(path, makes_folders=above in folders or getattr(path, "makes_folders", False))
        except OSError as error:
            remedy = f"; choose another path with {options[index]}" if any(options[index : index + 1]) else ""
            raise UsageError(f"{error.filename}: cannot be written ({error.strerror}){remedy}") from None
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            continue  # a device or a pipe
        if any(_is_same(path, output) for output in outputs[:index]):
            raise UsageError(f"{path}: is named for two outputs; name a file for each")
        for source in inputs:
            _check_apart(path, source)


def _check_apart(path: str, source: str) -> None:
    """Raise UsageError if an output is an input, or lies in an input folder."""
    target, folder = os.path.realpath(path), os.path.join(os.path.realpath(source), "")
    if _is_same(path, source) and not (isinstance(path, OutputFolder) and os.path.isdir(source)):
        raise UsageError(f"{path}: is an input and would be overwritten; name another file")
    below = target.startswith(folder) and not isinstance(path, OutputFolder) and not target.endswith(_NO_RESULTS)
    if below and os.path.exists(target):
        raise UsageError(f"{path}: is in the input {source} and would be overwritten; name another file")


def _is_same(path: str, second: str) -> bool:
    if os.path.exists(path) and os.path.exists(second):
        return os.path.samefile(path, second)
    return os.path.realpath(path) == os.path.realpath(second)


def _check_writable(path: str, *, makes_folders: bool) -> None:
    """Raise OSError if a file or folder cannot be written, without changing it."""
    if isinstance(path, OutputFolder) and os.path.exists(path):
        os.scandir(path).close()
        _check_access(path)
    elif os.path.isfile(path) or os.path.isdir(path):
        with open(path, "ab"):
            return
    elif not os.path.exists(path):  # its reader would see the end of a pipe
        folder = os.path.dirname(path) or "."
        while makes_folders and not os.path.exists(folder):
            folder = os.path.dirname(folder) or "."
        os.scandir(folder).close()
        _check_access(folder)


def _check_access(folder: str) -> None:
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def make_folder(path: str | os.PathLike[str]) -> None:
    """Create a folder and its parents; raises NotWritten if that fails."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        number = errno.ENOTDIR if error.errno == errno.EEXIST else error.errno
        raise NotWritten(number, os.strerror(number or 0), os.fspath(path)) from None


def redact(text: str) -> str:
    """Return text with user, password and (signed) query removed from its URLs."""
    return re.sub(_QUERY, r"\1", re.sub(_USER, r"\1", text)) if "://" in text else text


def redact_address(address: str) -> str:
    """Return a path, or a URL without secrets."""
    return re.split(r"[?#]", re.sub(_USER, r"\1", address))[0] if "://" in address else address


def name_of(path: str) -> str:
    """Return the name of a file or folder from its path or URL."""
    return os.path.basename(os.path.normpath(redact_address(path)))


def digest_of_bytes(path: str | bytes | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return digest_of_file(file)


def digest_of_file(file: IO[bytes], kind: str = "sha256") -> str:
    """Return the digest of the bytes that an open file still has."""
    import hashlib  # which loads OpenSSL

    digest = hashlib.new(kind)
    for block in iter(lambda: file.read(1 << 18), b""):
        digest.update(block)
    return digest.hexdigest()


def file_name(name: str) -> str:
    """Return an untrusted name as a safe, distinct part of a file name."""
    safe_name = re.sub(r"^\.|[^\w &+,=@.()-]", lambda match: _escape(match[0]), name)
    if len(safe_name.encode()) <= _NAME_BYTES:
        return safe_name
    import hashlib  # which loads OpenSSL

    head = safe_name.encode()[: _NAME_BYTES - 17].decode(errors="ignore")
    return f"{head}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _escape(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def remove_folder(path: str) -> None:
    """Remove a folder of untrusted programs, however deep and protected."""
    with suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        for command in (["chmod", "-R", "u+rwx", path], ["rm", "-rf", "--", path]):
            import subprocess  # for folders deeper than a path alone

            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[str]:
    """Yield a folder for untrusted programs, and remove it afterwards."""
    import tempfile  # most commands need none

    folder = tempfile.mkdtemp(prefix=prefix)
    try:
        yield folder
    finally:
        remove_folder(folder)


def hold_folder(folder: str, user: str) -> TextIO:
    """Lock a folder for this process until it ends or the returned file is closed.

    Raises HostError if another process holds it, or if it cannot be made or written.
    """
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        file = open(os.path.join(folder, "lock"), "w", encoding="ascii")  # noqa: SIM115 - held as long as the process
    except OSError as error:
        message = f"{folder}: cannot be written ({error.strerror}); name another folder with --data"
        raise HostError(message) from None
    import fcntl  # which Windows lacks

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise HostError(f"{folder}: another {user} uses this folder; stop it, or name another with --data") from None
    return file


def replace(path: pathlib.Path, content: str | bytes, *, private: bool = False) -> None:
    """Write a file atomically: readers see the old content or the new."""
    with replace_file(str(path)) as partial:
        if private:  # before it has content
            os.close(os.open(partial, os.O_WRONLY | os.O_CREAT, 0o600))
        pathlib.Path(partial).write_bytes(content.encode() if isinstance(content, str) else content)


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Return a zip of files by their names; the same files give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            add_member(archive, name, data)
    return out.getvalue()


@contextmanager
def open_output(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a text file that is written atomically when the block ends, and not if it fails.

    Line ends are the same on every system. Bytes of file names that are no UTF-8 are written as escapes.
    """
    escapes = "backslashreplace"
    with replace_file(os.fspath(path)) as partial, open(partial, "w", -1, "utf-8", escapes, newline="") as file:
        yield file


@contextmanager
def open_draft(folder: str, *, replaces: bool = False) -> Iterator[str]:
    """Yield a draft folder that becomes this one when it is whole.

    Raises UsageError if the folder has content, unless the draft replaces it.
    """
    import tempfile

    target = os.path.abspath(folder)
    has_folder = os.path.isdir(target)
    if os.path.lexists(target) and not (has_folder and (replaces or not os.listdir(target))):
        raise UsageError(f"{folder}: already exists and is not overwritten; name another folder")
    target = os.path.realpath(target)  # a link to an empty folder stays
    above = os.path.dirname(target)
    try:
        make_folder(above)
        _remove_abandoned_drafts(above)
        with tempfile.TemporaryDirectory(dir=above, prefix=_DRAFT) as temporary, _lock_draft(temporary):
            draft = os.path.join(temporary, "draft")
            os.mkdir(draft)
            yield draft
            if has_folder and replaces:
                os.replace(target, os.path.join(temporary, "replaced"))
            os.replace(draft, target)
    except NotWritten:
        raise
    except OSError as error:
        if error.filename and _DRAFT not in str(error.filename):
            raise HostError(f"{error.filename}: cannot be read ({error.strerror})") from None
        raise NotWritten(error.errno, error.strerror, folder) from None


def _remove_abandoned_drafts(folder: str) -> None:
    """Remove the drafts in a folder whose processes were killed."""
    with suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            # An empty draft is just being made or removed.
            if re.fullmatch(_DRAFT_NAME, name) and os.path.isdir(os.path.join(path, "draft")):
                with _lock_draft(path) as is_free:
                    if is_free:
                        shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _lock_draft(folder: str) -> Iterator[bool]:
    """Lock a draft for the block; yields whether it was free, or False if it cannot be locked."""
    try:
        import fcntl  # which Windows lacks

        descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    except (ImportError, OSError):
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = True
    except OSError:  # another process has it, or the file system has no locks
        is_free = False
    try:
        yield is_free
    finally:
        os.close(descriptor)
