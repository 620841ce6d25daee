"""Every module with rows of a server's rules names the code from which they were taken."""

from __future__ import annotations

import re

from segjudge.platforms.rules.servers import CODABENCH, EVALAI
from tests.builders import ROOT

PLATFORMS = ROOT / "segjudge/platforms"


def test_every_row_has_a_commit_and_files_of_its_server() -> None:
    rows = {
        ".".join(path.relative_to(PLATFORMS).with_suffix("").parts)
        for path in PLATFORMS.rglob("*.py")
        if re.search(r"\b(RuleRow|Field)\(", path.read_text(encoding="utf-8"))
    }
    assert rows - {"rules.fields"} <= {*EVALAI.files, *CODABENCH.files}
    for server in (EVALAI, CODABENCH):
        assert re.fullmatch(r"[0-9a-f]{7,40}", server.commit)
        assert all(
            (PLATFORMS / f"{name.replace('.', '/')}.py").is_file() and files for name, files in server.files.items()
        )
