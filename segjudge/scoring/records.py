"""Records of scores, which others check: `score --record` writes one, and `verify` scores again and compares.

A record has the form of Every Eval Ever, schema 0.3.0 (evaleval/every_eval_ever). What that schema has no field for is
text in its `additional_details`, where a digest has the name that in-toto's drafts give it. A record is not signed: its
own digest shows that it was changed by accident, not who wrote it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from segjudge.evaluation_script.families.base.family import FamilyProtocol
from segjudge.evaluation_script.families.base.reports import Report, bounds_of
from segjudge.evaluation_script.files import printable
from segjudge.evaluation_script.scoring import VERSION
from segjudge.families import tools_of
from segjudge.system.addresses import digest_of_content, resolve_address
from segjudge.system.errors import UsageError
from segjudge.system.files import name_of, open_output

from .parts import has_known_rules, read_rules, rules_as_json

if TYPE_CHECKING:
    from .request import ScoreRequest
    from .scores import Scores

_SCHEMA = "0.3.0"
_NAME = "segjudge"
_DIGEST = "digest.sha256"
#: The place of the record's own digest, and those whose values scoring does not determine: who published which model
#: when, and what counted. The record's own digest covers them too.
_OWN = "eval_library.additional_details.record.digest.sha256"
_FREE = (
    "evaluation_id", "evaluation_timestamp", "retrieved_timestamp", "source_metadata.", "model_info.name",
    "model_info.id", "eval_library.version", "eval_library.additional_details.counted_by",
    "eval_library.additional_details.limits", "model_info.additional_details.submission.name",
    "model_info.additional_details.deployment_type", "model_info.additional_details.model_availability",
)  # fmt: skip
#: The words for parts of a result.
_PARTS = {
    "score_details.score": "",
    "score_details.uncertainty.standard_error.value": "(standard error)",
    "score_details.uncertainty.confidence_interval.lower": "(lower end of the interval)",
    "score_details.uncertainty.confidence_interval.upper": "(upper end of the interval)",
}
#: The maximum bytes of a record.
_MOST = 64 << 20
_METHOD = "Student's t; jackknife over sequences, or over groups of images"


class Subject(NamedTuple):
    """What a record is about: the scored model, its submission and the truth."""

    model: str
    submission: str
    truth: str
    #: The scored sequences; None for all.
    sequences: list[str] | None
    #: The truth's name on a model hub, if it has one.
    dataset: str = ""

    @classmethod
    def of_request(cls, request: ScoreRequest, model: str = "", dataset: str = "") -> Subject:
        """Return the subject of a request; a model without a name has the one of its results."""
        model = model or name_of(request.results).partition(".")[0]
        return cls(model, request.results, request.truth.path, request.sequences, dataset)


class Verdict(NamedTuple):
    """The result of a check: equal, or the differences, or the reasons why it cannot be known."""

    compared: int
    differences: list[str]
    unknown: list[str]


def make_record(scores: Scores, subject: Subject, hidden: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the record of scores, without hidden splits."""
    now = time.time()
    reports = [report for report in scores.reports if report.split not in hidden]
    changed = next((each.protocol.name for each in reports if not has_known_rules(each.protocol)), "")
    if changed:
        raise UsageError(f"the rules of {changed} were changed; only scores by rules that have a name can be recorded")
    undefined = [f"{each.split}/{metric}" for each in reports for metric, value in each.values.items() if value is None]
    truth = {
        "dataset_name": name_of(subject.truth),
        **({"source_type": "hf_dataset", "hf_repo": subject.dataset} if subject.dataset else {"source_type": "other"}),
        "additional_details": _digest(subject.truth),
    }
    details = {
        "counted_by": str(scores.provenance.get("counted_by", "")),
        "limits": json.dumps(scores.provenance.get("limits", {})),
        "undefined": json.dumps(undefined),
        "sequences": json.dumps(subject.sequences),
        "rules": json.dumps({report.split: rules_as_json(report.protocol) for report in reports}),
    }
    record: dict[str, Any] = {
        "schema_version": _SCHEMA,
        "evaluation_id": f"{reports[0].protocol.name}/{subject.model}/{int(now)}",
        "evaluation_timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
        "retrieved_timestamp": str(int(now)),
        "source_metadata": {
            "source_name": _NAME,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": {"assuranceLevel": "self_attested"},
        },
        "eval_library": {"name": _NAME, "version": VERSION, "additional_details": details},
        "model_info": {
            "name": subject.model,
            "id": subject.model,
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "submission.name": name_of(subject.submission),
                **{f"submission.{name}": digest for name, digest in _digest(subject.submission).items()},
            },
        },
        "evaluation_results": [result for report in reports for result in _list_results(report, truth)],
    }
    details["record.digest.sha256"] = _digest_of_record(record)
    return record


