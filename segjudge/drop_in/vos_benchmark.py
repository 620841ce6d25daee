"""A drop-in replacement of `vos_benchmark.benchmark`: the same numbers in percent, the same results.csv."""

import os
import warnings
from collections.abc import Sequence

from segjudge.evaluation_script.files.problems import name_list
from segjudge.families import tools_of
from segjudge.scoring import score
from segjudge.system.errors import UsageError

#: For each video, J and F of its objects by number.
_VideoValues = dict[str, tuple[dict[int, float], dict[int, float]]]
_RESULTS = "results.csv"


def benchmark(  # noqa: PLR0913 - published
    gt_roots: Sequence[str],
    mask_roots: Sequence[str],
    strict: bool = True,  # noqa: FBT001, FBT002
    overwrite: bool = False,  # noqa: FBT001, FBT002
    num_processes: int | None = None,
    *,
    verbose: bool = True,
    skip_first_and_last: bool = True,
) -> tuple[list[float], list[float], list[float], list[_VideoValues]]:
    """Return J&F, J and F of each dataset and video; folders with a results.csv are skipped.

    A UserWarning names each likely mistake in the masks.

    Args:
        gt_roots: folders with a folder of PNGs for each video.
        mask_roots: folders with the predicted masks, in the same form.
        strict: raise an error if the two sides differ in videos; otherwise score the videos of both sides.
        overwrite: replace an existing results.csv.
        num_processes: the number of processes; None for one per core.
        verbose: print the table.
        skip_first_and_last: skip the first and last frame of each video.

    """
    protocol = "vos-benchmark" if skip_first_and_last else "vos-benchmark-all-frames"
    totals: tuple[list[float], list[float], list[float]] = ([], [], [])
    videos: list[_VideoValues] = []
    for truth, masks in zip(gt_roots, mask_roots, strict=True):
        path = os.path.join(masks, _RESULTS)
        if os.path.exists(path) and not overwrite:
            print(f"{path} already exists. Skipping.")
            continue
        root, names = _find_videos(truth, masks, strict=strict)
        scores = score(masks, root, protocol, layout="generic", sequences=names, jobs=num_processes or "auto")
        for report in scores.reports:
            for line in report.suspicions:
                warnings.warn(f"{masks}: {line}", stacklevel=2)
        values, *_ = scores.metrics.values()
        for total, name in zip(totals, ("J&F-Mean", "J-Mean", "F-Mean"), strict=True):
            total.append(100 * (values[name] or 0.0))
        values_of_videos: _VideoValues = {}
        for row in scores.tables["objects"]:
            for side, metric in zip(values_of_videos.setdefault(row["sequence"], ({}, {})), ("J", "F"), strict=True):
                side[int(row["object"])] = 100 * row[f"{metric}-Mean"]
        videos.append(values_of_videos)
        (report,) = scores.reports
        text = tools_of(report.protocol.family).make_files(report)["results"]
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        if verbose:
            print(text.replace(",", " "), end="")
    return (*totals, videos)


def _find_videos(truth: str, masks: str, *, strict: bool) -> tuple[str, list[str]]:
    """Return the folder of a truth's videos, and the videos to score."""
    predicted = _list_folders(masks)
    if _list_folders(truth) != predicted and "Annotations" in _list_folders(truth):
        truth = os.path.join(truth, "Annotations")
    annotated = _list_folders(truth)
    if strict and annotated != predicted:
        lacking, surplus = name_list(sorted(annotated - predicted), 5), name_list(sorted(predicted - annotated), 5)
        faults = [*([f"lacks {lacking}"] if lacking else []), *([f"adds {surplus}"] if surplus else [])]
        raise UsageError(f"{masks} {' and '.join(faults)}; with strict=False, only the common videos are scored")
    return truth, sorted(annotated & predicted)


def _list_folders(path: str) -> set[str]:
    return {entry.name for entry in os.scandir(path) if entry.is_dir()}
