"""A board on the stand-in for the Hub, made by the commands that its host types."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from segjudge.cli import main
from tests.hub.played import PlayedHub

OWNER, REPOSITORY = "my-lab", "my-lab/cats"


@contextlib.contextmanager
def open_hub() -> Iterator[PlayedHub]:
    """Start the stand-in, and set the variables of its host."""
    hub = PlayedHub()
    with pytest.MonkeyPatch.context() as patched:
        for name, value in {"HF_ENDPOINT": hub.url, "HF_TOKEN": hub.add_token(OWNER)}.items():
            patched.setenv(name, value)
        # The client reads these when it is imported; the stand-in speaks git LFS only.
        patched.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
        patched.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
        template = f"{hub.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        patched.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        patched.setattr("segjudge.system.network.FIRST", 0.01)
        patched.setattr("segjudge.system.network.LONGEST", 0.01)
        yield hub
    hub.close()


def make_challenge(folder: Path, *options: str) -> Path:
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["new", str(folder), "--title", "Cats", "--quiet", *(options or ["--demo"])]) == 0
    return folder


def push(challenge: Path, *options: str, code: int = 0) -> str:
    """Push a challenge; return all output."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        result = main(
            ["push", str(challenge), "--platform", "hugging-face", "--owner", OWNER, "--name", "cats", *options]
        )
    assert result == code, out.getvalue()
    return out.getvalue()


def submissions_of(hub: PlayedHub) -> list[dict[str, Any]]:
    """Return the requests that the Space stored."""
    name = f"{REPOSITORY}-submissions"
    paths = [path for path in hub.list_files(name) if path.startswith("requests/")]
    return [json.loads(hub.read(name, path)) for path in sorted(paths)]
