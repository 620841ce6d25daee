"""Each rejection of an archive, word for word."""

from __future__ import annotations

import io
import re
import tarfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from segjudge.evaluation_script.files import archive
from segjudge.evaluation_script.files.archive import open_files
from segjudge.evaluation_script.files.limits import PACK_AGAIN, ArchiveLimits
from segjudge.evaluation_script.files.problems import Flaw, SubmissionError
from tests.families.sequences.test_hostile_submissions import raw_tar, raw_zip


def tar_gz(size: int) -> bytes:
    """Return a tar.gz with a file of zeros."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("a.png")
        member.size = size
        archive.addfile(member, io.BytesIO(bytes(size)))
    return out.getvalue()


LINK = "is a link or a device, not a file. Put the files themselves into the archive"
#: A zip whose end refers to a record for large archives that is not there.
LOST_RECORD = raw_zip([{"name": b"a.png"}])
LOST_RECORD = LOST_RECORD[:-22] + b"PK\x06\x07" + bytes(16) + LOST_RECORD[-22:]
ARCHIVES = {
    "a bomb of gzip": (tar_gz(40 << 20), f"your file: unpacks to more than 200 times its size, like a gzip bomb. {PACK_AGAIN}"),
    "a placeholder": (b"file_content", "your file: did not arrive: the upload failed, and EvalAI holds a 12-byte placeholder instead. Submit it again"),
    "a link in a zip": (raw_zip([{"name": b"a/x.png", "attributes": 0o120777 << 16}]), f"a/x.png: {LINK}"),
    "a link in a tar": (raw_tar(tarfile.SYMTYPE, link="/etc/passwd"), f"crossing/x.png: {LINK}"),
    "a zero in a name": (raw_zip([{"name": b"a\0.png"}]), "a: has forbidden characters in its name. Rename it in UTF-8"),
    "a name that is not UTF-8": (raw_zip([{"name": b"\xff.png"}]), "\\xa0.png: has a name that is not UTF-8. Rename it with plain letters"),
    "a member that ends early": (raw_zip([{"name": b"a.png", "data": b"abc", "size": 9, "method": 8}]), f"a.png: is damaged in the zip: it ends too early. {PACK_AGAIN}"),
    "a lost record": (LOST_RECORD, f"your file: is a damaged zip: its table of contents cannot be found. {PACK_AGAIN}"),
    "bytes of two members": (raw_zip([{"name": b"a.png", "data": bytes(99)}, {"name": b"b.png", "data": bytes(99), "offset": 40}]), f"b.png: shares its bytes with another file of the zip, as a zip bomb does. {PACK_AGAIN}"),
    "a bomb": (raw_zip([{"name": b"a.png", "data": b"abc", "size": (4 << 20) + 1, "method": 8}]), f"a.png: unpacks to more than 200 times its size, like a zip bomb. {PACK_AGAIN}"),
    "an absolute name": (raw_zip([{"name": b"/a.png"}]), "/a.png: is an absolute path. Zip the folder from inside, so that names are relative"),
    "a drive": (raw_zip([{"name": b"C:/a.png"}]), "C:/a.png: is an absolute path. Zip the folder from inside, so that names are relative"),
    "a name outside": (raw_zip([{"name": b"b/../../a.png"}]), "b/../../a.png: points outside the archive. Zip the folder from inside, so that no name contains .."),
    "a name that is too long": (raw_zip([{"name": b"a" * 4097}]), f"{'a' * 120}...: has a name of more than 4,096 characters. Rename it"),
    "a file that is too deep": (raw_zip([{"name": b"a/" * 99 + b"a.png"}]), f"{'a/' * 60}...: is 99 folders deep; the limit is 11. Move it to a higher folder"),
    "a file twice": (raw_zip([{"name": b"a.png"}] * 2), f"a.png: is in the archive twice. {PACK_AGAIN}"),
    "an archive inside": (raw_zip([{"name": b"a.zip"}]), "a.zip: is an archive itself. Unpack it first"),
    "a wrong checksum": (raw_tar()[:512] + b"b" + raw_tar()[1:], f"your file: is a damaged tar: a header's checksum is wrong. {PACK_AGAIN}"),
    "a name without an end": (raw_tar(b"L", size=b"00000020001"), f"your file: is a tar with an unterminated file name. {PACK_AGAIN}"),
    "an impossible size": (raw_tar(size=b"0000000000x"), f"your file: is a damaged tar: a member has an impossible size. {PACK_AGAIN}"),
    "an odd extended header": (raw_tar(b"x", size=b"00000000010"), f"your file: is a damaged tar: an extended header cannot be read. {PACK_AGAIN}"),
}  # fmt: skip


def refuse(path: Path, limits: ArchiveLimits) -> str:
    """Return the rejection of an archive that is opened, and whose files are read."""
    with pytest.raises((Flaw, SubmissionError)) as caught, closing(open_files(str(path), limits)) as files:
        for member in files.sizes:
            files.read(member)
    error = caught.value
    return str(error.as_problem("a.png") if isinstance(error, Flaw) else error)


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_is_refused_by_its_own_sentence(name: str, tmp_path: Path) -> None:
    data, sentence = ARCHIVES[name]
    (tmp_path / "upload").write_bytes(data)
    assert refuse(tmp_path / "upload", ArchiveLimits()) == f"{sentence}."


def test_links_that_reach_a_folder_on_many_paths_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FOLDER_WAYS", 2)
    (tmp_path / "a").mkdir()
    for name in "bc":
        (tmp_path / name).symlink_to("a")
    sentence = refuse(tmp_path, replace(ArchiveLimits(), links=True))
    assert re.sub("reach [abc]", "reach a", sentence) == (
        f"{tmp_path}: holds links that reach a on more than 2 paths. Remove the links between folders."
    )
