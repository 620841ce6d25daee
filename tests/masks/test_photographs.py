"""The demo's photographs, films and images: always equal, small, free to use, and stored as they are made."""

from __future__ import annotations

import re
import zipfile

import numpy as np
import pytest
from PIL import Image

from demo import panoptic
from demo.files import SPLIT, encode_picture
from demo.films import FILMS
from demo.images import draw_image
from demo.sequences import PHASE
from segjudge import score
from segjudge.evaluation_script.families.instances import truth as instance_truth
from segjudge.evaluation_script.phases import PHASES
from segjudge.masks.demo import IMAGE_SIZE, INSTANCE_PHASE, image_name, instance_images
from tests.builders import ROOT
from tests.demo_challenge import SAMPLES

PICTURES = ROOT / "pictures" / PHASE
NAMED = {film.name: film for film in FILMS}


#: Where cut-outs lie: those of the checkout's demo alone, and those that are installed.
MATERIAL_FOLDERS = ("demo/material", "segjudge/masks/material")


def test_a_frame_is_the_same_bytes_every_time_and_those_of_the_repository() -> None:
    film = NAMED["shell-game"]
    (picture, labels), (again, same) = film.draw(5), film.draw(5)

    assert picture.tobytes() == again.tobytes()
    assert labels.tobytes() == same.tobytes()
    assert encode_picture(picture) == encode_picture(again)
    with Image.open(PICTURES / film.name / "00005.jpg") as stored:
        assert np.abs(np.asarray(stored, int) - picture).mean() < 8, "as well as JPEG keeps it"


@pytest.mark.long
@pytest.mark.parametrize("number", [0, 7])
def test_the_photographs_of_instances_show_each_one_where_the_truth_has_it(number: int) -> None:
    instances = instance_images()[number]
    picture, ground = draw_image(number, instances), draw_image(number, [])
    assert picture.tobytes() == draw_image(number, instances).tobytes()

    differs = np.abs(picture.astype(int) - ground).max(axis=2)
    masks = [instance.mask() for instance in instances]
    for index, mask in enumerate(masks):
        visible = mask & ~np.any([*masks[index + 1 :], np.zeros_like(mask)], axis=0)
        assert np.mean(differs[visible] > 20) > 0.8, f"instance {index} stands out from what it lies on"
    with Image.open(ROOT / "pictures" / INSTANCE_PHASE / f"{image_name(number)}.jpg") as stored:
        assert np.abs(np.asarray(stored, int) - picture).mean() < 8, "as well as JPEG keeps it"


@pytest.mark.long
def test_the_samples_of_segments_are_as_they_are_made_and_each_scores_by_its_fault() -> None:
    pictures = sorted((ROOT / "pictures" / panoptic.PHASE).iterdir())
    drawn = [panoptic.draw_image(number) for number in (0, 1)]
    picture, segments = drawn[1]
    with Image.open(pictures[1]) as stored:
        assert np.abs(np.asarray(stored, int) - picture).mean() < 8
    assert {number // 1000 for number in np.unique(segments).tolist()} <= {*panoptic.THINGS, *panoptic.STUFF}

    truth = ROOT / "annotations" / f"{panoptic.PHASE}.zip"
    samples = {path.stem: path for path in SAMPLES[panoptic.PHASE]}
    assert samples.keys() == panoptic.METHODS.keys()
    for name, sample in samples.items():
        _, made = panoptic.make_results(panoptic.METHODS[name], [segments for _, segments in drawn])
        with zipfile.ZipFile(sample) as archive, Image.open(archive.open("segments/000000000002.png")) as image:
            assert np.array_equal(np.asarray(image, int) @ (1, 256, 256**2), made), name
    protocol = next(phase.splits[0].protocol for phase in PHASES if phase.codename == panoptic.PHASE)
    values = {name: score(str(path), str(truth), protocol=protocol).metrics[SPLIT] for name, path in samples.items()}
    careful = values["careful"]
    assert max(values, key=lambda name: values[name]["PQ"]) == "careful"
    assert values["merging"]["RQ-Things"] < 0.7 < careful["RQ-Things"]
    assert values["splitting"]["RQ-Things"] < careful["RQ-Things"]
    assert values["forgetful"]["RQ-Things"] < careful["RQ-Things"]
    assert values["confused"]["PQ-Stuff"] < values["splitting"]["PQ-Stuff"] == careful["PQ-Stuff"]
    assert values["coarse"]["SQ"] < careful["SQ"]


def test_the_truth_of_instances_names_the_photographs_and_has_their_size() -> None:
    names = instance_truth.read(str(ROOT / f"annotations/{INSTANCE_PHASE}.zip"))["dev"].names
    stored = sorted((ROOT / "pictures" / INSTANCE_PHASE).iterdir())

    assert sorted(names.values()) == [path.name for path in stored]
    for path in stored:
        with Image.open(path) as image:
            assert image.size == IMAGE_SIZE[::-1]


def test_the_sources_name_every_file_and_a_free_licence() -> None:
    text = (ROOT / "demo/SOURCES.md").read_text()
    rows = re.findall(r"^\| (`.*`) \| .* \| (.*) \|$", text, re.MULTILINE)
    named = [name for files, _ in rows for name in re.findall(r"`([\w-]+)`", files)]

    assert sorted(named) == sorted(path.stem for folder in MATERIAL_FOLDERS for path in (ROOT / folder).iterdir())
    assert {licence for _, licence in rows} <= {"CC0", "public domain", "public domain (CC0)"}
