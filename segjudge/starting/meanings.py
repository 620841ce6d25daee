"""The meanings of all protocols' metrics, in words for a leaderboard."""

from __future__ import annotations

import re

_MEASURES = {
    "J&F": "the mean of J and F",
    "J": "region similarity (intersection over union)",
    "J_last": "region similarity over the last quarter of the frames",
    "F": "boundary similarity",
    "J&F_new": "the mean of J and the second F",
    "F_new": "boundary similarity with a tolerance that depends on the object's size",
    "V": "spread of J&F over time; lower is better",
}
_STATISTICS = {
    "Mean": "{}",
    "seen-Mean": "{}, over the classes of the training data",
    "unseen-Mean": "{}, over the classes that the training data lack",
    "Recall": "share of frames above one half: {}",
    "Decay": "loss from the first to the last quarter of the frames, lower is better: {}",
}
_PERIODS = {
    "": "",
    "disappear_": ", while the object is absent",
    "reappear_": ", after the object has come back",
}
_SIZES = {
    "": "",
    **{name[0]: f" of {name} instances" for name in ("small", "medium", "large")},
    **{name[0]: f" of {name} categories" for name in ("rare", "common", "frequent")},
    **{f"-{name}": f" of instances with {name} occlusion" for name in ("light", "medium", "heavy")},
}

_OF_UNITS = {
    "PQ": "panoptic quality",
    "SQ": "mean overlap of matched segments",
    "RQ": "share of segments that are matched (F1)",
    "VPQ": "video panoptic quality",
    "STQ": "segmentation and tracking quality",
    "AQ": "how well instances are kept apart over time",
    "IoU": "how well pixels are classified",
    "mIoU": "intersection over union, mean over the classes of the truth",
    "Acc": "share of pixels with the right class",
    "Acc_class": "share of pixels with the right class, mean over classes",
    "fwIoU": "intersection over union, weighted by how frequent a class is",
    "VC": "share of the unchanging pixels whose label does not change either",
    "HOTA": "higher order tracking accuracy",
    "DetA": "detection accuracy",
    "AssA": "association accuracy",
    "DetRe": "detection recall",
    "DetPr": "detection precision",
    "AssRe": "association recall",
    "AssPr": "association precision",
    "LocA": "localisation accuracy",
    "OWTA": "open world tracking accuracy",
    "sMOTSA": "soft tracking accuracy of CLEAR",
    "MOTSA": "tracking accuracy of CLEAR",
    "MOTSP": "mean overlap of matched masks",
    "IDSW": "how often an object changes its track; lower is better",
    "IDF1": "F1 of identities",
    "AP": "average precision of tracks",
    "N-acc": "share of the expressions without a target for which nothing is predicted",
    "T-acc": "share of the expressions with a target for which something is predicted",
    "Final": "the mean of J&F, N-acc and T-acc",
}


def meaning(metric: str) -> str:
    """Return what a metric of a protocol means."""
    if precision := re.fullmatch(r"AP(50|75)", metric):
        return f"Average precision at an intersection over union of .{precision[1]}"
    if recall := re.fullmatch(r"AR@(\d+)", metric):
        return f"Average recall of {recall[1]} {'detection' if recall[1] == '1' else 'detections'} an image or video"
    if kind := re.fullmatch(r"A([PR])([smlrcf]?|-light|-medium|-heavy)(?:@\d+)?", metric):
        return f"Average {'precision' if kind[1] == 'P' else 'recall'}{_SIZES[kind[2]]}, over IoU .50 to .95"
    of_units = re.fullmatch(r"([NT]-acc|[A-Za-z_]+?(?:F1)?)(\d*)(?:-([A-Za-z]+))?", metric)
    if of_units and of_units[1] in _OF_UNITS:
        window = f" over {of_units[2]} frames" if of_units[2] else ""
        text = _OF_UNITS[of_units[1]] + window + (f" ({of_units[3].lower()})" if of_units[3] else "")
        return text[0].upper() + text[1:]
    parts = re.fullmatch(r"((?:dis|re)appear_)?([^-]+)-(.+)", metric)
    if parts is None:
        raise KeyError(metric)
    text = _STATISTICS[parts[3]].format(_MEASURES[parts[2]]) + _PERIODS[parts[1] or ""]
    return text[0].upper() + text[1:]


def rises(metric: str) -> bool:
    """Return whether lower values of a metric are better, so that a leaderboard sorts upwards."""
    return metric.endswith("-Decay") or metric.startswith(("V-", "IDSW", "False-Alarm"))
