"""Parts of one scoring: files with the counts of some sequences or images, which merge into the scores.

`docs/scale.md` describes the format.
"""

import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from enum import Enum
from typing import Any

import numpy as np

from segjudge.evaluation_script.families import FAMILIES, PROTOCOLS, engine_of, report_of
from segjudge.evaluation_script.families.base.accumulator import Accumulator
from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.evaluation_script.families.base.reports import Report
from segjudge.evaluation_script.files.archive import UPLOAD
from segjudge.evaluation_script.files.limits import check_memory
from segjudge.evaluation_script.files.packed import MANIFEST, add_member, replace_file
from segjudge.evaluation_script.files.problems import Flaw, name_list, printable
from segjudge.evaluation_script.runner.parallel import WHOLE, Part
from segjudge.evaluation_script.runner.tuning import without_collector
from segjudge.evaluation_script.scoring import VERSION
from segjudge.evaluation_script.scoring.provenance import provenance
from segjudge.scoring.results_names import ResultsName
from segjudge.system.errors import UsageError

_FORMAT = "segjudge part 1"
_NOT_WRITTEN = "was written neither by `score --part` nor by `score --save`, or is damaged; score the results first"
#: The limits of a part, inflated: bytes of the manifest, its memory, bytes of one member, bytes of all members; the
#: numbers of members, and of parts of one scoring.
_MOST_MANIFEST, _MOST_MEMORY, _MOST_MEMBER, _MOST_BYTES = 256 << 20, 1 << 30, 1 << 30, 16 << 30
_MOST_MEMBERS, _MOST_PARTS = 1 << 20, 100_000

#: The manifest's keys besides its format.
_KINDS = {
    "version": str, "protocol": str, "rules": dict, "strict": bool, "part": int, "of": int, "truth": str,
    "predictions": str, "counted_by": str, "limits": dict, "notes": list, "splits": list, "members": list,
}  # fmt: skip
#: The differences between parts, in a sentence, by the manifest's key.
_DIFFER = {
    "version": "were made by different versions of segjudge",
    "protocol": "were scored by different protocols",
    "rules": "were scored by different rules of the same protocol",
    "strict": "differ in --strict",
    "of": "belong to runs with different numbers of parts",
    "truth": "were scored on different truths",
    "predictions": "were scored from different predictions",
    "splits": "cover different sequences or images",
    "notes": "differ in their warnings about the truth",
}