def write_record(path: str, scores: Scores, subject: Subject, hidden: frozenset[str] = frozenset()) -> None:
    """Write the record of scores, without hidden splits."""
    with open_output(path) as file:
        file.write(f"{json.dumps(make_record(scores, subject, hidden), indent=1)}\n")


def _list_results(report: Report, truth: dict[str, Any]) -> Iterator[dict[str, Any]]:
    protocol, errors, intervals = report.protocol, report.errors(), report.intervals()
    tools = tools_of(protocol.family)
    rules = {"protocol": protocol.name, "revision": protocol.revision}
    for metric, value in report.values.items():
        if value is None:
            continue
        least, greatest = map(_write_bound, bounds_of(metric, protocol))
        uncertainty: dict[str, Any] = {}
        if errors.get(metric) is not None:
            uncertainty["standard_error"] = {"value": errors[metric], "method": "jackknife"}
            uncertainty["num_samples"] = report.count_cases(metric)
        if metric in intervals:
            low, high = intervals[metric]
            interval = {"lower": low, "upper": high, "confidence_level": 0.95, "method": _METHOD}
            uncertainty["confidence_interval"] = interval
        yield {
            "evaluation_result_id": f"{report.split}/{metric}",
            "evaluation_name": report.split,
            "source_data": truth,
            "metric_config": {
                "metric_id": metric,
                "metric_name": metric,
                "metric_parameters": rules,
                "lower_is_better": tools.prefers_smaller(metric),
                "score_type": "continuous",
                "min_score": least,
                "max_score": greatest,
            },
            "score_details": {"score": value, **({"uncertainty": uncertainty} if uncertainty else {})},
        }


def _write_bound(value: float) -> float | str:
    return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"


# ── checking ────────────────────────────────────────────────────────────────


