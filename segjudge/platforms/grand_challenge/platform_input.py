"""The content of grand-challenge's `/input` as one submission: an upload, or the outputs of an algorithm's jobs.

It is part of the program in the image and imports only the `evaluation_script` beside it.

The platform unpacks an uploaded zip into `/input`, without its common folders, and adds `inputs.json`. For algorithms,
`predictions.json` lists the jobs in no particular order; `JOB/output` has each job's outputs, with ZIP outputs
unpacked.
"""

from __future__ import annotations

import importlib
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_JOBS, _INPUTS = "predictions.json", "inputs.json"
#: The platform's names for a participant's uploads; all other inputs are the organisers'.
_UPLOADS = ("predictions-csv-file", "predictions-json-file", "predictions-zip-file")
#: The maximum bytes of a list of jobs or inputs.
_LIST_BYTES = 64 << 20
#: Files that may be a whole submission. The platform stores JSON as `predictions.csv` if it looks like plain text.
_SINGLE_FILES = (".json", ".jsonl", ".csv", ".gz", ".tar", ".tgz", ".zip")
#: Keys that name the sequence of a record, in JSON that lists each sequence once.
_SEQUENCE_KEYS = ("dataset", "seq_name")
#: The maximum depth to which objects of the JSON are joined: round, sequence, object.
_DEPTH = 3
#: The maximum digits of a whole number in the JSON of several jobs: ids have 64 bits.
_MOST_DIGITS = 20


def find_submission(source: str, codename: str, temporary: str) -> str:
    """Return the path of the submission to a phase: one file, a folder, or the joined outputs of jobs."""
    jobs = _read_list(source, _JOBS)
    if jobs and all("outputs" in job for job in jobs):
        return _join_jobs(source, jobs, codename, temporary)
    files = _list_upload(source)
    (name, path) = next(iter(files.items())) if len(files) == 1 else ("", "")
    return path if name.endswith(_SINGLE_FILES) and not os.path.islink(path) else _make_folder(source, files)


def _read_list(source: str, name: str) -> list[dict[str, Any]]:
    """Return one of the platform's lists; empty if it is missing or a participant's file of that name."""
    path = os.path.join(source, name)
    if not os.path.isfile(path) or os.path.getsize(path) > _LIST_BYTES:
        return []
    try:
        entries = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError):
        return []
    return entries if isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries) else []


def _socket_of(value: object) -> dict[str, Any]:
    """Return the socket of an input or output; the platform's older name of it is interface."""
    socket = (value.get("socket") or value.get("interface")) if isinstance(value, dict) else None
    return socket if isinstance(socket, dict) else {}


def _refuse(text: str) -> Exception:
    problems = importlib.import_module("evaluation_script.files.problems")
    error: Exception = problems.SubmissionError(text)
    return error


# ── uploads ─────────────────────────────────────────────────────────────────


def _list_upload(source: str) -> dict[str, str]:
    """Return the paths of the uploaded files by name, without the platform's own files."""
    surplus = [_INPUTS]
    for value in _read_list(source, _INPUTS):
        socket = _socket_of(value)
        if socket.get("slug") not in _UPLOADS and isinstance(socket.get("relative_path"), str):
            surplus.append(socket["relative_path"])
    files = {name: path for name, path in _walk(source) if not _lies_in(name, surplus)}
    if not files and os.path.exists(os.path.join(source, _INPUTS)):
        fault = f"Your upload holds only {_INPUTS}, a name that grand-challenge uses itself."
        raise _refuse(f"{fault} Give your results another name, and zip them again.")
    return files


