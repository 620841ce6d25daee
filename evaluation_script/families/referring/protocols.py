"""The benchmarks of referring expressions, one row each: RefCOCO and relatives, gRefCOCO, ReasonSeg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Dict, Tuple

#: The layouts of truths, which are the forms of protocols.
REFCOCO, GREFCOCO, REASONSEG = "refcoco", "grefcoco", "reasonseg"

_METRICS = {
    REFCOCO: ("oIoU", "mIoU", "P@0.5", "P@0.6", "P@0.7", "P@0.8", "P@0.9"),
    GREFCOCO: ("gIoU", "cIoU", "N-acc", "T-acc", "Pr@0.7", "Pr@0.8", "Pr@0.9"),
    REASONSEG: ("gIoU", "cIoU"),
}


@dataclass(frozen=True)
class ReferringProtocol:
    """The rules of one benchmark."""

    family: ClassVar[str] = "referring"

    name: str
    about: str
    form: str
    #: As computed by the benchmark's script, with its defects.
    official: bool = False
    revision: int = 1

    @property
    def metrics(self) -> Tuple[str, ...]:
        return _METRICS[self.form]


_OWN_SIZE = "Each sentence is a sample; masks have the size of their picture"

_ROWS = (
    ReferringProtocol("refcoco", f"oIoU, mIoU and P@ of RefCOCO. {_OWN_SIZE}.", REFCOCO),
    ReferringProtocol("refcoco-plus", f"oIoU, mIoU and P@ of RefCOCO+. {_OWN_SIZE}.", REFCOCO),
    ReferringProtocol("refcocog", f"oIoU, mIoU and P@ of RefCOCOg. {_OWN_SIZE}.", REFCOCO),
    ReferringProtocol(
        "grefcoco",
        "gIoU, cIoU, N-acc and T-acc. An empty mask without a flag means no target; a mask flagged no_target is empty.",
        GREFCOCO,
    ),
    ReferringProtocol(
        "grefcoco-official",
        "As computed by ReLA's evaluator, in fractions: a mask flagged no_target still adds to cIoU's union; a target "
        "without pixels scores 0.",
        GREFCOCO,
        official=True,
    ),
    ReferringProtocol("reasonseg", "gIoU and cIoU of pictures, exact; ignored pixels do not count.", REASONSEG),
    ReferringProtocol(
        "reasonseg-official",
        "As computed by LISA's validation: 1e-5 is added to each union and to the count; sums have 32 bits.",
        REASONSEG,
        official=True,
    ),
)

REFERRING_PROTOCOLS: Dict[str, ReferringProtocol] = {protocol.name: protocol for protocol in _ROWS}