def write_part(  # noqa: PLR0913 - what a part holds
    path: str,
    share: Part,
    splits: Mapping[str, Accumulator[Any, Any]],
    notes: list[str],
    provenance: Mapping[str, Any],
    *,
    strict: bool | None = None,
    costs: Mapping[str, Mapping[str, float]] | None = None,
    slips: Mapping[str, list[str]] | None = None,
    results: ResultsName | None = None,
) -> None:
    """Write the counts of a part; equal counts give equal bytes.

    All splits have the same protocol and strictness. `costs` gives, by split, the cost of each kind of failure, and
    `slips` what the doctor says; neither follows from counts. `results` is the name of the results in warnings.
    """
    template = next(iter(splits.values()))
    states = [accumulator.state_dict() for accumulator in splits.values()]
    manifest = {
        "format": _FORMAT,
        "version": provenance["version"],
        "protocol": template.protocol.name,
        "rules": rules_as_json(template.protocol),
        "strict": template.strict if strict is None else strict,
        "part": share.number,
        "of": share.count,
        "truth": provenance["truth"],
        "predictions": provenance["submission"],
        "counted_by": provenance["counted_by"],
        "limits": dict(provenance["limits"]),
        "notes": notes,
        "splits": [{"name": name, **accumulator.describe()} for name, accumulator in splits.items()],
        "members": [list(state) for state in states],
        **({"costs": costs} if costs else {}),
        **({"slips": slips} if slips else {}),
        **({"results": results} if results else {}),
    }
    with replace_file(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        add_member(archive, MANIFEST, json.dumps(manifest, separators=(",", ":")).encode())
        for split, state in enumerate(states):
            for index, data in enumerate(state.values()):
                add_member(archive, _member(split, index), data)


def save(
    path: str,
    reports: list[Report],
    notes: list[str],
    provenance: Mapping[str, Any],
    costs: Mapping[str, Mapping[str, float]],
    results: ResultsName | None = None,
) -> None:
    """Write scores as the only part of a scoring; raises UsageError if they could not be loaded again."""
    protocols = {report.protocol.name: report.protocol for report in reports}
    if len(protocols) != 1:
        raise UsageError(f"splits of {' and '.join(protocols)} cannot be saved together; score each with split=…")
    ((name, protocol),) = protocols.items()
    if not has_known_rules(protocol):
        raise UsageError(f"the rules of {name} were changed; only scores by its own rules can be saved")
    counts = {report.split: report.counts for report in reports if report.counts is not None}
    slips = {report.split: report.slips for report in reports if report.slips}
    write_part(path, WHOLE, counts, notes, provenance, strict=False, costs=costs, slips=slips, results=results)


def has_known_rules(protocol: FamilyProtocol) -> bool:
    """Return whether a protocol described in parts has the rules that this version knows."""
    return read_rules({"protocol": protocol.name, "rules": rules_as_json(protocol)}) == protocol


#: The reports of all splits, the truth's oddities, and the provenance.
_Merged = tuple[list[Report], list[str], dict[str, Any]]


def merge_parts(paths: Iterable[str]) -> _Merged:
    """Return the merged parts; raises UsageError unless all fit."""
    template: dict[str, Any] = {}
    first_path, seen, accumulators = "", dict[int, str](), list[Accumulator[Any, Any]]()
    counted_by = set[str]()
    for path in paths:
        with _open(path) as archive:
            manifest = _read_manifest(archive, path)
            if not template:
                template, first_path = manifest, path
                accumulators = _make_accumulators(manifest, path)
            _check_mergeable(template, first_path, manifest, path)
            number = manifest["part"]
            if number in seen:
                raise UsageError(f"{seen[number]} and {path} are both part {number}; give each part once")
            seen[number] = path
            counted_by.add(manifest["counted_by"])
            _add(archive, path, manifest, accumulators)
    if not template:
        raise UsageError("merge needs the parts")
    missing = [str(number) for number in range(1, template["of"] + 1) if number not in seen]
    if missing:
        what = "part" if len(missing) == 1 else "parts"
        raise UsageError(
            f"{what} {name_list(missing, 8)} of {template['of']} missing; score the missing parts, then merge all"
        )
    name = _name_of(template, first_path) or ResultsName(UPLOAD, holds_files=True)
    with name.put_into_errors():
        reports = _make_reports(template, accumulators)
    for report, lines in zip(reports, _read_slips(template, first_path, reports), strict=True):
        report.suspect(lines)
        report.warnings[:] = map(name.put_into, report.warnings)
    origin = template["truth"], template["predictions"], " and ".join(sorted(counted_by)), template["limits"]
    protocols = {report.split: report.protocol for report in reports}
    notes = [str(note) for note in template["notes"]]
    return reports, notes, {**provenance(protocols, *origin), "version": template["version"]}


def _read_slips(manifest: dict[str, Any], path: str, reports: list[Report]) -> list[list[str]]:
    """Return what the doctor said of each split when the scores were saved."""
    try:
        return [[str(line) for line in manifest.get("slips", {}).get(report.split, ())] for report in reports]
    except (AttributeError, TypeError):
        raise UsageError(f"{path}: has a manifest that cannot be read. Score it again") from None


def read_costs(path: str) -> dict[str, dict[str, float]]:
    """Read the saved cost of each kind of failure by split; empty if it was not saved."""
    with _open(path) as archive:
        costs = _read_manifest(archive, path).get("costs", {})
    try:
        read = {split: {kind: float(cost) for kind, cost in kinds.items()} for split, kinds in costs.items()}
        if not all(math.isfinite(cost) for kinds in read.values() for cost in kinds.values()):
            raise ValueError
    except (AttributeError, TypeError, ValueError, OverflowError):
        raise UsageError(f"{path}: has a manifest that cannot be read. Score it again") from None
    return read


def read_name(path: str) -> ResultsName | None:
    """Read the name of the scored results; None if they were in memory."""
    with _open(path) as archive:
        return _name_of(_read_manifest(archive, path), path)


def _name_of(manifest: dict[str, Any], path: str) -> ResultsName | None:
    fields = manifest.get("results")
    if fields is None:  # also of earlier versions
        return None
    if [*map(type, fields if isinstance(fields, list) else [])] != [str, bool]:
        raise UsageError(f"{path}: has a manifest that cannot be read. Score it again")
    name, holds_files = fields
    return ResultsName(printable(name), holds_files)


def _make_reports(manifest: dict[str, Any], accumulators: list[Accumulator[Any, Any]]) -> list[Report]:
    reports: list[Report] = []
    for entry, accumulator in zip(manifest["splits"], accumulators):
        split = printable(entry["name"])
        if accumulator.missing():
            raise UsageError(f"the parts lack {name_list(accumulator.missing())} of {split}; score them again")
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                reports.append(report_of(entry["name"], accumulator))
        except (LookupError, TypeError, ValueError, ArithmeticError) as error:
            fault = f"impossible counts of {split} ({printable(error)})"
            raise UsageError(f"the parts hold {fault}; score them again") from None
    return reports


def rules_as_json(protocol: FamilyProtocol) -> dict[str, Any]:
    """Return the rules of a protocol as JSON values."""
    return dict(json.loads(json.dumps(asdict(protocol), default=_name)))


def _name(value: Enum) -> str:
    return value.name


def _member(split: int, index: int) -> str:
    return f"counts/{split}/{index:06d}"


def _open(path: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be opened ({error.strerror})") from None
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise UsageError(f"{path}: {_NOT_WRITTEN}") from None


def _read(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Return a member; raises ValueError if it is too large or damaged."""
    try:
        info = archive.getinfo(name)
        if info.file_size > limit:
            raise ValueError(f"{name} is larger than {limit >> 20} MB")
        with archive.open(info) as member:
            return member.read(info.file_size)
    except (KeyError, OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(str(error)) from None


def _read_manifest(archive: zipfile.ZipFile, path: str) -> dict[str, Any]:
    infos = archive.infolist()
    if len(infos) > _MOST_MEMBERS or sum(info.file_size for info in infos) > _MOST_BYTES:
        raise UsageError(f"{path}: is too large for a part")
    try:
        data = _read(archive, MANIFEST, _MOST_MANIFEST)
        check_memory(data, _MOST_MEMORY, "")
        with without_collector():
            manifest = json.loads(data)
        form = manifest["format"]
    except (Flaw, ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"{path}: {_NOT_WRITTEN}") from None
    if form != _FORMAT:
        raise UsageError(f"{path}: has the format {printable(form)}; this version reads {_FORMAT!r}. Score it again")
    fits = all(type(manifest.get(key)) is kind for key, kind in _KINDS.items())
    if not fits or not 1 <= manifest["part"] <= manifest["of"] <= _MOST_PARTS:
        raise UsageError(f"{path}: has a manifest that cannot be read. Score it again")
    return dict(manifest)


def _check_mergeable(manifest: dict[str, Any], first_path: str, added: dict[str, Any], path: str) -> None:
    for key, differ in _DIFFER.items():
        if manifest[key] != added[key]:
            raise UsageError(f"{first_path} and {path} {differ}; merge only parts of one run")


def _make_accumulators(manifest: dict[str, Any], path: str) -> list[Accumulator[Any, Any]]:
    """Return an empty accumulator for each split."""
    protocol = read_rules(manifest)
    if protocol is None:
        was = f"{printable(manifest['protocol'])} of segjudge {printable(manifest['version'])}"
        raise UsageError(f"{path}: was scored by {was}, whose rules this version ({VERSION}) lacks")
    try:
        if not all(isinstance(entry["name"], str) for entry in manifest["splits"]):
            raise TypeError
        accumulator = engine_of(protocol.family).accumulator
        return [accumulator.make_empty(protocol, entry, strict=manifest["strict"]) for entry in manifest["splits"]]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise UsageError(f"{path}: has a manifest that cannot be read. Score it again") from None


def read_rules(manifest: dict[str, Any]) -> FamilyProtocol | None:
    """Return the protocol of a part, if this version has its rules."""
    protocol, rules = PROTOCOLS.get(manifest["protocol"]), manifest["rules"]
    if protocol is not None:  # with the rules that options of `score` change
        adjustable = FAMILIES[protocol.family].adjustable_rules
        protocol = replace(protocol, **{name: rules.get(name) for name in adjustable})
    own_rules = rules_as_json(protocol) if protocol is not None else {}
    # Rules that the part lacks were added later: with an equal revision, they give the same numbers.
    same = all(own_rules.get(key) == value for key, value in rules.items() if key != "about")
    return protocol if same and rules.get("revision") == own_rules.get("revision", ...) else None


def _add(archive: zipfile.ZipFile, path: str, manifest: dict[str, Any], totals: list[Accumulator[Any, Any]]) -> None:
    """Add the counts of one part."""
    try:
        parts = _make_accumulators(manifest, path)
        for split, (names, counts, total) in enumerate(zip(manifest["members"], parts, totals, strict=True)):
            counts.load_state_dict(
                {name: _read(archive, _member(split, index), _MOST_MEMBER) for index, name in enumerate(names)}
            )
            engine_of(counts.protocol.family).check(counts)
            total.merge(counts)
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path}: is damaged ({printable(error)}). Score it again") from None