class Record(NamedTuple):
    """A record that was read."""

    path: str
    content: dict[str, Any]

    @classmethod
    def read(cls, path: str) -> Record:
        """Read a record; raises UsageError for anything else."""
        try:
            if os.path.getsize(path) > _MOST:
                raise ValueError(f"it is larger than {_MOST >> 20} MiB")
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            record = cls(path, content)
            if content["eval_library"]["name"] != _NAME:
                raise ValueError("another program wrote it")
            if not content["evaluation_results"]:
                raise ValueError("it has no numbers")
            for result in content["evaluation_results"]:
                float(result["score_details"]["score"])
                str(result["evaluation_name"]), str(result["metric_config"]["metric_id"])
            str(record.rules["name"]), record.sequences, record.version  # they must be readable
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            fault = f"is not a record of `score --record`, or is damaged ({printable(str(error))})"
            raise UsageError(f"{path}: {fault}. Ask its author for the file as it was written") from None
        return record

    @property
    def version(self) -> str:
        return str(self.content["eval_library"]["version"])

    @property
    def rules(self) -> dict[str, Any]:
        """Return the rules of the first split's protocol."""
        rules: dict[str, Any] = json.loads(self.content["eval_library"]["additional_details"]["rules"])[self.splits[0]]
        return rules

    @property
    def sequences(self) -> list[str] | None:
        """Return the scored sequences; None for all."""
        sequences = json.loads(self.content["eval_library"]["additional_details"]["sequences"])
        return None if sequences is None else list(map(str, sequences))

    @property
    def splits(self) -> list[str]:
        """Return the splits, each once."""
        return list(dict.fromkeys(result["evaluation_name"] for result in self.content["evaluation_results"]))

    def find_protocol(self) -> FamilyProtocol:
        """Return the protocol with the recorded rules; raises UsageError if this version has other rules."""
        name = str(self.rules["name"])
        protocol = read_rules({"protocol": name, "rules": self.rules})
        if protocol is None:
            fault = f"the recorded rules of {printable(name)} are not those of segjudge {VERSION}"
            raise UsageError(
                f"{self.path}: cannot be known: {fault}. Verify it with segjudge {printable(self.version)}"
            )
        return protocol

    def compare(self, scores: Scores, subject: Subject, hidden: frozenset[str] = frozenset()) -> Verdict:
        """Compare the record with new scores of its splits alone; numbers of hidden splits are not shown."""
        further_splits = scores.metrics.keys() - self.splits
        if len(further_splits) == len(scores.reports):
            return Verdict(0, [], ["the truth has no split of the record"])
        old_leaves = dict(_flatten(self.content))
        dataset = next((str(value) for path, value in old_leaves.items() if path.endswith(".hf_repo")), "")
        new_leaves = dict(_flatten(make_record(scores, subject._replace(dataset=dataset), frozenset(further_splits))))
        verdict = Verdict(len(self.content["evaluation_results"]), [], [])
        results = _name_results(self.content)
        for path in dict.fromkeys([*old_leaves, *new_leaves]):
            old, new = old_leaves.get(path), new_leaves.get(path)
            is_free = path == _OWN or path.startswith(_FREE) or path.endswith(".dataset_name")
            if is_free or (old == new and type(old) is type(new)):
                continue
            start, _, field = path.partition("].")
            result = results.get(start)
            if f"source_data.additional_details.{_DIGEST}" in path:
                line = "the truth is not the recorded one"
                verdict.unknown.extend([line] * (line not in verdict.unknown))
            elif path.endswith(f"submission.{_DIGEST}"):
                verdict.differences.append("the submission is not the recorded file")
            else:
                subject_words = " ".join(filter(None, (*result, _PARTS.get(field, field)))) if result else path
                is_hidden = result is not None and result[0] in hidden
                values = "is another" if is_hidden else f"is {_show(old)} in the record, and {_show(new)} now"
                verdict.differences.append(f"{subject_words} {values}")
        if old_leaves.get(_OWN) != _digest_of_record(self.content) and not verdict.differences:
            fault = "the record was changed after it was written, in a field that scoring does not determine"
            verdict.differences.append(f"{fault} (model, source, dates, version or limits)")
        return verdict


def _name_results(content: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return the split and metric of each result by the start of its paths."""
    return {
        f"evaluation_results[{index}": (result["evaluation_name"], str(result["metric_config"]["metric_id"]))
        for index, result in enumerate(content["evaluation_results"])
    }


def _flatten(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield the path and value of each leaf of a document."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flatten(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _flatten(inner, f"{path}[{index}]")
    else:
        yield path, value


def _show(value: object) -> str:
    return "missing" if value is None else printable(json.dumps(value))


# ── digests ─────────────────────────────────────────────────────────────────


def _digest(path: str) -> dict[str, str]:
    """Return the SHA-256 of a file, or of a folder's list of files as `sha256sum` prints it; none if it is remote."""
    local = os.fspath(resolve_address(path))
    return {_DIGEST: digest_of_content(local)} if os.path.isfile(local) or os.path.isdir(local) else {}


def _digest_of_record(record: dict[str, Any]) -> str:
    """Return the SHA-256 of a record without its own digest."""
    details = {**record["eval_library"].get("additional_details", {})}
    details.pop("record.digest.sha256", None)
    content = {**record, "eval_library": {**record["eval_library"], "additional_details": details}}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
