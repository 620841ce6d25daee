"""Finding a bundle: its location, its kind, and the phases that our scorers score."""

from __future__ import annotations

import enum
import io
import os
import traceback
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from segjudge.evaluation_script.files.problems import HostError, nearest
from segjudge.platforms.evalai.hosted_worker.folder import folder_has_our_modules, has_our_modules
from segjudge.system import IMPORT_ROOT
from segjudge.system.errors import UsageError
from segjudge.system.options import BUNDLE

if TYPE_CHECKING:
    from segjudge.evaluation_script.scoring.phase import Phase

CONFIG = "challenge_config.yaml"
CONFIG_NAMES = (CONFIG, "challenge_config.yml")
SCRIPT_FOLDER = "evaluation_script"
PHASES_FILE = "phases.py"
#: The folder of a phase's pictures in a bundle, which is not uploaded: `pictures/CODENAME`.
PICTURES_FOLDER = "pictures"
#: The maximum bytes of a script that is read to recognise its author.
_SCRIPT_BYTES = 64 << 20
#: The exceptions of zipfile for a damaged or unsupported member.
UNREADABLE = (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, EOFError, ValueError, KeyError)


class BundleKind(enum.Enum):
    """The kind of a bundle, by its scorers."""

    #: Our scorers in the bundle's folder: a fork or a checkout.
    FORK = "fork"
    #: Our installed scorers: the config has only `evaluation_script/phases.py` next to it.
    SMALL = "small"
    #: The bundle's own scorers.
    FOREIGN = "foreign"


class BundleSource(NamedTuple):
    """A bundle: its path, kind and config."""

    #: The folder with the config, the samples and remembered facts; of a zip, the bundle's folder around it if there is
    #: one, else the zip's folder.
    root: str
    kind: BundleKind
    #: The config's name in the folder.
    config_name: str = CONFIG
    #: The built zip, if the user named it.
    archive: str = ""

    @property
    def is_foreign(self) -> bool:
        """Return whether the scorers are foreign, without a Segjudge `phases.py`."""
        return self.kind is BundleKind.FOREIGN

    @property
    def takes_kernel(self) -> bool:
        """Return whether the bundle's scorers can load the kernel."""
        from segjudge.kernel.compiling import PLACE

        loader = os.path.join(self.root, SCRIPT_FOLDER, PLACE, "kernel.py")
        return self.kind is BundleKind.SMALL or os.path.isfile(loader)

    def config(self) -> dict[str, Any]:
        """Return the YAML; raises `HostError` where that cannot be read."""
        from .yaml_lines import parse_config

        path = self.archive or os.path.join(self.root, self.config_name)
        try:
            return parse_config(CONFIG, _read_config_of(path) if self.archive else Path(path).read_bytes())
        except UNREADABLE as error:
            raise HostError(f"{path}: {CONFIG} cannot be read ({error})") from None

    def phases(self) -> tuple[Phase, ...]:
        """Return the phases with every split hidden that `phases.py` or the YAML hides; raises `HostError`."""
        from .secrecy import hide_splits

        return hide_splits(self.config(), self.script_phases())

    def script_phases(self) -> tuple[Phase, ...]:
        """Return the phases of `phases.py` alone; raises `HostError` if the bundle's scorers are not ours."""
        subject = os.path.join(self.archive or self.root, SCRIPT_FOLDER, PHASES_FILE)
        if self.is_foreign:
            raise HostError(f"{subject}: this bundle has its own scorers, and no {PHASES_FILE} of Segjudge")
        if self.archive:
            text = _script_files(self.archive)[PHASES_FILE]
        else:
            try:
                text = Path(subject).read_bytes()
            except OSError as error:
                raise HostError(f"{subject}: cannot be read ({error.strerror})") from None
        return read_phases(text, subject)

    def list_published(self) -> list[str]:
        """Return the splits whose scores anonymous visitors see, as PHASE/SPLIT; raises `HostError`."""
        from .secrecy import list_published

        return list_published(self.config(), self.script_phases())

    def list_protocols(self) -> list[str]:
        """List the protocols of the bundle's phases; empty if `phases.py` is wrong, which `check` reports."""
        with suppress(HostError):
            return [split.protocol for phase in self.phases() for split in phase.splits]
        return []

    def phase(self, codename: str) -> Phase:
        """Return the phase of this name, as `phases` returns it; raises `UsageError` for an unknown one."""
        return _choose_phase(self.phases(), codename)

    def script_phase(self, codename: str) -> Phase:
        """Return the phase of this name from `phases.py`, ignoring the YAML."""
        return _choose_phase(self.script_phases(), codename)


def _choose_phase(phases: tuple[Phase, ...], codename: str) -> Phase:
    for phase in phases:
        if phase.codename == codename:
            return phase
    codenames = [phase.codename for phase in phases]
    near = nearest(codename, codenames)
    hint = f" Did you mean {near}?" if near else ""
    raise UsageError(f"There is no phase {codename!r} in this challenge; its phases are: {', '.join(codenames)}.{hint}")


