"""The content of a board's repositories on the Hub, a folder each; its evaluator fills the one with the results."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from segjudge.platforms.evalai.bundle.bundle_source import SCRIPT_FOLDER, BundleSource
from segjudge.platforms.github.challenge import SETTINGS
from segjudge.platforms.templates import open_templates
from segjudge.starting.lock import FILE, format_lock
from segjudge.system.errors import UsageError
from segjudge.system.files import open_draft, temporary_folder

from .requests import PRIVATE, SUBMISSIONS
from .settings import BUNDLE, SpaceSettings

OUT = os.path.join("dist", "hugging-face")
#: The file of a Space's settings, and the Gradio that it runs with.
SPACE_FILE, GRADIO = "space.json", "6.31.0"
#: What the evaluator needs of a challenge's folder, beside the annotations that its phases name.
_FILES = (SETTINGS, FILE, "wheels", SCRIPT_FOLDER)
#: The address of the Hub, where the Space fetches its wheel.
_HUB = "https://huggingface.co"
CARD = "README.md"


def build(source: BundleSource, repository: str, out: str = "") -> str:
    """Write a folder for each repository that a host fills; return the folder that has them."""
    if source.archive or source.is_foreign:
        fault = "is a zip" if source.archive else "has its own scorers"
        raise UsageError(f"{source.archive or source.root}: {fault}; name a folder whose phases.py is Segjudge's")
    out = out or os.path.join(source.root, OUT)
    settings = SpaceSettings.of_challenge(source, repository)
    with open_draft(out, replaces=True) as draft:
        _write_space(settings, os.path.join(draft, _folder_of(repository)))
        private = Path(draft, _folder_of(repository + PRIVATE))
        _copy_bundle(source, private / BUNDLE)
        for suffix in (PRIVATE, SUBMISSIONS):
            folder = Path(draft, _folder_of(repository + suffix))
            folder.mkdir(exist_ok=True)
            values = {"settings": settings}
            (folder / CARD).write_text(render(f"card{suffix}.md", values), encoding="utf-8")
    return out


def list_folders(out: str, repository: str) -> dict[str, str]:
    """Return the folders of the repositories that a host fills, the private ones first."""
    names = (PRIVATE, SUBMISSIONS, "")
    return {repository + suffix: os.path.join(out, _folder_of(repository + suffix)) for suffix in names}


def _folder_of(repository: str) -> str:
    return repository.partition("/")[2]


def _write_space(settings: SpaceSettings, folder: str) -> None:
    os.mkdir(folder)
    with temporary_folder("segjudge-") as temporary:
        lock = format_lock("", temporary, "hub").splitlines()[0]
        (wheel,) = Path(temporary, "wheels").iterdir()
        shutil.copyfile(wheel, os.path.join(folder, wheel.name))
    # The Hub installs requirements before the Space has its files, so the wheel comes by its address.
    address = f"{_HUB}/spaces/{settings.repository}/resolve/main/"
    texts = {
        "requirements.txt": lock.replace("file:./wheels/", address) + "\n",
        SPACE_FILE: settings.to_json(),
        CARD: render("space.md", {"settings": settings, "gradio": GRADIO}),
        "app.py": render("app.py", {"file": SPACE_FILE}),
    }
    for name, text in texts.items():
        Path(folder, name).write_text(text, encoding="utf-8")


def _copy_bundle(source: BundleSource, folder: Path) -> None:
    """Copy what the evaluator needs of a challenge."""
    names = [source.config_name, *_FILES, *(phase.annotations for phase in source.phases())]
    for name in dict.fromkeys(names):
        path, target = Path(source.root, name), folder / name
        if path.is_dir():
            shutil.copytree(path, target, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        elif path.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


def render(template: str, values: Mapping[str, object]) -> str:
    return open_templates("segjudge.platforms.hugging_face").get_template(f"{template}.jinja").render(values)