def _walk(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the name and path of each file in a folder, top-level files first; links count as files."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in sorted([*names, *links]):
            path = os.path.join(parent, name)
            yield os.path.relpath(path, folder).replace(os.sep, "/"), path


def _lies_in(name: str, paths: list[str]) -> bool:
    return any(name == path or name.startswith(f"{path}/") for path in paths)


def _make_folder(root: str, paths: dict[str, str]) -> str:
    """Return the address of a folder in which the scorers see only these files, by these names."""
    scorers = importlib.import_module("evaluation_script.files")
    base = importlib.import_module("evaluation_script.files.archive").FolderElsewhere
    # What picked files do not override, such as reading into a buffer, they do as others.
    picked = type("PickedFiles", (_PickedFiles, scorers.limits.Files), {})
    methods = {"open_files": lambda _address, limits: picked(paths, limits)}
    address: str = type("PickedFolder", (base,), methods)(root)
    return address


class _PickedFiles:
    """Some files by name, with the checks of `evaluation_script.files.Files`, from which a class of these inherits."""

    def __init__(self, paths: dict[str, str], limits: Any) -> None:
        scorers: Any = importlib.import_module("evaluation_script.files")
        self.hidden_folders: set[str] = set()
        self.sizes: dict[str, int] = {}
        self._paths: dict[str, str] = {}
        checks = scorers.limits.MemberChecks(limits, self.hidden_folders)
        try:
            for name, path in paths.items():
                if not scorers.limits.is_litter(name.split("/")):
                    checks.count()
                status = os.lstat(path)
                clean = checks.clean_name(name, status.st_size, status.st_size)
                if clean is not None and not stat.S_ISREG(status.st_mode):
                    fault = "is a link or a device, not a file"
                    checks.problems.add(scorers.Problem(name, fault, "Replace it by the file itself"))
                elif clean is not None:
                    self.sizes[clean], self._paths[clean] = status.st_size, path
        except scorers.Flaw as flaw:
            raise scorers.SubmissionError.from_problem(flaw.as_problem("your upload")) from None
        checks.problems.raise_if_any()

    def read(self, name: str) -> bytes:
        return Path(self._paths[name]).read_bytes()

    def read_chunks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a file in chunks."""
        with open(self._paths[name], "rb") as file:
            while chunk := file.read(1 << 20):
                yield chunk

    def close(self) -> None:
        """Do nothing: no file stays open."""


# ── the jobs of an algorithm ────────────────────────────────────────────────


def _join_jobs(source: str, jobs: list[dict[str, Any]], codename: str, temporary: str) -> str:
    """Return the path of the jobs' output: their images, one JSON for all, or the content of the only job's ZIP."""
    phase = importlib.import_module("evaluation_script.main").phase_named(codename)
    outputs: dict[str, str] = {}
    unpacked: dict[str, str] = {}
    images: dict[str, str] = {}
    try:
        jobs = _choose_outputs(jobs, phase)
        for job in sorted(jobs, key=lambda job: str(job["pk"])):  # the list has no order of its own
            files, folder_files = _list_outputs(source, job)
            outputs.update(dict.fromkeys(files, str(job["pk"])))
            unpacked.update(folder_files)
            images.update(_list_images(source, job))
    except (KeyError, TypeError, AttributeError, ValueError):
        raise _refuse(f"{_JOBS} is not a list of jobs with their outputs.") from None
    reads_images = _reads_jobs(phase)
    if images and reads_images:
        return _make_folder(source, {_JOBS: os.path.join(source, _JOBS), **images})
    if len(jobs) == 1 and unpacked:
        return _make_folder(source, unpacked)
    is_json = bool(outputs) and not unpacked and all(path.endswith(".json") for path in outputs)
    if reads_images and (is_json or len(outputs) != 1 or unpacked):
        raise _refuse(
            "The algorithm wrote no image. Write one label volume in each job, to a socket of the kind Segmentation."
        )
    if len(outputs) == 1 and not unpacked:
        return next(iter(outputs))
    if not is_json or sum(map(os.path.getsize, outputs)) > phase.limits.json_bytes:
        raise _refuse("The algorithm must write one JSON file in each job, within the phase's limits.")
    out = os.path.join(temporary, "submission.json")
    try:
        text = json.dumps(_join_documents(outputs, phase.limits))
    except RecursionError:
        raise _refuse("The JSON of the algorithm's jobs is nested too deeply.") from None
    Path(out).write_text(text, encoding="utf-8")
    return out


def _choose_outputs(jobs: list[dict[str, Any]], phase: Any) -> list[dict[str, Any]]:
    """Return the jobs with only their outputs of the phase's socket, if it names one."""
    socket = getattr(phase, "socket", "")  # scorers of an earlier version have no such field
    if not socket:
        return jobs
    slugs = {str(_socket_of(value).get("slug")) for job in jobs for value in job["outputs"]}
    if socket not in slugs:
        problems: Any = importlib.import_module("evaluation_script.files.problems")
        fault = f"phases.py: {phase.codename} scores the output {socket}, but the jobs write"
        raise problems.HostError(f"{fault} {problems.name_list(sorted(slugs))}. Correct its socket.")
    return [
        {**job, "outputs": [value for value in job["outputs"] if _socket_of(value).get("slug") == socket]}
        for job in jobs
    ]


def _list_outputs(source: str, job: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """Return the paths of the JSON that a job wrote, and the files of its ZIP output by name.

    A participant may upload a list of jobs too, so no path may lead outside the input.
    """
    inside, folder = os.path.realpath(source) + os.sep, os.path.join(source, str(job["pk"]), "output")
    paths: list[str] = []
    relative_paths = [(value.get("socket") or value["interface"])["relative_path"] for value in job["outputs"]]
    archives = []
    for relative_path in relative_paths:
        path = os.path.realpath(os.path.join(folder, relative_path))
        if not path.endswith(_SINGLE_FILES) or not path.startswith(inside):
            continue
        if os.path.isfile(path):
            paths.append(path)
        elif path.endswith(".zip") and os.path.isdir(os.path.dirname(path)):
            archives.append(os.path.dirname(path))
        else:
            raise _refuse(f"Job {job['pk']} wrote no {relative_path}; write it in each job.")
    surplus = [relative_path for relative_path in relative_paths if not relative_path.endswith(".zip")]
    return paths, {name: path for root in archives for name, path in _walk(root) if not _lies_in(name, surplus)}


def _list_images(source: str, job: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and path of each file in the folders of a job's images; none is outside of the input."""
    for value in job["outputs"]:
        relative_path = str((value.get("socket") or value["interface"])["relative_path"])
        name = f"{job['pk']}/output/{relative_path}"
        folder = os.path.join(source, name)
        if relative_path.startswith("images/") and os.path.realpath(folder).startswith(
            os.path.realpath(source) + os.sep
        ):
            for inner_name, path in _walk(folder):
                yield f"{name}/{inner_name}", path


def _reads_jobs(phase: Any) -> bool:
    """Return whether the phase's protocols read the list of jobs and their images themselves."""
    protocols = importlib.import_module("evaluation_script.families").PROTOCOLS
    return all(getattr(protocols.get(split.protocol), "reads_jobs", False) for split in phase.splits)


def _join_documents(outputs: dict[str, str], limits: Any) -> Any:
    """Return the documents of these paths as one; the values are the jobs that wrote them."""
    scorers: Any = importlib.import_module("evaluation_script.files")
    documents = []
    for path, job in outputs.items():
        try:
            example = "the same form in each job"
            document = scorers.read_json(Path(path).read_bytes(), limits, example, digits=_MOST_DIGITS)
        except scorers.Flaw as flaw:
            raise scorers.SubmissionError.from_problem(
                flaw.as_problem(f"{os.path.basename(path)} of job {job}")
            ) from None
        documents.append((document, job))
    if len({type(document) for document, _ in documents}) > 1 or not isinstance(documents[0][0], (dict, list)):
        raise _refuse("The algorithm's jobs wrote JSON of several kinds; write the same in each.")
    if isinstance(documents[0][0], list):
        return [record for document, _ in documents for record in document]
    joined: dict[str, Any] = {}
    writers: dict[tuple[str, ...], str] = {}
    for document, job in documents:
        _merge_output(joined, document, (), job, writers)
    return joined


def _merge_output(
    joined: dict[str, Any],
    document: dict[str, Any],
    above: tuple[str, ...],
    job: str,
    writers: dict[tuple[str, ...], str],
) -> None:
    """Add an object to other jobs' output at the same keys; reject different answers.

    `writers` has the first job that wrote at each key, and for each sequence of a list.
    """
    for key, value in document.items():
        keys = (*above, key)
        writer = writers.setdefault(keys, job)
        is_container = isinstance(value, _container(above))
        before = joined.setdefault(key, type(value)() if is_container else value)
        if before.__class__ != value.__class__ or not (is_container or before == value):
            raise _refuse_both(writer, job, keys)
        if is_container and isinstance(value, dict):
            _merge_output(before, value, keys, job, writers)
        elif is_container:
            for record in value:
                sequence = _sequence_of(record)
                if sequence and (writer := writers.setdefault((*keys, *sequence), job)) != job:
                    raise _refuse_both(writer, job, (*keys, *sequence))
            before += value


def _container(above: tuple[str, ...]) -> tuple[type, ...]:
    """Return the kind of container to merge below these keys: a list at the top, objects down to a sequence's."""
    return (dict, list) if not above else (dict,) if len(above) < _DEPTH else ()


def _sequence_of(record: object) -> tuple[str, ...]:
    """Return the data set and sequence that a record of a list answers as a whole; empty for other records."""
    names = [record.get(key) for key in _SEQUENCE_KEYS] if isinstance(record, dict) else []
    return tuple(map(str, names)) if None not in names else ()


def _refuse_both(first_job: str, second_job: str, keys: tuple[str, ...]) -> Exception:
    problems: Any = importlib.import_module("evaluation_script.files.problems")
    job, other_job, name = map(problems.printable, (first_job, second_job, "/".join(keys)))
    return _refuse(f"The jobs {job} and {other_job} both write {name}. Write it in one job.")
