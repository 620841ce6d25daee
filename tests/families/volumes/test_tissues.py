"""Lesions that BraTS 2024's scripts join because they touch the same lesion of another tissue."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from segjudge.evaluation_script.families.volumes.engine import count_case
from segjudge.evaluation_script.families.volumes.protocols import VOLUME_PROTOCOLS

SHAPE, SPACING = (28, 54, 60), (1.0, 1.25, 0.75)
#: Boxes of a label along z, y and x: a bar of ET with lesions of each other tissue at it, two of ET that NETC bridges, and
#: RC that touches two lesions of ET, of which the first by columns is the last by planes.
TRUTH = (
    (3, (5, 7), (10, 12), (4, 56)), (4, (4, 7), (12, 15), (5, 8)), (4, (4, 7), (12, 15), (50, 53)),
    (1, (4, 7), (7, 10), (5, 8)), (1, (4, 7), (7, 10), (50, 53)), (2, (4, 7), (7, 10), (20, 23)),
    (2, (3, 7), (7, 10), (36, 42)), (3, (5, 8), (30, 33), (2, 16)), (3, (5, 8), (30, 33), (40, 56)),
    (1, (5, 8), (33, 35), (14, 42)), (3, (22, 25), (46, 49), (2, 8)), (3, (12, 15), (46, 49), (6, 56)),
    (4, (15, 22), (46, 49), (5, 9)), (4, (15, 18), (46, 49), (44, 48)),
)  # fmt: skip
#: One RC lesion of the prediction is smaller, and two lesions are false.
SMALLER, FALSE = (4, (4, 7), (12, 15), (6, 8)), ((1, (14, 18), (26, 29), (20, 24)), (4, (24, 26), (40, 42), (3, 5)))
#: LesionDice, LesionHD95, LesionNSD0.5 and LesionNSD1 of the official scripts.
OFFICIAL: dict[str, dict[str, list[float]]] = {
    "brats-2024-gli": {
        "WT": [0.8975809140075068, 2.6866069605669876, 0.8762244372701727, 0.9878318534679204],
        "TC": [0.9063669409470937, 2.6241069605669876, 0.8889315133925935, 0.9878318534679204],
        "NETC": [0.7552083333333333, 5.6020829079896375, 0.7398014684137856, 0.9481132028066038],
        "SNFH": [0.7878787878787878, 1.0, 0.7333333296666666, 0.999999995],
        "ET": [0.9594627594627595, 0.3333333333333333, 0.9515180719236954, 0.999999995],
        "RC": [0.6367845117845118, 18.001487621020317, 0.5948093522370302, 0.9004064995630081],
    },
    "brats-2024-ssa": {
        "WT": [0.8975809140075068, 2.6866069605669876, 0.8762244372701727, 0.9878318534679204],
        "TC": [0.9063669409470937, 2.6241069605669876, 0.8889315133925935, 0.9878318534679204],
        "ET": [0.9318589743589745, 0.5, 0.9184815943485745, 0.999999995],
    },
    "brats-2024-met": {
        "WT": [0.7278850478756371, 17.63800749063506, 0.7099982900105032, 0.799999996],
        "TC": [0.7349138694273066, 17.58800749063506, 0.7201639509084398, 0.799999996],
        "ET": [0.9318589743589745, 0.5, 0.9184815943485745, 0.999999995],
        "RC": [0.5933333333333333, 17.88800749063506, 0.553812180454887, 0.799999996],
    },
}


def _draw(boxes: Any) -> Any:
    labels = np.zeros(SHAPE, np.uint8)
    for label, *sides in boxes:
        labels[tuple(slice(*side) for side in sides)] = label
    return labels


def _draw_pair() -> tuple[Any, Any]:
    """Return the truth and a prediction, which lies a voxel further along x."""
    moved = [(label, z, y, (x[0] + 1, x[1] + 1)) for label, z, y, x in TRUTH if (label, x) != (4, (5, 8))]
    return _draw(TRUTH), _draw([*moved, SMALLER, *FALSE])


@pytest.mark.parametrize("protocol", OFFICIAL)
def test_tissues_have_the_numbers_of_the_official_scripts(protocol: str) -> None:
    row = VOLUME_PROTOCOLS[protocol]
    values = count_case(*_draw_pair(), SPACING, row)["values"]
    assert [region.name for region in row.regions] == list(OFFICIAL[protocol])
    np.testing.assert_allclose(values, list(OFFICIAL[protocol].values()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("protocol", OFFICIAL)
def test_a_region_alone_is_joined_by_tissues_of_which_it_has_no_label(protocol: str) -> None:
    row, pair = VOLUME_PROTOCOLS[protocol], _draw_pair()
    together = count_case(*pair, SPACING, row)["values"]
    for index, region in enumerate(row.regions):
        alone = count_case(*pair, SPACING, replace(row, regions=(region,)))["values"]
        np.testing.assert_array_equal(alone[0], together[index])