def find_bundle(path: str = "") -> BundleSource:
    """Find the bundle of a folder, a built zip or a config.

    Without a path it is the bundle of the current folder, else of the checkout whose `run.sh` runs, else of this
    checkout. Raises `UsageError` if there is none.
    """
    if not path:
        for folder in (os.getcwd(), os.environ.get(BUNDLE, ""), IMPORT_ROOT):
            if folder and _config_names(folder):
                return _folder_source(folder)
        raise UsageError(
            f"there is no {CONFIG} here; run the command in the bundle's folder, or name one with --bundle"
        )
    if os.path.isdir(path):
        return _folder_source(os.path.abspath(path))
    if not os.path.isfile(path):
        raise UsageError(f"{path}: there is no such file or folder")
    if os.path.basename(path) in CONFIG_NAMES:
        return _folder_source(os.path.dirname(os.path.abspath(path)))
    if path.endswith((".yaml", ".yml")):
        raise UsageError(f"{path}: EvalAI reads only {CONFIG}; rename it")
    return _zip_source(os.path.abspath(path))


def read_phases(text: bytes, subject: str) -> tuple[Phase, ...]:
    """Return the phases in the text of a `phases.py`, using the installed classes."""
    import segjudge.evaluation_script
    from segjudge.evaluation_script.scoring.phase import Phase

    module = ModuleType(f"{segjudge.evaluation_script.__name__}.phases_of_a_bundle")
    module.__package__ = segjudge.evaluation_script.__name__
    try:
        exec(compile(text, subject, "exec"), module.__dict__)  # noqa: S102 - the host's own table, as the worker does
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a host may have written
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == subject]
        line = getattr(error, "lineno", None) or (frames[-1].lineno if frames else 1)
        raise HostError(f"{subject}, line {line}: {type(error).__name__}: {error}") from None
    phases = module.__dict__.get("PHASES")
    if not isinstance(phases, tuple) or not phases or not all(isinstance(phase, Phase) for phase in phases):
        raise HostError(f"{subject}: PHASES is not a tuple of phases")
    return phases


def _folder_source(folder: str) -> BundleSource:
    names = _config_names(folder)
    if not names:
        below = [name for name in sorted(os.listdir(folder)) if _config_names(os.path.join(folder, name))]
        hint = f"; there is one in {os.path.join(folder, below[0])}" if below else ""
        raise UsageError(f"{folder}: holds no {CONFIG}{hint}")
    if len(names) > 1:
        raise UsageError(f"{folder}: holds {' and '.join(names)}, but EvalAI accepts only one; remove the other")
    script = os.path.join(folder, SCRIPT_FOLDER)
    modules = [name for name in os.listdir(script) if name.endswith(".py")] if os.path.isdir(script) else []
    kind = BundleKind.FORK if folder_has_our_modules(script) else BundleKind.FOREIGN
    return BundleSource(folder, BundleKind.SMALL if modules == [PHASES_FILE] else kind, names[0])


def _zip_source(path: str) -> BundleSource:
    above = os.path.dirname(path)
    around = next((folder for folder in (above, os.path.dirname(above)) if len(_config_names(folder)) == 1), "")
    kind = BundleKind.FORK if has_our_modules(_script_files(path)) else BundleKind.FOREIGN
    return BundleSource(around or above, kind, archive=path)


def _config_names(folder: str) -> list[str]:
    return [name for name in CONFIG_NAMES if os.path.isfile(os.path.join(folder, name))]


def script_files(data: bytes) -> dict[str, bytes]:
    """Return modules and requirements in a script's zip; raises one of `UNREADABLE` for damage."""
    with zipfile.ZipFile(io.BytesIO(data)) as script:
        names = [name for name in script.namelist() if name.endswith((".py", "requirements.txt"))]
        if sum(script.getinfo(name).file_size for name in names) > _SCRIPT_BYTES:
            raise ValueError("its modules are too large")
        return {name: script.read(name) for name in names}


def _read_config_of(path: str) -> bytes:
    with zipfile.ZipFile(path) as bundle:
        names = [name for name in CONFIG_NAMES if name in bundle.namelist()]
        if not names:
            raise HostError(f"{path}: holds no challenge config. Put {CONFIG} at the top")
        with bundle.open(names[0]) as file:
            return file.read(_SCRIPT_BYTES)


def _script_files(path: str) -> dict[str, bytes]:
    """Return a script's files; empty for an unreadable zip, which `check` explains."""
    try:
        with zipfile.ZipFile(path) as bundle, bundle.open(f"{SCRIPT_FOLDER}.zip") as file:
            return script_files(file.read(_SCRIPT_BYTES))
    except UNREADABLE:
        return {}
