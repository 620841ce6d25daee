"""`segjudge report --draw`: images with truth and detections as PNGs and a page, or the player of a report alone."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import NamedTuple

from segjudge.evaluation_script.files.problems import inflect, name_hint
from segjudge.system.errors import OptionError, UsageError
from segjudge.system.files import BuiltFile, check_outputs, make_folder, name_of

from .shared import DONE, ProgressBar, say, write_html
from .truths import TruthChoice

#: The minimum IoU of a correct detection.
IOU = 0.5
#: The maximum bytes of the page with the player, and of its sections.
_SHOWN_BYTES = 20_000_000
_SHOWN_SECTIONS = ("frames", "confusion")


class Drawing(NamedTuple):
    """A drawing: its results, truth, folder and options."""

    #: The path of the results; "" draws only the truth.
    results: str
    choice: TruthChoice
    out: str
    images: str = ""
    iou: float = IOU
    #: Detections with a lower score are skipped.
    score: float = 0.0

    def draw(self) -> int:
        """Write the folder and print its content."""
        if self.choice.rules.family == "instances":
            return self._draw_instances()
        return self._draw_player()

    def _draw_instances(self) -> int:
        from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
        from segjudge.evaluation_script.files.limits import LOCAL_LIMITS
        from segjudge.families.instances.pictures import View, draw_images
        from segjudge.families.instances.published import open_instances, read_predictions

        protocol = INSTANCE_PROTOCOLS[self.choice.rules.name]
        if self.results and (protocol.keypoints or protocol.boxes):
            compared = "keypoints" if protocol.keypoints else "boxes"
            raise UsageError(
                f"{protocol.name} compares {compared}, but drawings show masks. Write its page with `report --out FILE`"
            )
        if not 0 < self.iou <= 1:
            raise OptionError(f"iou is a fraction above 0, not {self.iou:g}")
        if self.images and not os.path.isdir(self.images):
            raise OptionError(f"images {self.images}: there is no such folder")
        source = self.choice.source
        with ProgressBar("image") as bar:
            opened = open_instances(source, progress=bar)
        for note in opened.notes:
            say(f"warning: {note}")
        name = self.choice.split or next(iter(opened.splits))
        if name not in opened.splits:
            raise UsageError(f"{source.path} has no split {name!r}{name_hint(name, opened.splits)}")
        truth, records = opened.splits[name], None
        if truth.images.frames is not None:
            raise UsageError(f"{source.path}: holds videos, but only images can be drawn")
        if self.results:
            rules = protocol if protocol.streets else INSTANCE_PROTOCOLS["coco"]
            records = read_predictions(self.results, truth, rules, LOCAL_LIMITS)
        pictures = [self.images] if self.images else []
        check_outputs([BuiltFile(os.path.join(self.out, name)) for name in ("index.html", "images/1.png")], pictures)
        with ProgressBar("image") as bar:
            drawn = draw_images(truth, records, self.out, View(self.images, self.iou, self.score), bar)
        print(f"Wrote {os.path.join(self.out, 'index.html')}: {len(drawn)} {inflect(len(drawn), 'image', 'images')}")
        return DONE

    def _draw_player(self) -> int:
        """Write a page with the player and confused classes, instead of pictures of all images."""
        from segjudge.report.page import PageOptions, render_page
        from segjudge.scoring.report import make_truth_report

        rules, truth = self.choice.rules, self.choice.source.path
        if self.iou != IOU or self.score or self.choice.categories:
            raise UsageError(f"--iou, --score and --categories do not apply to {rules.name}")
        out = os.path.join(self.out, "index.html")
        check_outputs([BuiltFile(out)], [self.images] if self.images else [])
        options = PageOptions(self.images, _SHOWN_BYTES)
        if self.results:
            page = self.choice.score_openly(self.results).make_page(options)
        else:
            page = make_truth_report(self.choice.open_splits(), rules.family, name_of(truth), options)
        sections = [section for section in page.sections if section.template in _SHOWN_SECTIONS]
        if not sections:
            print(f"{self.results or truth} has no errors, so nothing is drawn")
            return DONE
        make_folder(self.out)
        write_html(render_page(replace(page, sections=sections)), out)
        return DONE
