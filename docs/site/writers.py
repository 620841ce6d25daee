"""The calls by which common programs write results, and how Segjudge reads the files."""

from __future__ import annotations

from typing import NamedTuple

from segjudge.evaluation_script.families.instances.protocols import INSTANCE_PROTOCOLS
from segjudge.evaluation_script.families.microscopy.protocols import MICROSCOPY_PROTOCOLS
from segjudge.evaluation_script.families.semantic.protocols import IMAGES, SEMANTIC_PROTOCOLS


class Writer(NamedTuple):
    """A call by which a program writes results."""

    program: str
    #: An expression that writes `labels` or `folder` at `path`, or is a record.
    call: str
    #: The ending of the file.
    ending: str
    #: A key of `READERS`.
    kind: str
    note: str = ""


_BOXES = next(name for name, protocol in INSTANCE_PROTOCOLS.items() if protocol.boxes)
#: The benchmarks that read each kind of result, and one of them.
READERS = {
    "maps": ("label maps", next(name for name, protocol in SEMANTIC_PROTOCOLS.items() if protocol.form == IMAGES)),
    "cells": ("maps of cells", next(iter(MICROSCOPY_PROTOCOLS))),
    "masks": ("instance masks", "coco"),
    "boxes": ("boxes", _BOXES),
}
_EQUAL = "equal channels count as one; a line warns"
_IMITATED = "imitated by tifffile"
_BESIDE = "a line warns that `bbox` is ignored"

PICTURES = [
    Writer("Pillow", "Image.fromarray(labels.astype('uint8')).save(path)", "png", "maps"),
    Writer("Pillow", "Image.fromarray(labels.astype('uint16')).save(path)", "png", "maps"),
    Writer("Pillow", "Image.fromarray(labels.astype('uint8')).convert('P').save(path)", "png", "maps"),
    Writer("Pillow", "Image.fromarray(labels.astype('uint8')).convert('RGB').save(path)", "png", "maps", _EQUAL),
    Writer("Pillow", "Image.fromarray(labels.astype('int32')).save(path)", "tif", "cells"),
    Writer("Pillow", "Image.fromarray(labels.astype('float32')).save(path, compression='packbits')", "tif", "cells"),
    Writer("OpenCV", "cv2.imwrite(path, labels.astype('uint8'))", "png", "maps"),
    Writer("OpenCV", "cv2.imwrite(path, labels.astype('uint16'))", "png", "maps"),
    Writer("OpenCV", "cv2.imwrite(path, cv2.merge([labels.astype('uint8')] * 3))", "png", "maps", _EQUAL),
    Writer("OpenCV", "cv2.imwrite(path, cv2.merge([labels.astype('uint8')] * 3))", "tif", "cells", _EQUAL),
    Writer("OpenCV", "cv2.imwrite(path, labels.astype('float32'))", "tif", "cells"),
    Writer(
        "OpenCV", "cv2.imwrite(path, labels.astype('float32'), [cv2.IMWRITE_TIFF_COMPRESSION, 5])",
        "tif", "cells", "LZW, and the predictor of floats",
    ),
    Writer("scikit-image", "io.imsave(path, measure.label(labels), check_contrast=False)", "tif", "cells"),
    Writer("tifffile", "tifffile.imwrite(path, labels.astype('int64'))", "tif", "cells"),
    Writer("tifffile", "tifffile.imwrite(path, labels.astype('uint32'), compression='zlib')", "tif", "cells"),
    Writer("tifffile", "tifffile.imwrite(path, labels.astype('uint32'), bigtiff=True)", "tif", "cells"),
    Writer(
        "tifffile", "tifffile.imwrite(path, [labels.astype('uint8')] * 3, photometric='rgb')", "tif", "cells",
        "equal channels, one after the other, count as one; a line warns",
    ),
    Writer("ImageJ", "tifffile.imwrite(path, labels.astype('float32'), imagej=True)", "tif", "cells", _IMITATED),
    Writer(
        "QuPath", "tifffile.imwrite(path, labels.astype('uint16'), ome=True, tile=(512, 512))",
        "ome.tif", "cells", _IMITATED,
    ),
]  # fmt: skip
RECORDS = [
    Writer(
        "pycocotools", "{'image_id': 1, 'category_id': 2, 'segmentation': encode(mask), 'score': 0.5}", "json", "masks"
    ),
    Writer(
        "pycocotools",
        "{'image_id': 1, 'category_id': 2, 'segmentation': {'size': size, 'counts': counts}, 'score': 0.5}",
        "json",
        "masks",
        "`counts` is a list",
    ),
    Writer(
        "pycocotools",
        "{'image_id': 1, 'category_id': 2, 'segmentation': [[x, y, x + w, y, x + w, y + h, x, y + h]], 'score': 0.5}",
        "json",
        "masks",
    ),
    Writer(
        "Detectron2",
        "{'image_id': 1, 'category_id': 2, 'bbox': [x, y, w, h], 'score': 0.5, 'segmentation': encode(mask)}",
        "json",
        "masks",
        _BESIDE,
    ),
    Writer(
        "MMDetection",
        "{'image_id': 1, 'bbox': [x, y, w, h], 'score': 0.5, 'category_id': 2, 'segmentation': encode(mask)}",
        "json",
        "masks",
        _BESIDE,
    ),
    Writer("MMDetection", "{'image_id': 1, 'bbox': [x, y, w, h], 'score': 0.5, 'category_id': 2}", "json", "boxes"),
]
ARCHIVES = [
    Writer("shutil", "shutil.make_archive(path, 'zip', folder)", "zip", "maps"),
    Writer("shutil", "shutil.make_archive(path, 'zip', folder, '.')", "zip", "maps"),
    Writer("shutil", "shutil.make_archive(path, 'tar', folder)", "tar", "maps"),
    Writer("shutil", "shutil.make_archive(path, 'gztar', folder)", "tar.gz", "maps"),
]
WRITERS = [*PICTURES, *RECORDS, *ARCHIVES]
